"""/copy takes what was asked for, as it was written, and says how much."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.commands import parse, run_command
from rolling_chat.commands.copy import code_blocks
from tests.support.commands import PlainContext
from tests.support.tui import Reply, calls, make_chat, says

CODE = "First:\n\n```python\ndef f():\n\treturn 1  \n```\n\nthen\n\n- a list\n\n  ~~~\n  ls -l\n  ~~~\n\ndone"


async def _talk(home: Path, *replies: Reply) -> PlainContext:
    chat = make_chat(home, *replies)
    while len(chat.session.messages) < 2 * len(replies):
        async for _ in chat.send(f"question {len(chat.session.messages)}"):
            pass
    return PlainContext(chat)


async def _run(context: PlainContext, line: str) -> None:
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context)


async def test_alone_it_copies_the_last_answer_as_it_was_written(tmp_path: Path) -> None:
    context = await _talk(tmp_path, says("one"), says("**two**\n\twith a tab"))
    await _run(context, "/copy")
    assert context.copied == "**two**\n\twith a tab"
    assert context.said == ["Copied the last answer (2 lines, 19 characters)."]


@pytest.mark.parametrize(
    ("line", "copied", "said"),
    [
        ("/copy code", "ls -l", "Copied code block 2 of 2 of r2 (5 characters)."),
        (
            "/copy code 1",
            "def f():\n\treturn 1  ",
            "Copied code block 1 of 2 of r2 (2 lines, 20 characters).",
        ),
        ("/copy CODE 2", "ls -l", "Copied code block 2 of 2 of r2 (5 characters)."),
    ],
)
async def test_code_is_copied_exactly_the_last_block_unless_another_is_named(
    tmp_path: Path, line: str, copied: str, said: str
) -> None:
    context = await _talk(tmp_path, says(CODE), says("no code in this one"))
    await _run(context, line)
    assert (context.copied, context.said) == (copied, [said])


@pytest.mark.parametrize(
    ("line", "warned"),
    [
        ("/copy code 3", "There is no code block 3: r2 has 2 code blocks."),
        ("/copy code 0", "There is no code block 0: r2 has 2 code blocks."),
        ("/copy code two", "/copy code takes the number of a code block, not 'two'."),
        ("/copy message", "/copy message takes the id of a message (r1 to r2, as /context shows them)."),
        ("/copy message r9", "There is no r9: this session has r1 to r2."),
        ("/copy that", "/copy takes code, message or all, or nothing, not 'that'."),
    ],
)
async def test_what_is_not_there_is_said(tmp_path: Path, line: str, warned: str) -> None:
    context = await _talk(tmp_path, says(CODE))
    await _run(context, line)
    assert (context.copied, context.warned) == ("", [warned])


async def test_an_answer_without_code_has_none_to_copy(tmp_path: Path) -> None:
    context = await _talk(tmp_path, says("no code"))
    await _run(context, "/copy code")
    assert (context.copied, context.said) == ("", ["No answer has a code block."])


@pytest.mark.parametrize("id", ["r1", "1", "R1"])
async def test_any_message_is_copied_by_its_id(tmp_path: Path, id: str) -> None:
    context = await _talk(tmp_path, says("hello"))
    await _run(context, f"/copy message {id}")
    assert context.copied == "question 0"
    assert context.said == ["Copied r1, user (10 characters)."]


async def test_a_message_that_only_calls_a_tool_is_copied_with_its_call(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, calls("read_file", path="a.txt"), says("done"), folder=tmp_path)
    async for _ in chat.send("read it"):
        pass
    context = PlainContext(chat)
    await _run(context, "/copy message r2")
    assert context.copied == "[call of read_file]\npath: a.txt"


async def test_the_whole_conversation_is_copied_as_it_would_be_exported(tmp_path: Path) -> None:
    context = await _talk(tmp_path, says("one"), says(CODE))
    await _run(context, "/copy all")
    exported = context.chat.session.export(str(tmp_path / "talk.md")).read_text()
    assert context.copied == exported
    assert context.said[0].startswith("Copied the conversation as Markdown, 4 messages (")


async def test_of_nothing_nothing_is_copied(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    for line in ("/copy", "/copy code", "/copy all"):
        await _run(context, line)
    assert context.copied == ""
    assert context.said == [
        "There is no answer to copy yet.", "There is no answer to copy yet.", "There is nothing to copy yet.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("no code, `but` a span", []),
        ("```\n\n\tx\n\n```", ["\n\tx\n"]),
        ("````md\n```py\nx\n```\n````", ["```py\nx\n```"]),
        ("~~~\ncut off in it", ["cut off in it"]),
        ("text\n\n    indented\n    too", ["indented\ntoo"]),
        ("> ```\n> quoted\n> ```", ["quoted"]),
        ("```\n```", [""]),
    ],
)
def test_code_blocks_are_those_of_markdown(text: str, blocks: list[str]) -> None:
    assert code_blocks(text) == blocks
