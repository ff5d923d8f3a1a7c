from __future__ import annotations

import base64

import pytest

from rolling_chat.messages import Ending
from rolling_chat.tools.mcp.results import MAX_CHARACTERS, MAX_PICTURES, as_result, prompt_text
from tests.support.pictures import png


def test_texts_pictures_resources_and_links_come_in_their_order() -> None:
    picture = base64.b64encode(png(4, 4)).decode()
    result = as_result(
        {
            "content": [
                {"type": "text", "text": "first"},
                {"type": "image", "data": picture, "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "a://b", "text": "inside"}},
                {"type": "resource_link", "uri": "c://d", "name": "more"},
                {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
                {"type": "hologram"},
            ]
        },
        "files",
    )
    assert result.text.splitlines()[0] == "first"
    assert "[picture: PNG, 4 × 4" in result.text
    assert "[resource a://b]\ninside" in result.text
    assert "@files:c://d" in result.text
    assert "a recording, not shown" in result.text
    assert result.text.endswith("[a part of a kind that is not known]")
    assert result.pictures == (f"data:image/png;base64,{picture}",)


def test_structured_content_is_told_where_there_is_no_text() -> None:
    assert '"degrees": 21' in as_result({"structuredContent": {"degrees": 21}}, "x").text
    both = {"content": [{"type": "text", "text": "warm"}], "structuredContent": {"degrees": 21}}
    assert as_result(both, "x").text == "warm"


def test_an_error_is_a_failed_result() -> None:
    assert as_result({"content": [], "isError": True}, "x").ending is Ending.FAILED


@pytest.mark.parametrize("data", ["", "not base64!", base64.b64encode(b"GIF, or so it says").decode()])
def test_a_picture_that_is_none_is_a_line(data: str) -> None:
    result = as_result({"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}, "x")
    assert not result.pictures
    assert result.text.startswith("[")


def test_pictures_and_text_are_bounded() -> None:
    picture = {"type": "image", "data": base64.b64encode(png(1, 1)).decode(), "mimeType": "image/png"}
    assert len(as_result({"content": [picture] * 50}, "x").pictures) == MAX_PICTURES
    long = as_result({"content": [{"type": "text", "text": "x" * (MAX_CHARACTERS + 100)}]}, "x")
    assert len(long.text) < MAX_CHARACTERS + 100


def test_what_an_assistant_says_in_a_prompt_is_marked() -> None:
    messages = [
        {"role": "user", "content": {"type": "text", "text": "Hello"}},
        {"role": "assistant", "content": {"type": "text", "text": "Hi"}},
    ]
    assert prompt_text({"messages": messages}, "x") == "Hello\nAssistant: Hi"


@pytest.mark.parametrize("said", [{}, {"content": 1}, {"content": [1, None, {"type": 2}]}, {"content": [{}]}])
def test_nonsense_is_no_fault(said: dict[str, object]) -> None:
    assert as_result(said, "x").ending is Ending.COMPLETE
