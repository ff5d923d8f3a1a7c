"""Every list, modal, bar and mode of the screen with its keys, and a probe: does what is typed then echo?"""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from textual.pilot import Pilot

from rolling_chat.agent.questions import Answer, UserQuestion
from rolling_chat.commands.base import Choice, Column, Table
from rolling_chat.tui.controllers import reading
from rolling_chat.tui.dialogs.confirm_screen import ConfirmScreen
from rolling_chat.tui.dialogs.editor_screen import EditorScreen
from rolling_chat.tui.dialogs.help_screen import HelpScreen
from rolling_chat.tui.dialogs.pickers import Picker
from rolling_chat.tui.dialogs.tables_screen import TablesScreen
from rolling_chat.tui.dialogs.text_screen import TextScreen
from rolling_chat.tui.keymap import Keymap
from rolling_chat.tui.widgets.question import Question
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tui import (
    ScriptedProvider,
    idle,
    make_app,
    make_chat,
    says,
    screen_of,
    type_line,
    wait_until,
)

PROBE = "~"
_MOST_ESCAPES = 8
# these end the program or stop it; their tests are elsewhere
_NOT_WALKED = {"ctrl+q", "ctrl+z"}
_COMMON = ("enter", "escape", "tab", "shift+tab", "up", "down", "backspace", "a", "n", "y", "slash", "1")
_IN_THE_BOX = ("ctrl+j", "ctrl+n", "ctrl+p", "ctrl+r", "ctrl+x", "ctrl+e", "shift+enter", "alt+enter")
_READING = (
    *("enter", "v", "y", "c", "m", "e", "o", "slash", "pageup", "pagedown", "shift+up", "shift+down"),
    *reading._ROWS,
    *reading._EDGES,
    *reading._ITEMS,
    *reading._ALONG,
    *reading._SHIFTED,
)
_ANSWERS = (Answer("yes", "yes"), Answer("no", "no", escape=True))


@dataclass(frozen=True)
class Mode:
    """A state of the screen in which keys mean something of their own; `keys` that no binding names."""

    name: str
    enter: Callable[[Pilot[None]], Awaitable[object]]
    keys: Sequence[str] = ()


class Stuck(SystemExit):
    """The loop has not turned for too long: not even a timeout of its own would be heard."""


@asynccontextmanager
async def walking(home: Path, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Pilot[None]]:
    """The screen over a conversation of two turns; its clock leaps, so that no two keys come in haste."""
    said = "# An answer\n\n- one\n\n```python\nprint(1)\n```"
    chat = make_chat(home, says(said), says(said))
    ticks = itertools.count(1_000.0, 10.0)
    async with make_app(chat, home, clock=lambda: next(ticks)).run_test(size=size) as pilot:
        for text in ("the first question", "the second question"):
            await type_line(pilot, text)
            await idle(pilot)
        yield pilot


async def asks(pilot: Pilot[None]) -> list[str]:
    """Ask a question; the list gets its answer."""
    answers: list[str] = []
    screen = screen_of(pilot)
    question = UserQuestion("Run a command", "touch made\n" * 30, _ANSWERS)

    async def ask() -> None:
        answers.append((await screen._asking.ask(question)).value)

    screen.work(ask)
    await wait_until(pilot, lambda: isinstance(screen.focused, Question))
    return answers


async def _pressed(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)


def _opens(make: Callable[[], object]) -> Callable[[Pilot[None]], Awaitable[object]]:
    async def enter(pilot: Pilot[None]) -> None:
        screen = make()
        pilot.app.push_screen(screen)  # type: ignore[call-overload]
        await wait_until(pilot, lambda: pilot.app.screen is screen and pilot.app.focused is not None)

    return enter


def _by(*keys: str) -> Callable[[Pilot[None]], Awaitable[object]]:
    return lambda pilot: _pressed(pilot, *keys)


async def _answering(pilot: Pilot[None]) -> None:
    screen = screen_of(pilot)
    provider = screen.chat._runtime.provider
    assert isinstance(provider, ScriptedProvider)
    provider.replies.insert(0, [*says("The answer has begun")[:1], asyncio.Event()])
    screen.prompt.put("go on")
    await pilot.press("enter")
    await wait_until(pilot, lambda: screen.state.busy)


_CHOICES = [Choice(f"value {number}", f"label {number}") for number in range(30)]
_TABLES = [Table((Column("a"), Column("b")), [(str(row), "cell") for row in range(30)]) for _ in range(2)]

MODES = (
    Mode("prompt", _by(), _IN_THE_BOX),
    Mode("draft", _by("a", "space", "b", "ctrl+j", "c"), _IN_THE_BOX),
    Mode("completion", _by("slash"), _IN_THE_BOX),
    Mode("history-search", _by("ctrl+r"), _IN_THE_BOX),
    Mode("reading", _by("f6"), _READING),
    Mode("selecting", _by("f6", "v"), _READING),
    Mode("find", _by("ctrl+f", "q"), _IN_THE_BOX),
    Mode("find-while-reading", _by("f6", "slash", "q", "enter"), _READING),
    Mode("answering", _answering, _IN_THE_BOX),
    Mode("question", asks, ("home", "end", "pageup", "pagedown")),
    Mode("help", _opens(lambda: HelpScreen(Keymap()))),
    Mode("inspector", _by("ctrl+g")),
    Mode("tables", _opens(lambda: TablesScreen("Tables", ["lead"], _TABLES))),
    Mode("text", _opens(lambda: TextScreen("Text", "line\n" * 100))),
    Mode("picker", _opens(lambda: Picker("Choose", _CHOICES))),
    Mode("editor", _opens(lambda: EditorScreen("Edit", "lead", "text\n" * 40))),
    Mode("confirm", _opens(lambda: ConfirmScreen("Take it?", "question", "text\n" * 40, "take it"))),
)


def keys_of(pilot: Pilot[None], mode: Mode) -> list[str]:
    """The keys that a mode binds: its own and those around it; of several for one action only one."""
    bound = {(each.node, each.binding.action): key for key, each in pilot.app.screen.active_bindings.items()}
    keys = dict.fromkeys([*_COMMON, *mode.keys, *bound.values()])
    return [key for key in keys if key not in _NOT_WALKED and not key.startswith("super+")]


async def echoes(pilot: Pilot[None], *keys: str) -> None:
    """Press the keys, then Esc as often as the prompt box has not the keys: what is typed then is in it."""
    with _limited(keys):
        await pilot.press(*keys)
        for _ in range(_MOST_ESCAPES):
            if _writes(pilot):
                break
            await pilot.press("escape")
        assert _writes(pilot), f"after {keys} {pilot.app.focused} on {pilot.app.screen} has the keys"
        await pilot.press(PROBE)
        prompt = screen_of(pilot).prompt
        assert PROBE in prompt.text, f"after {keys} a key is lost: {prompt.text!r}"
        prompt.put("")


def _writes(pilot: Pilot[None]) -> bool:
    screen = screen_of(pilot)
    free = not screen.prompt.searching and not screen.state.busy and not screen.query(Question)
    return free and pilot.app.screen is screen and pilot.app.focused is screen.prompt


@contextmanager
def _limited(keys: Sequence[str]) -> Iterator[None]:
    """Have a loop that spins forever fail by an alarm: it would turn no timeout of its own."""

    def stuck(_number: int, _frame: FrameType | None) -> None:
        raise Stuck(f"stuck after {keys}")

    before = signal.signal(signal.SIGALRM, stuck)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
