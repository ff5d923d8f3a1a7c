"""Pictures by their headers: format and size, whatever the name says, and nothing decompressed."""

from __future__ import annotations

import pytest

from rolling_chat.pictures import (
    MAX_BYTES,
    PictureHeader,
    data_uri,
    header_of,
    is_cut_off,
    read_header,
    split_data_uri,
    why_not,
)
from tests.support.pictures import bomb, gif, jpeg, png, webp


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (png(30, 20), "PNG"),
        (gif(30, 20), "GIF"),
        (jpeg(30, 20), "JPEG"),
        (jpeg(30, 20, before=200_000), "JPEG"),
        (webp(30, 20), "WebP"),
        (webp(30, 20, b"VP8L"), "WebP"),
        (webp(30, 20, b"VP8 "), "WebP"),
    ],
)
def test_the_header_says_format_and_size(data: bytes, kind: str) -> None:
    header = read_header(data)
    assert header is not None
    assert (header.kind, header.width, header.height) == (kind, 30, 20)
    assert not is_cut_off(header, data)
    assert not why_not(header, len(data))
    assert header_of(data_uri(header.media_type, data)) == header


@pytest.mark.parametrize("data", [png(30, 20), jpeg(30, 20), webp(30, 20), gif(30, 20)])
def test_a_picture_that_is_cut_anywhere_is_never_taken_for_whole(data: bytes) -> None:
    for length in range(len(data)):
        header = read_header(data[:length])
        assert header is None or why_not(header, length) or is_cut_off(header, data[:length])


@pytest.mark.parametrize("data", [b"", b"text", b"\xff\xd8", b"RIFF\0\0\0\0WAVE", b"%PDF-1.7"])
def test_other_files_are_no_pictures(data: bytes) -> None:
    assert read_header(data) is None


def test_what_is_too_large_is_said_from_the_header_alone() -> None:
    header = read_header(bomb(60_000))
    assert header is not None
    assert "60,000 × 60,000 pixels" in why_not(header, 1_000)
    assert "the limit" in why_not(PictureHeader("image/png", 10, 10), MAX_BYTES + 1)


def test_a_segment_of_no_length_does_not_go_on_for_ever() -> None:
    header = read_header(b"\xff\xd8" + b"\xff\xe0\x00\x00" * 100_000)
    assert header is not None
    assert not header.width


def test_an_address_that_is_written_in_another_way_is_left_as_it_is() -> None:
    address = data_uri("image/png", png(3, 2))
    assert split_data_uri(address) == ("data:image/png;base64,", png(3, 2))
    assert split_data_uri(address + "=") is None
    assert split_data_uri("https://example.org/x.png") is None
    assert header_of("data:image/png;base64,!!!") is None
