"""The format and size of pictures, read from their headers.

Nothing is decompressed: a file of a few kilobytes may claim to have a billion pixels.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from dataclasses import dataclass

from rolling_chat import figures

MAX_BYTES = 3_750_000
"""The maximum bytes of one picture; as base64 it stays below the 5 MB that Anthropic accepts."""
MAX_SIDE = 8_000
"""The maximum width and height, in pixels; Anthropic refuses more."""

HEAD = 65_536
"""The number of bytes that contains the header of nearly every picture."""

_NAMES = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WebP"}
_DATA_URI = re.compile(r"data:image/[a-z0-9.+-]+;base64,", re.IGNORECASE)
_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_MAX_SEGMENTS = 1_000
# the segments of a JPEG that contain its size: SOF0 to SOF15, without DHT, JPG and DAC
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


@dataclass(frozen=True, slots=True)
class PictureHeader:
    """The format of a picture, and its size in pixels; 0 if the header does not contain it."""

    media_type: str
    width: int = 0
    height: int = 0

    @property
    def kind(self) -> str:
        """The name of the format."""
        return _NAMES[self.media_type]

    @property
    def pixels(self) -> str:
        """The size for display: `800 × 600`."""
        return f"{self.width:,} × {self.height:,}" if self.width else "size unknown"


def read_header(data: bytes) -> PictureHeader | None:
    """Read the header from a file's beginning, or all of it; None if models do not accept the format."""
    if data.startswith(_PNG):
        return PictureHeader("image/png", *_png_size(data))
    if data.startswith(_JPEG):
        return PictureHeader("image/jpeg", *_jpeg_size(data))
    if data[:6] in {b"GIF87a", b"GIF89a"}:
        return PictureHeader("image/gif", *_unpack("<HH", data, 6))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return PictureHeader("image/webp", *_webp_size(data))
    return None


def describe(header: PictureHeader, size: int) -> str:
    """Return a picture's format, pixels and bytes: `PNG, 800 × 600, 43 KB`."""
    return f"{header.kind}, {header.pixels}, {figures.size(size)}"


def is_cut_off(header: PictureHeader, data: bytes) -> bool:
    """Return whether the end of a picture is missing."""
    match header.kind:
        case "PNG":
            return b"IEND\xaeB`\x82" not in data
        case "JPEG":
            return b"\xff\xd9" not in data
        case "GIF":
            return b";" not in data[-16:]
        case _:
            return len(data) < 8 + int.from_bytes(data[4:8], "little")


def why_not(header: PictureHeader, size: int) -> str:
    """Return why a picture cannot be sent to any model; empty if it can."""
    if size > MAX_BYTES:
        return f"it has {figures.size(size)}, and the limit is {figures.size(MAX_BYTES)}"
    if not header.width or not header.height:
        return "its header is damaged, so its size is unknown"
    if max(header.width, header.height) > MAX_SIDE:
        return f"it is {header.pixels} pixels, and the limit is {MAX_SIDE:,} × {MAX_SIDE:,}"
    return ""


def data_uri(media_type: str, data: bytes) -> str:
    """Return the data URI of a picture."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def split_data_uri(address: str) -> tuple[str, bytes] | None:
    """Return the prefix and the data of a picture's data URI; None for any other address."""
    match = _DATA_URI.match(address)
    if match is None:
        return None
    try:
        data = base64.b64decode(address[match.end() :], validate=True)
    except (ValueError, binascii.Error):
        return None
    before = match[0]
    return (before, data) if before + base64.b64encode(data).decode() == address else None


def header_of(address: str) -> PictureHeader | None:
    """Return the header of the picture in a data URI; None for any other address or format."""
    match = _DATA_URI.match(address)
    if match is None:
        return None
    header = read_header(_decoded(address, match.end(), HEAD))
    if header is not None and not header.width:
        return read_header(_decoded(address, match.end(), len(address)))
    return header


def _decoded(address: str, start: int, max_bytes: int) -> bytes:
    try:
        return base64.b64decode(address[start : start + max_bytes * 4 // 3 // 4 * 4 + 4])
    except (ValueError, binascii.Error):
        return b""


def _unpack(form: str, data: bytes, at: int) -> tuple[int, int]:
    if len(data) < at + struct.calcsize(form):
        return 0, 0
    width, height = struct.unpack_from(form, data, at)
    return width, height


def _png_size(data: bytes) -> tuple[int, int]:
    return _unpack(">II", data, 16) if data[12:16] == b"IHDR" else (0, 0)


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    for _ in range(_MAX_SEGMENTS):
        while data[at : at + 2] == b"\xff\xff":  # filling
            at += 1
        if len(data) < at + 4 or data[at] != 0xFF:
            return 0, 0
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4])
        if marker in _FRAMES:
            height, width = _unpack(">HH", data, at + 5)
            return width, height
        at += 2 + length
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X" if len(data) >= 30:
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L" if len(data) >= 25:
            bits = int.from_bytes(data[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = _unpack("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return 0, 0
