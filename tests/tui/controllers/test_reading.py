"""F6: a cursor in the transcript, and what is taken by it."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest
from textual.pilot import Pilot

from rolling_chat.tui.controllers.links import may_be_opened
from rolling_chat.tui.dialogs.confirm_screen import ConfirmScreen
from rolling_chat.tui.state.items import Item, Kind, Status
from rolling_chat.tui.widgets.transcript import Transcript
from tests.support.tui import (
    draft,
    fill,
    idle,
    make_app,
    make_chat,
    reads,
    screen_of,
    shown,
    transcript,
    wait_until,
)

CODE = "def f(x):\n\tif x:\n\t\treturn 1"
ITEMS = (
    Item("u", Kind.USER, "the question"),
    Item(
        "a",
        Kind.ASSISTANT,
        "Here:\n\n- a list\n\n  ```python\n" + indent(CODE, "  ") + "\n  ```\n\nSee the end.",
    ),
    Item("t", Kind.TOOL, "read_file a.py", result="result one\nresult two"),
    Item("v", Kind.USER, "another"),
    Item("b", Kind.ASSISTANT, "the last answer"),
)


def _row(pilot: Pilot[None]) -> str:
    """The row under the cursor, which is always in sight."""
    view = screen_of(pilot).transcript
    assert view.cursor is not None
    (row,) = [row for row in view.viewport.rows if row.position == view.cursor.point.position]
    return row.line.drawn.strip()


async def _down_to(pilot: Pilot[None], words: str) -> None:
    """Move the cursor down to the next row with these words in it."""
    for _ in transcript(pilot).splitlines():
        if words in _row(pilot):
            return
        await pilot.press("j")
    raise AssertionError(f"no row below has {words!r}:\n{shown(pilot)}")


def _copied(pilot: Pilot[None]) -> str:
    return pilot.app.clipboard


@pytest.mark.parametrize("size", [(80, 24), (40, 10)])
async def test_keys_move_the_cursor_and_it_is_always_in_sight(tmp_path: Path, size: tuple[int, int]) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=size) as pilot:
        await idle(pilot)
        fill(pilot, *ITEMS)
        await pilot.press("f6")
        assert _row(pilot) == "the last answer"
        seen = []
        for key in ("u", "u", "n", "n", "p", "p", "G", "g", "down", "j", "k", "end", "home", "alt+down"):
            await pilot.press(key)
            seen.append(_row(pilot).removeprefix("❯ ").strip())
        assert seen[:4] == ["another", "the question", "Here:", "another"]
        assert seen[4:8] == ["Here:", "the question", "the last answer", "the question"]
        assert seen[8:] == ["", "Here:", "", "the last answer", "the question", "Here:"]
        await pilot.press(*["pagedown"] * 9)
        assert _row(pilot) == "the last answer"
        for width in (33, 120, size[0]):
            await pilot.resize_terminal(max(40, width), size[1])
            await pilot.pause()
            assert _row(pilot)


async def test_what_is_typed_leads_back_to_the_prompt_and_is_not_lost(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        await idle(pilot)
        await pilot.press("f6", *"xyz")
        assert draft(pilot) == "xyz"
        assert not screen_of(pilot).reading.is_on
        await pilot.press("shift+tab", "j", "escape", "j")
        assert draft(pilot) == "xyzj"


async def test_a_selection_by_keys_goes_over_messages_and_is_copied(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(80, 30)) as pilot:
        await idle(pilot)
        fill(pilot, *ITEMS)
        await pilot.press("f6", "g", "ctrl+right", "right", "v", "n", "ctrl+right", "y")
        assert _copied(pilot) == "question\n\nHere"
        await pilot.press("n", "shift+end", "shift+down", "ctrl+c")
        assert _copied(pilot) == "another"
        await pilot.press("p", "p", "y")
        assert _copied(pilot) == "Here:"
        assert screen_of(pilot).reading.is_on
        await pilot.press("shift+right", "down")
        assert not screen_of(pilot).get_selected_text()


async def test_code_messages_and_results_are_taken_from_under_the_cursor(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(80, 30)) as pilot:
        await idle(pilot)
        fill(pilot, *ITEMS)
        await pilot.press("f6", "g", "n")
        await _down_to(pilot, "if x:")
        await pilot.press("c")
        await reads(pilot, "Copied the code block")
        assert _copied(pilot) == CODE
        await pilot.press("m")
        assert _copied(pilot) == ITEMS[1].text
        await pilot.press("g", "c")
        await reads(pilot, "no code block")
        await _down_to(pilot, "read_file")
        await pilot.press("enter", "j")
        assert _row(pilot) == "│ result one"
        await pilot.press("k", "enter")
        await wait_until(pilot, lambda: "result one" not in shown(pilot))
        await pilot.press("m")
        assert _copied(pilot) == "result one\nresult two"


async def test_an_answer_that_grows_leaves_the_cursor_where_it_is(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(80, 24)) as pilot:
        await idle(pilot)
        fill(pilot, *ITEMS[:4], Item("live", Kind.ASSISTANT, "it begins", Status.LIVE))
        await pilot.press("f6", "p")
        place = screen_of(pilot).transcript.cursor.point  # type: ignore[union-attr]
        screen = screen_of(pilot)
        for _ in range(40):
            screen.state.items.grow(4, "\n\nmore of it")
            screen._painter.paint()
        assert _row(pilot) == "❯ another"
        assert screen.transcript.cursor.point == place  # type: ignore[union-attr]


async def test_find_from_reading_brings_the_cursor_to_the_hit(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(80, 24)) as pilot:
        await idle(pilot)
        fill(pilot, *ITEMS)
        await pilot.press("f6", "/", *"question")
        await wait_until(pilot, lambda: "1 of 1" in shown(pilot) and "question" in _row(pilot))
        await pilot.press("escape", "ctrl+right", "y")
        assert _copied(pilot) == "the question"


async def test_an_empty_conversation_is_read_without_harm(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(80, 24)) as pilot:
        await idle(pilot)
        screen = screen_of(pilot)
        screen.state.items.clear()
        screen._painter.paint()
        await pilot.press("f6", "ctrl+f", "a", "enter", "escape", "f6", "x")
        assert draft(pilot) == "x"


async def test_the_editor_gets_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def edit(_app: object, text: str) -> str:
        seen.append(text)
        return text + "!"

    monkeypatch.setattr("rolling_chat.tui.controllers.reading.edit_text", edit)
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(80, 24)) as pilot:
        await idle(pilot)
        fill(pilot, *ITEMS)
        await pilot.press("f6", "e")
        await reads(pilot, "opened a copy")
        assert seen == ["the last answer"]


@pytest.mark.parametrize(
    ("address", "opens"),
    [
        ("https://x.example/a?b=c#d", True),
        ("HTTP://x.example", True),
        ("mailto:ada@x.example", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("https://x.example/\u202egpj.exe", False),
        ("https://x.example/a b", False),
        ("//x.example", False),
        ("https:", False),
    ],
)
def test_only_pages_and_letters_may_be_opened(address: str, opens: bool) -> None:
    assert may_be_opened(address) is opens


@pytest.mark.parametrize(("address", "opened"), [("https://x.example/y", True), ("file:///etc/hosts", False)])
async def test_a_link_opens_only_when_the_person_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, opened: bool
) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(80, 24)) as pilot:
        await idle(pilot)
        links: list[str] = []
        monkeypatch.setattr(pilot.app, "open_url", links.append)
        for key in ("escape", "enter"):
            screen_of(pilot).transcript.post_message(Transcript.LinkClicked(address))
            await wait_until(
                pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen) and address in shown(pilot)
            )
            assert links == []
            await pilot.press("y", "enter")  # too soon
            assert isinstance(pilot.app.screen, ConfirmScreen)
            assert links == []
            await reads(pilot, "esc cancel")
            await pilot.press(key)
            await wait_until(pilot, lambda: pilot.app.screen is screen_of(pilot))
        await wait_until(pilot, lambda: links == [address] if opened else _copied(pilot) == address)
        assert links == ([address] if opened else [])
