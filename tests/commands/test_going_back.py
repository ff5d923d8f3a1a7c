"""Commands that move to another message ask whether the files that tools changed move along."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.commands import parse, run_command
from rolling_chat.settings.schema import AgentSettings, Settings
from tests.support.commands import PlainContext
from tests.support.tui import MODEL, calls, make_chat, says

ALL = Settings(model=MODEL, agent=AgentSettings(approvals="all"))


@pytest.fixture
async def context(tmp_path: Path) -> PlainContext:
    """A conversation of one turn in which notes.txt was made."""
    folder = tmp_path / "work"
    folder.mkdir()
    write = calls("write_file", path="notes.txt", content="hello\n")
    chat = make_chat(tmp_path, write, says("Done."), folder=folder, settings=ALL)
    async for _ in chat.send("make notes"):
        pass
    assert (folder / "notes.txt").read_text() == "hello\n"
    return PlainContext(chat)


async def run(context: PlainContext, line: str, pick: str | None) -> None:
    context.picks = [pick]
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context)


@pytest.mark.parametrize("line", ["/undo", "/rewind 1", "/retry"])
@pytest.mark.parametrize("pick", ["both", "conversation", "files", None])
async def test_going_back_takes_what_the_user_chooses(
    context: PlainContext, tmp_path: Path, line: str, pick: str | None
) -> None:
    is_gone, moves = pick in {"both", "files"}, pick in {"both", "conversation"}
    count = len(context.chat.session.messages)
    await run(context, line, pick)
    assert [choice.value for choice in context.offered] == ["both", "conversation", "files"]
    assert "notes.txt" in context.offered[0].note
    assert (tmp_path / "work" / "notes.txt").exists() is not is_gone
    assert (len(context.chat.session.messages) < count) is moves
    assert ("1 file changed back: notes.txt." in context.said) is is_gone


async def test_redo_and_branches_bring_files_back(context: PlainContext, tmp_path: Path) -> None:
    await run(context, "/undo", "both")
    await run(context, "/redo", "both")
    assert (tmp_path / "work" / "notes.txt").read_text() == "hello\n"


async def test_nothing_is_asked_where_no_file_would_change(context: PlainContext, tmp_path: Path) -> None:
    (tmp_path / "work" / "notes.txt").write_text("mine\n")
    await run(context, "/undo", None)
    assert context.offered == []  # no file would change, so that nothing is asked
    assert (tmp_path / "work" / "notes.txt").read_text() == "mine\n"


async def test_a_file_that_changes_while_the_user_chooses_moves_nothing(
    context: PlainContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pick = context.pick

    async def slowly(*args: object, **options: object) -> str | None:
        (tmp_path / "work" / "notes.txt").write_text("mine\n")
        return await pick(*args, **options)

    monkeypatch.setattr(context, "pick", slowly)
    count = len(context.chat.session.messages)
    await run(context, "/undo", "both")
    assert len(context.chat.session.messages) == count
    assert context.warned[-1].startswith("Nothing was moved: ")
    assert (tmp_path / "work" / "notes.txt").read_text() == "mine\n"


async def test_the_diff_is_shown_whole(context: PlainContext) -> None:
    await run(context, "/diff", None)
    assert "+hello" in context.shown[-1][1]
    await run(context, "/undo", "both")
    await run(context, "/diff", None)
    assert context.said[-1] == "No file differs from what it was before this session changed it."
