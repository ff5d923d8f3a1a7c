"""A session as Markdown: whole, readable, harmless in a terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from markdown_it import MarkdownIt

from rolling_chat.agent.exporting import export_session
from rolling_chat.messages import Ending, Message, ToolCall
from rolling_chat.replay import read_transcripts
from rolling_chat.sessions.export import EXPORT_FORMATS, export, format_of, to_markdown
from rolling_chat.sessions.export.as_markdown import fence
from rolling_chat.sessions.records import SessionInfo, StoredSummary
from tests.sessions.conformance.test_store import ANY_TEXT
from tests.support.sessions import OFFLINE

INFO = SessionInfo(
    id="ab12cd34ef",
    title="fixing *the* parser",
    folder="/src/a`b",
    model="demo/offline",
    messages=4,
    has_summary=False,
    rolling=False,
    created_at=1_700_000_000.0,
    updated_at=1_700_000_060.0,
    head="m4",
)
CALL = ToolCall("c1", "read_file", '{"path": "lexer.py"}')


def code_blocks(markdown: str) -> list[str]:
    """The contents of the code blocks, as a Markdown reader sees them."""
    return [token.content for token in MarkdownIt().parse(markdown) if token.type == "fence"]


def headings(markdown: str) -> list[str]:
    """The second-level headings, as a Markdown reader sees them."""
    tokens = MarkdownIt().parse(markdown)
    return [
        tokens[n + 1].content for n, token in enumerate(tokens) if token.tag == "h2" and token.nesting == 1
    ]


def test_the_whole_branch_is_there() -> None:
    markdown = to_markdown(
        INFO,
        [
            Message("user", "Why?", created_at=1_700_000_000.0),
            Message("assistant", "I look.", tool_calls=(CALL,), made_by=OFFLINE,
                    extras={"reasoning_content": "hm\nwell"}),
            Message("tool", "def f(): ...", tool_call_id="c1"),
            Message("assistant", "Because", ending=Ending.CANCELLED),
        ],
    )  # fmt: skip
    assert markdown.startswith("# fixing \\*the\\* parser\n")
    assert "- folder: ``/src/a`b``" in markdown
    assert headings(markdown) == [
        "You · 2023-11-14 22:13 UTC",
        "Assistant `demo/offline`",
        "Result of `read_file`",
        "Assistant",
    ]
    assert "> hm\n> well" in markdown
    assert code_blocks(markdown) == ['{\n  "path": "lexer.py"\n}\n', "def f(): ...\n"]
    assert markdown.endswith("Because\n\n*(cut off before its end)*\n")


@given(text=ANY_TEXT)
def test_a_fence_survives_any_text(text: str) -> None:
    shown = fence(text.replace("\r", "").replace("\x00", ""))
    assert len(code_blocks(f"{shown}\n\nafter")) == 1


def test_a_result_that_holds_a_code_block_stays_in_its_own() -> None:
    result = "```python\nx = 1\n````\nand\n# more"
    markdown = to_markdown(INFO, [Message("tool", result), Message("user", "next")])
    assert code_blocks(markdown) == [result + "\n"]
    assert headings(markdown) == ["Result", "You"]


def test_a_code_block_that_a_reply_left_open_swallows_nothing() -> None:
    for opened in ("see:\n```python\nx = 1", "~~~~\ncode\n~~~", "```\n``` not the end"):
        cut = Message("assistant", opened, ending=Ending.LENGTH)
        assert headings(to_markdown(INFO, [cut, Message("user", "go on")])) == ["Assistant", "You"]


def test_arguments_that_are_no_json_are_shown_as_they_are() -> None:
    for arguments in ('{"path": "le', "", "[" * 100_000):
        call = ToolCall("c1", "read`file", arguments)
        markdown = to_markdown(INFO, [Message("assistant", "", tool_calls=(call,))])
        assert code_blocks(markdown) == [arguments + "\n" if arguments else ""]


@given(text=ANY_TEXT)
def test_no_control_character_gets_out(text: str) -> None:
    message = Message(
        "assistant",
        text + "\x1b]0;owned\x07\x9b31m\u202e",
        tool_calls=(ToolCall("1", text, text),),
        extras={"reasoning_content": text},
    )
    markdown = to_markdown(INFO, [message, Message("tool", text, name=text)])
    markdown.encode()
    assert not [char for char in markdown if ord(char) < 32 and char not in "\n\t"]
    assert not [char for char in markdown if 0x7F <= ord(char) <= 0x9F or 0x202A <= ord(char) <= 0x202E]
    assert "␛]0;owned␇" in markdown


def test_pictures_are_named_and_not_written_out() -> None:
    parts = ({"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:AAAA"}})
    markdown = to_markdown(INFO, [Message("user", parts)])
    assert "look\n\n[picture]" in markdown
    assert "AAAA" not in markdown


def test_a_time_out_of_range_is_left_out() -> None:
    assert headings(to_markdown(INFO, [Message("user", "x", created_at=1e30)])) == ["You"]


SAID = [
    Message("user", "<script>alert(1)</script> & \x1b[31mred"),
    Message(
        "assistant",
        "**bold** <b>raw</b> ![x](http://example.com/p.png) [y](javascript:alert(1))",
        tool_calls=(ToolCall("c", "f<i>", '{"a": "<u>"}'),),
        extras={"reasoning_content": "<hm>"},
    ),
    Message("tool", "<result>", tool_call_id="c"),
    Message("critic", "half \ud800"),  # type: ignore[arg-type]
]


def test_a_page_holds_foreign_text_as_text_alone() -> None:
    page = export(INFO, SAID, "html")
    for raw in ("<script>", "<b>raw", "<img", 'href="javascript', "<i>", "<u>", "<hm>", "<result>", "\x1b"):
        assert raw not in page
    assert "<strong>bold</strong>" in page
    assert "fixing *the* parser" in page


def test_a_page_folds_results_and_colors_code() -> None:
    answer = Message("assistant", "```python\ndef f(): return '</pre><b>'\n```\n```zzz\nplain <b>\n```")
    page = export(INFO, [answer, Message("tool", "one\ntwo\n", tool_call_id="c")], "html")
    assert '<span class="c-k">def</span>' in page
    assert "pre .c-k {" in page
    assert "plain &lt;b&gt;" in page
    assert "<b>" not in page
    assert "<details><summary>2 lines</summary><pre>one\ntwo\n</pre></details>" in page


def test_json_carries_the_summary_and_where_it_ends() -> None:
    made = StoredSummary("They asked why.", "m9", made_by="extract", place=2, created_at=5.0)
    written = json.loads(export(INFO, SAID, "json", made))
    assert written["summary"] == {
        "text": "They asked why.", "through": 2, "skipped": [], "made_by": "extract", "created_at": 5.0,
    }  # fmt: skip
    for none in (None, StoredSummary("", "m9")):
        assert json.loads(export(INFO, SAID, "json", none))["summary"] is None


def test_what_is_written_as_json_reads_back(tmp_path: Path) -> None:
    for name in ("json", "jsonl"):
        path = tmp_path / f"talk.{EXPORT_FORMATS[name]}"
        path.write_text(export(INFO, SAID, name))
        (talk,) = read_transcripts(path)
        assert [message.to_dict() for message in talk.messages] == [message.to_dict() for message in SAID]
        assert talk.title == (INFO.title if name == "json" else "")


@given(text=ANY_TEXT)
def test_no_format_breaks_on_any_text_or_lets_a_control_through(text: str) -> None:
    said = [Message("user", text), Message("assistant", text, tool_calls=(ToolCall(text, text, text),))]
    for name in EXPORT_FORMATS:
        document = export(INFO, said, name)
        document.encode()
        assert "\x1b" not in document


def test_a_file_names_its_format() -> None:
    assert [format_of(f"a.b.{ending}") for ending in ("MD", "html", "json", "jsonl", "txt")] == [
        "markdown", "html", "json", "jsonl", "",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", EXPORT_FORMATS)
def test_no_secret_is_in_an_export_nor_in_its_title_or_file_name(kind: str, tmp_path: Path) -> None:
    said = "my key is swordfish and 0xfeedface"
    secrets = {"swordfish", "0xfeedface"}
    info = replace(INFO, title=said)
    written = export_session(info, [Message("user", said)], kind, tmp_path, secrets=secrets)
    for place in (written.name, written.read_text(encoding="utf-8")):
        assert "swordfish" not in place
        assert "feedface" not in place


@pytest.mark.parametrize("format", ["markdown", "html"])
def test_the_conversation_of_a_task_stands_with_its_result_without_secrets(format: str) -> None:
    record = {"session": "s1", "model": "openai/x", "requests": 1, "tokens": 9, "window": 99, "cost": None}
    extras = {"task": record, "shown": "❯ look\n⚙ read_file <b>.py\n\x1b[2Jthe key is hunter2hunter2"}
    result = Message("tool", "Nobody.", name="task", extras=extras)
    text = export(INFO, [result], format, secrets=["hunter2hunter2"])
    assert "what was said in the task" in text
    assert ("⚙ read_file &lt;b&gt;.py" if format == "html" else "⚙ read_file <b>.py") in text
    assert "hunter2" not in text
    assert "\x1b" not in text


def test_what_is_shown_in_place_of_another_result_is_not_exported() -> None:
    result = Message("tool", "Done.", name="edit_file", extras={"shown": "+ a line"})
    assert "a line" not in to_markdown(INFO, [result])
