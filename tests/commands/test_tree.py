"""/undo, /redo, /rewind, /retry, /branches, /rename, /search and /export against a real chat."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.commands import parse, run_command
from tests.support.commands import PlainContext
from tests.support.tui import make_chat, says


async def run(context: PlainContext, line: str, *, busy: bool = False) -> None:
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context, busy=busy)


async def talked(home: Path, *said: str, folder: Path | None = None) -> PlainContext:
    """A chat in which all of `said` was said and answered."""
    more = {"folder": folder} if folder else {}
    chat = make_chat(home, *(says(f"answer to {text}") for text in said), says("anew"), **more)
    for text in said:
        async for _ in chat.send(text):
            pass
    return PlainContext(chat)


def texts(context: PlainContext) -> list[str]:
    return [message.text for message in context.chat.session.messages]


async def test_undo_gives_the_text_back_and_says_what_brings_it_back(tmp_path: Path) -> None:
    context = await talked(tmp_path, "first", "second")
    await run(context, "/undo")
    assert (context.draft, texts(context)) == ("second", ["first", "answer to first"])
    (line,) = context.said
    assert line.startswith("Took back turn 2; 1 turn left. Nothing is deleted: /redo brings it back; ")
    assert line.endswith("; its text is back in the prompt box.")
    assert context.done == ["reload"]
    await run(context, "/redo")
    assert len(texts(context)) == 4
    assert "4 messages" in context.said[-1]


async def test_what_stands_in_the_prompt_box_is_not_overwritten(tmp_path: Path) -> None:
    context = await talked(tmp_path, "first")
    context.draft = "being written"
    await run(context, "/undo")
    assert context.draft == "being written"
    assert "the prompt box, which is in use" in context.said[-1]


async def test_with_nothing_left_undo_and_redo_say_so(tmp_path: Path) -> None:
    context = await talked(tmp_path)
    for line in ("/undo", "/redo", "/retry", "/rewind"):
        await run(context, line)
    assert len(context.warned) == 4
    assert all(line.startswith("There is nothing to") for line in context.warned)


async def test_rewind_offers_the_turns_newest_first(tmp_path: Path) -> None:
    context = await talked(tmp_path, "first", "second", "third")
    context.picks = [context.chat.session.history.turns()[1].message.id]
    await run(context, "/rewind")
    assert [choice.label for choice in context.offered] == ["third", "second", "first"]
    assert context.offered[0].note == "turn 3 · just now"
    assert (context.draft, len(texts(context))) == ("second", 2)


async def test_rewind_by_number(tmp_path: Path) -> None:
    context = await talked(tmp_path, "first", "second")
    for nonsense in ("0", "3", "-1", "first", "²"):
        await run(context, f"/rewind {nonsense}")
    assert len(context.warned) == 5
    assert "1 to 2" in context.warned[0]
    await run(context, "/rewind 1")
    assert (context.draft, texts(context)) == ("first", [])


async def test_retry_answers_again_and_keeps_the_old_answer(tmp_path: Path) -> None:
    context = await talked(tmp_path, "first")
    await run(context, "/retry")
    assert texts(context) == ["first", "anew"]
    context.picks = [context.chat.session.history.branches()[0].head]
    await run(context, "/branches")
    assert [choice.label for choice in context.offered] == ["answer to first"]
    assert context.offered[0].note == "2 messages · just now"
    assert texts(context) == ["first", "answer to first"]


async def test_a_session_without_other_branches_says_so(tmp_path: Path) -> None:
    context = await talked(tmp_path, "first")
    await run(context, "/branches")
    assert context.said == ["This session has no other branch: nothing was undone, rewound or retried in it."]


async def test_rename_gives_a_title_and_alone_says_whose_it_is(tmp_path: Path) -> None:
    context = await talked(tmp_path, "why does it crash?")
    await run(context, "/rename")
    assert "'why does it crash?', made from your first message" in context.said[-1]
    await run(context, "/rename the crash")
    assert context.chat.session.info.title == "the crash"
    await run(context, "/rename")
    assert "yours" in context.said[-1]


async def test_search_lands_on_the_message_of_another_session(tmp_path: Path) -> None:
    context = await talked(tmp_path, "about tabs", "about spaces")
    chat = context.chat
    there, found = chat.session.info.id, chat.session.messages[2]
    chat.start_new()
    context.picks = [f"{there} {found.id}"]
    await run(context, '/search "about spaces"')
    assert context.offered[0].note.startswith("about tabs · turn 2 · ")
    assert chat.session.info.id == there
    assert context.landed == [(found.id, '"about spaces"')]


async def test_search_lands_on_a_branch_that_was_left(tmp_path: Path) -> None:
    context = await talked(tmp_path, "about tabs", "about spaces")
    chat = context.chat
    found = chat.session.messages[2]
    chat.session.history.undo()
    context.picks = [f"{chat.session.info.id} {found.id}"]
    await run(context, "/search spaces")
    assert context.offered[0].note.startswith("this session · turn 2, a branch that was left")
    assert len(texts(context)) == 4
    assert context.done == ["reload"]


async def test_a_search_for_nothing_and_one_that_finds_nothing(tmp_path: Path) -> None:
    context = await talked(tmp_path, "about tabs")
    await run(context, "/search")
    await run(context, "/search zebra")
    assert context.said[0].startswith("/search takes the words to look for")
    assert context.said[1] == "Nothing that was said, in any session, holds 'zebra'."


async def test_export_writes_a_new_file_and_never_over_another(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    context = await talked(tmp_path, "Why: does/it crash?", folder=folder)
    await run(context, "/export")
    (path,) = folder.iterdir()
    assert path.name == f"why-does-it-crash-{context.chat.session.info.short}.md"
    assert "answer to" in path.read_text()
    assert context.said == [f"Wrote 2 messages to {path}"]
    await run(context, "/export")
    await run(context, "/export talk.docx")
    await run(context, "/export nowhere/talk.md")
    assert len(context.warned) == 3
    assert "is there already" in context.warned[0]
    assert "markdown, jsonl, html, json" in context.warned[1]
    await run(context, "/export talk.html")
    assert (folder / "talk.html").read_text().startswith("<!DOCTYPE html>")
