"""Pictures of the screens, at 80x24 and 160x50; the README shows them.

What differs from machine to machine is held still: the folder's name, the clock, and the sizes of
the system prompt and of the tools' schemas.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from textual.pilot import Pilot

from rolling_chat.agent import Chat, PinChange
from rolling_chat.agent.request.preview import RequestPreview
from rolling_chat.agent.turn import tool_calls
from rolling_chat.context.report import PromptReport
from rolling_chat.messages import Usage
from rolling_chat.tui.controllers.meter import Meter
from rolling_chat.tui.dialogs.help_screen import HelpScreen
from rolling_chat.tui.dialogs.inspector import InspectorScreen
from rolling_chat.tui.widgets.prompt_box import PromptBox
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
    thinks,
    type_line,
    wait_until,
)

NO_COLOR = "no color"
SIZES = [pytest.param((80, 24), id="80x24"), pytest.param((160, 50), id="160x50")]

ANSWER = """\
`tokens()` in **lexer.py** calls `line.strip()` before it splits, so a trailing tab is gone \
before the rule for empty fields can see it. Strip the newline only:

```python
def tokens(line: str) -> list[str]:
    return line.rstrip("\\n").split("\\t")  # a trailing tab is a field
```

- `"a\\tb\\t\\n"` now gives three fields
- lines without a tab are as before
"""
LEXER = "def tokens(line: str) -> list[str]:\n    return line.strip().split('\\t')\n"
COMMAND = "python -m pytest -q tests/test_lexer.py && git diff --stat"

Compare = Callable[..., bool]


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same figures and the same folder's name on every machine."""
    reading = Meter.reading

    def fixed(meter: Meter) -> PromptReport | None:
        report = reading(meter)
        if report is None:
            return None
        trim_at = 23_000 if report.rolling else report.room
        unsure = {"below": 160, "above": 420, "spread": 0.1}
        return replace(report, system=260, tools=390, trim_at=trim_at, until_trim=21_500, **unsure)

    monkeypatch.setattr(Meter, "reading", fixed)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NO_COLOR", raising=False)


def _hold_report_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inspector's figures, which the folder's name and the clock have a part in."""
    report, kept = RequestPreview.report, dict[int, PromptReport]()

    def fixed(preview: RequestPreview) -> PromptReport:
        found = report(preview)
        if id(found) not in kept:
            system, *rows = found.rows
            rows = [replace(system, tokens_before=260, tokens_after=260), *rows]
            kept[id(found)] = replace(found, rows=rows)
        return kept[id(found)]

    monkeypatch.setattr(RequestPreview, "report", fixed)


def _chat(tmp_path: Path, *replies: object) -> Chat:
    folder = tmp_path / "src" / "parser"
    folder.mkdir(parents=True)
    (folder / "lexer.py").write_text(LEXER)
    return make_chat(tmp_path / "home", *replies, folder=folder, window=32_000)


def _conversation(tmp_path: Path) -> Chat:
    return _chat(
        tmp_path,
        calls("read_file", text="I look at the lexer first.", path="lexer.py"),
        thinks(
            "A trailing tab is white space, and strip() takes it. " * 4,
            says(ANSWER, usage=Usage(0, 140, cost=0.01)),
        ),
        calls("run_command", command=COMMAND),
    )


def _uncounted(tmp_path: Path) -> Chat:
    """A turn whose reported size nobody believes, so that no figure depends on the folder's name."""
    read = calls("read_file", text="I look at the lexer first.", path="lexer.py")
    return _chat(tmp_path, read, says(ANSWER, usage=Usage(10, 10)))


async def _ask(pilot: Pilot[None], text: str) -> None:
    await type_line(pilot, text)
    await idle(pilot)
    state = screen_of(pilot).state
    state.last = "done in 4.1 s · 52 tokens/s · 3.1k in, 180 out"
    screen_of(pilot)._painter.paint()


async def _draft(pilot: Pilot[None]) -> None:
    """An answered question, and a draft of the next with its price."""
    await _ask(pilot, "Why does the lexer drop trailing tabs?")
    await pilot.press(*"and the fix?")
    await reads(pilot, "this message +8 tokens")


async def _ask_leave(pilot: Pilot[None], clock: Clock) -> None:
    """An answered question, and a command that waits for leave."""
    await _ask(pilot, "Why does the lexer drop trailing tabs?")
    await type_line(pilot, "Run its tests.")
    await wait_until(pilot, lambda: pilot.app.screen.query(Question) and "asks permission" in shown(pilot))
    await listens(pilot, clock)


def _draw(
    compare: Compare,
    chat: Chat,
    tmp_path: Path,
    size: tuple[int, int],
    scene: Callable[[Pilot[None]], Awaitable[None]],
    *,
    clock: Clock | None = None,
    look: str = "midnight",
) -> bool:
    async def before(pilot: Pilot[None]) -> None:
        pilot.app.theme = "midnight" if look == NO_COLOR else look
        screen_of(pilot).query_one(PromptBox).cursor_blink = False
        await reads(pilot, "/ 32k")
        await scene(pilot)
        await pilot.pause()

    with pytest.MonkeyPatch.context() as patch:
        # how long a call took is shown where it took a second: on a busy machine any may
        patch.setattr(tool_calls, "time", SimpleNamespace(monotonic=lambda: 0.0))
        if look == NO_COLOR:
            patch.setenv("NO_COLOR", "1")
        app = make_app(chat, tmp_path, clock=clock or Clock())
        return compare(app, terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", SIZES)
def test_first_screen(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    async def scene(pilot: Pilot[None]) -> None:
        return

    assert _draw(snap_compare, _chat(tmp_path), tmp_path, size, scene)


@pytest.mark.parametrize("size", SIZES)
def test_conversation(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    async def scene(pilot: Pilot[None]) -> None:
        await _draft(pilot)

    assert _draw(snap_compare, _conversation(tmp_path), tmp_path, size, scene)


@pytest.mark.parametrize("size", SIZES)
def test_approval(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    clock = Clock()

    async def scene(pilot: Pilot[None]) -> None:
        await _ask_leave(pilot, clock)

    assert _draw(snap_compare, _conversation(tmp_path), tmp_path, size, scene, clock=clock)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("look", ["daylight", NO_COLOR])
def test_conversation_in_other_looks(
    snap_compare: Compare,
    tmp_path: Path,
    size: tuple[int, int],
    look: str,
) -> None:
    """With text selected, and a draft that has its price."""

    async def scene(pilot: Pilot[None]) -> None:
        await _draft(pilot)
        await pilot.press("f6", "shift+up", "shift+up", "shift+up")

    assert _draw(snap_compare, _conversation(tmp_path), tmp_path, size, scene, look=look)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("look", ["daylight", NO_COLOR])
def test_approval_in_other_looks(
    snap_compare: Compare,
    tmp_path: Path,
    size: tuple[int, int],
    look: str,
) -> None:
    clock = Clock()

    async def scene(pilot: Pilot[None]) -> None:
        await _ask_leave(pilot, clock)

    assert _draw(snap_compare, _conversation(tmp_path), tmp_path, size, scene, clock=clock, look=look)


@pytest.mark.parametrize("size", SIZES)
def test_pins(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    chat = _uncounted(tmp_path)

    async def scene(pilot: Pilot[None]) -> None:
        await _ask(pilot, "Why does the lexer drop trailing tabs?")
        chat.session.pins.make(PinChange.EXCLUDE, "r4")  # the command's line has figures of this machine
        await type_line(pilot, "/pin r3")
        await tells(pilot, "Pinned r3")

    assert _draw(snap_compare, chat, tmp_path, size, scene)


@pytest.mark.parametrize("size", SIZES)
def test_inspector(
    snap_compare: Compare, tmp_path: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _hold_report_still(monkeypatch)

    async def scene(pilot: Pilot[None]) -> None:
        await _ask(pilot, "Why does the lexer drop trailing tabs?")
        await type_line(pilot, "/pin r3")
        await tells(pilot, "Pinned r3")
        await type_line(pilot, "/context")
        await wait_until(pilot, lambda: isinstance(pilot.app.screen, InspectorScreen))
        await pilot.press("p")
        await reads(pilot, "esc cancels")

    assert _draw(snap_compare, _uncounted(tmp_path), tmp_path, size, scene)


@pytest.mark.parametrize("size", SIZES)
def test_help(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    async def scene(pilot: Pilot[None]) -> None:
        await pilot.press("f1")
        await wait_until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))

    assert _draw(snap_compare, _chat(tmp_path), tmp_path, size, scene)


@pytest.mark.parametrize("size", SIZES)
def test_commands(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    async def scene(pilot: Pilot[None]) -> None:
        await pilot.press("/")
        await reads(pilot, "/rolling-context")

    assert _draw(snap_compare, _chat(tmp_path), tmp_path, size, scene)


@pytest.mark.parametrize("size", SIZES)
def test_approval_of_an_edit(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    """Several hunks, of which not all are in sight."""
    clock = Clock()
    edits = [{"old": f"rule_{number} =", "new": f"RULE_{number}: Rule ="} for number in (3, 20, 41, 60)]
    chat = _chat(tmp_path, calls("multi_edit", text="I name the rules.", path="rules.py", edits=edits))
    rules = "".join(f"rule_{number} = Rule({number})\n" for number in range(1, 71))
    (tmp_path / "src" / "parser" / "rules.py").write_text(rules)

    async def scene(pilot: Pilot[None]) -> None:
        await type_line(pilot, "Name the rules as constants.")
        await reads(pilot, "Allow multi_edit?", "asks permission")
        await listens(pilot, clock)

    assert _draw(snap_compare, chat, tmp_path, size, scene, clock=clock)
