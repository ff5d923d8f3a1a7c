"""The blocks of a prompt: what is mentioned, what came along, what is refused."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from acp.helpers import audio_block, embedded_blob_resource, image_block, resource_block, text_block

from rolling_chat.acp.prompts import PromptReader, mention_of
from rolling_chat.agent import ChatError
from rolling_chat.mentions import MARK, Mention
from tests.support.pictures import png

FOLDER = Path("/w/a b")


@pytest.mark.parametrize(
    ("uri", "mention"),
    [
        ("file:///w/a%20b/src/x.py", Mention("src/x.py")),
        ("file://localhost/w/a%20b/x.py#L3", Mention("x.py", 3, 3)),
        ("file:///w/a%20b/x.py#L3:7", Mention("x.py", 3, 7)),
        ("file:///w/a%20b/x.py#L7-L3", Mention("x.py", 7, 7)),
        ("file:///w/a%20b/x.py#L0", Mention("x.py")),
        ("file:///w/a%20b/x.py#section", Mention("x.py")),
        ("file:///w/a%20b/../../etc/passwd", Mention("/etc/passwd")),
        ("file:///etc/passwd", Mention("/etc/passwd")),
        ("file:///w/a%20b/%FF%00", Mention("\udcff\0")),
        ("file://elsewhere/x.py", None),
        ("https://example.org/x.py", None),
        ("zed:///agent/thread/1", None),
        ("x.py", None),
        ("http://[", None),
        ("", None),
    ],
)
def test_an_address_of_a_file_is_a_mention(uri: str, mention: Mention | None) -> None:
    assert mention_of(uri, FOLDER) == mention


async def test_a_mark_in_text_mentions_nothing() -> None:
    said = await _reader().read([text_block(f"{MARK}secret and @plain")])
    assert said.text == "secret and @plain"


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (audio_block("", "audio/wav"), "does not accept audio"),
        (image_block("!!", "image/png"), "damaged"),
        (image_block(base64.b64encode(b"text").decode(), "image/png"), "neither text nor"),
        (resource_block(embedded_blob_resource("file:///w/x.zip", "UEs=")), "x.zip is neither text nor"),
    ],
)
async def test_what_cannot_be_sent_is_one_line(block: object, line: str) -> None:
    with pytest.raises(ChatError, match=line):
        await _reader().read([block])


async def test_a_picture_is_a_picture_whatever_it_comes_as() -> None:
    data = base64.b64encode(png(2, 2)).decode()
    blocks = [image_block(data, "text/plain"), resource_block(embedded_blob_resource("a:b", data))]
    assert (await _reader().read(blocks)).text == f"{MARK}kept.png {MARK}kept.png"


def _reader() -> PromptReader:
    async def keep(_: bytes) -> str:
        return "kept.png"

    return PromptReader(FOLDER, keep, None)
