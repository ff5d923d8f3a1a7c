"""A change of a file is asked about with its diff, and stands in the transcript as one."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from rolling_chat.agent import Chat
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore
from rolling_chat.tui.widgets.detail import Detail
from rolling_chat.tui.widgets.question import Question
from tests.support.tui import (
    Clock,
    calls,
    idle,
    listens,
    make_app,
    make_chat,
    reads,
    says,
    screen_of,
    shown,
    tells,
    transcript,
    type_line,
    wait_until,
)

TEXT = "".join(f"line {number}\n" for number in range(1, 101))


def _chat(home: Path, *replies: object, text: str = TEXT, store: SessionStore | None = None) -> Chat:
    folder = home / "work"
    folder.mkdir()
    (folder / "a.txt").write_text(text)
    return make_chat(home, *replies, folder=folder, store=store)


def _edits(*numbers: int) -> list[dict[str, str]]:
    return [{"old": f"line {number}\n", "new": f"LINE {number}\n"} for number in numbers]


async def _asked(pilot: Pilot[None], clock: Clock) -> None:
    await type_line(pilot, "go")
    await wait_until(pilot, lambda: pilot.app.screen.query(Question))
    await listens(pilot, clock)


async def test_the_question_shows_the_diff_in_the_themes_colors_and_makes_it(tmp_path: Path) -> None:
    chat = _chat(tmp_path, calls("edit_file", path="a.txt", old="line 50\n", new="LINE 50\n"), says("ok"))
    clock = Clock()
    async with make_app(chat, tmp_path, clock=clock).run_test(size=(100, 40)) as pilot:
        await _asked(pilot, clock)
        await reads(pilot, "Allow edit_file?", "@@ -47,7 +47,7 @@", "-line 50", "+LINE 50")
        rows = pilot.app.screen.query_one(Detail)._rows
        colors = {
            row.plain: {str(span.style) for span in row.spans}
            for row in rows
            if row.plain[:1] in {"+", "-", "@"}
        }
        theme = pilot.app.theme_variables
        assert theme["success"] in colors["+LINE 50"]
        assert theme["error"] in colors["-line 50"]
        await pilot.press("1", "enter")
        await idle(pilot)
        assert (tmp_path / "work" / "a.txt").read_text() == TEXT.replace("line 50", "LINE 50")


async def test_a_diff_is_wrapped_once_for_all_its_colors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrap, widths = Detail._wrapped, list[int]()

    def counted(detail: Detail) -> object:
        widths.append(detail._width)
        return wrap(detail)

    monkeypatch.setattr(Detail, "_wrapped", counted)
    chat = _chat(tmp_path, calls("edit_file", path="a.txt", old="line 50\n", new="LINE 50\n"), says("ok"))
    clock = Clock()
    async with make_app(chat, tmp_path, clock=clock).run_test(size=(100, 40)) as pilot:
        await _asked(pilot, clock)
        assert len(widths) == len(set(widths)) > 0


async def test_hunks_out_of_sight_are_counted(tmp_path: Path) -> None:
    chat = _chat(tmp_path, calls("multi_edit", path="a.txt", edits=_edits(5, 25, 45, 65, 85)), says("ok"))
    clock = Clock()
    async with make_app(chat, tmp_path, clock=clock).run_test(size=(80, 24)) as pilot:
        await _asked(pilot, clock)
        await wait_until(pilot, lambda: "more lines in 4 hunks" in shown(pilot))
        assert "Approve unseen, once" in shown(pilot)


async def test_a_line_of_a_file_cannot_pass_for_a_hunk_or_another_file(tmp_path: Path) -> None:
    forged = "+++ b/other\n@@ -1 +1 @@\n\x1b[2J\u202edne\r\n"
    chat = _chat(tmp_path, calls("write_file", path="new.txt", content=forged), says("ok"))
    clock = Clock()
    async with make_app(chat, tmp_path, clock=clock).run_test(size=(100, 40)) as pilot:
        await _asked(pilot, clock)
        await reads(pilot, "++++ b/other", "+@@ -1 +1 @@", "+␛[2J<U+202E>dne")


async def test_a_made_change_is_a_line_that_unfolds_to_the_diff_also_after_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path / "sessions.db")
    edit = calls("edit_file", path="a.txt", old="line 50\n", new="LINE 50\nnew\n")
    chat = _chat(tmp_path, edit, says("Done."), store=store)
    clock = Clock()
    async with make_app(chat, tmp_path, clock=clock).run_test(size=(100, 40)) as pilot:
        await _asked(pilot, clock)
        await pilot.press("1", "enter")
        await idle(pilot)
        await tells(pilot, "edit_file a.txt +2 -1")
        (item,) = (item for item in screen_of(pilot).state.items if "edit_file" in item.text)
        assert "old=" not in item.text
        assert "-line 50\n+LINE 50\n+new" in str(item.result)
        before = [line for line in transcript(pilot).splitlines() if "edit_file" in line]
    again = Chat.open(chat._runtime, session=store.session(chat.session.info.id))
    async with make_app(again, tmp_path, clock=clock).run_test(size=(100, 40)) as pilot:
        await tells(pilot, "edit_file a.txt +2 -1")
        assert [line for line in transcript(pilot).splitlines() if "edit_file" in line] == before
        (item,) = (item for item in screen_of(pilot).state.items if "edit_file" in item.text)
        assert "-line 50\n+LINE 50\n+new" in str(item.result)


async def test_a_file_that_only_moves_says_so(tmp_path: Path) -> None:
    chat = _chat(tmp_path, calls("move_file", path="a.txt", to="b.txt"), says("ok"))
    clock = Clock()
    async with make_app(chat, tmp_path, clock=clock).run_test(size=(100, 40)) as pilot:
        await _asked(pilot, clock)
        await reads(pilot, "rename from a.txt", "rename to b.txt")
        await pilot.press("1", "enter")
        await idle(pilot)
        await tells(pilot, "move_file a.txt to=b.txt")
