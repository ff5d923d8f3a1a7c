"""What the walk does: a table of actions with their weights."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rolling_chat.commands import all_commands
from tests.soak import keys
from tests.soak.pane import ECHO_SECONDS, SCALE, Pane, PromiseError, state_of

if TYPE_CHECKING:
    from tests.soak.walk import Walk

OPENAI, ANTHROPIC, OFFLINE = "openai/gpt-4o", "anthropic/claude-sonnet-4-5", "demo/offline"
_ESC_SECONDS = 0.5 * SCALE  # Esc and a letter that are read at once are Alt and the letter
_PRIMING = 3  # tokens that a request has once, whatever its messages
_QUESTIONS = (
    "What do the files say?",
    "Read notes.txt and tell me about the lexer.",
    "run `echo made by hand`",
    "Fix it: `strip()` drops tabs " + "and so on " * 60,
    "漢字 👩‍💻 é مرحبا",
    "//not a command",
    "/etc/hosts is missing",
    "a\nb\nc",
)
_SIZES = ((80, 24), (100, 30), (120, 40), (60, 16), (40, 10), (30, 6), (160, 50), (79, 23))
_PASTES = (
    "one line",
    "four\nlines\nof\ntext",
    "".join(f"line {n} of a log with some words in it\n" for n in range(3_000)),
    "x" * 20_000,
    "/quit\n\x11\x03harmless",
    "\x1b[31mred\x1b[0m\r\n\x1b\rharmless",
    "",
    "漢字\u200b\u202e\u2028 é 👩‍💻",
)

# What a command is given, where it takes anything.
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "rolling-context": (
        "", "on", "off", "status", "preview", "preview max_history_tokens=0", "set max_history_tokens 0",
        "set trim_to 0.8", "set trim_to 7", "undo", "nonsense",
    ),
    "compact": ("", "the parser", "undo"),
    "lost": ("",),
    "pin": ("", "last", "turn", "turn 1", "r1", "r3 r4", "r999", "nonsense"),
    "unpin": ("", "last", "turn", "r1"),
    "exclude": ("", "last", "turn", "r2", "r3"),
    "include": ("", "last", "r2", "r3"),
    "recall": ("r1", "r2", "lexer", "", "r99999", '"'),
    "permissions": ("", "remove 1", "nonsense"),
    "processes": ("", "all", "1", "nonsense"),
    "model": (OPENAI, ANTHROPIC, OPENAI, ANTHROPIC, OFFLINE, ""),
    "rewind": ("", "1", "2", "99"),
    "sessions": ("", "say"),
    "search": ("lexer", "the", '"trailing tabs"', "mark*", "", "'(*"),
    "resume": ("", "a", "zzzz"),
    "rename": ("", "a title of my own", "x" * 300),
    "export": ("", "markdown", "html", "json", "jsonl", "out.md", "../home/out.md"),
    "copy": ("", "all", "code", "code 2", "message r1", "nonsense"),
    "theme": ("", "midnight", "daylight", "contrast", "nonsense"),
}  # fmt: skip
# `quit` ends the program and has an action of its own
COMMANDS = tuple(command.name for command in all_commands() if command.name != "quit")
UNKNOWN = ("cost", "clear", "exit", "rollingcontext", "x" * 200)


@dataclass(frozen=True)
class Action:
    """One thing to do. `weight` in an episode, `steady` in a long session, which is never left."""

    name: str
    weight: float
    steady: float
    run: Callable[[Walk, random.Random], None]


def choose(rng: random.Random, *, steady: bool, without: Collection[str]) -> Action:
    """The next action."""
    actions = [action for action in ACTIONS if action.name not in without]
    return rng.choices(actions, [one.steady if steady else one.weight for one in actions])[0]


def _say(walk: Walk, rng: random.Random) -> None:
    """Ask something, and perhaps wait for the answer."""
    text = f"say{walk.next_mark()}x {rng.choice(_QUESTIONS)}"
    if walk.steady:
        _keep_rolling(walk)
    _empty_box(walk, rng)
    before = _Moment(walk)
    walk.press(text)
    walk.press(keys.ENTER)
    if walk.patience and not before.wait_begun(walk, text):
        # a list, a search, a question had the keys: Esc gives them back, as it does for a user
        walk.journal.write("not sent", screen=walk.pane.terminal.text)
        walk.press(keys.ESC)
        walk.pump(_ESC_SECONDS)
        return
    walk.journal.count("messages")
    _wait(walk, walk.patience or rng.choice((0.0, 0.3, 1.0, 3.0, 6.0)))
    if walk.patience and walk.pane.is_busy:  # else what is said next would only be queued
        walk.press(keys.ESC)
        _wait(walk, ECHO_SECONDS)
    before.judge_gauge(walk, text)


class _Moment:
    """What the server had counted, and what the gauge showed, before a message."""

    def __init__(self, walk: Walk) -> None:
        self._server = walk.server
        self._served, self._messages = self._server.served, list(self._server.messages)
        # a turn that began with the key before is not on the screen yet
        is_settled = time.monotonic() - self._server.served_at > SCALE
        self._gauge = _gauge(walk.pane) if is_settled else None

    def wait_begun(self, walk: Walk, text: str) -> bool:
        """Wait until the message is on its way; return False where it seems not to be sent at all.

        The built-in model has often answered before anybody looks: then the message is in the transcript.
        """
        until = time.monotonic() + ECHO_SECONDS
        said = f"\n ❯ {text.partition(' ')[0]} "
        while not walk.pane.is_busy and self._server.served == self._served:
            if said in walk.pane.terminal.text:
                return True
            if time.monotonic() > until:
                return False
            walk.pump(0.05)
        return True

    def judge_gauge(self, walk: Walk, text: str) -> None:
        """What it showed, and the new message, are what the server then counted of the next request.

        Only where that is the request before, the reply and the new message: no trim, no other branch.
        """
        server, messages = self._server, self._server.messages
        if self._gauge is None or server.wire != "openai" or server.served != self._served + 1:
            return
        if (
            walk.is_shared
            or not self._messages
            or messages[:-2] != self._messages
            or text not in str(messages[-1])
        ):
            return
        shown, slack = self._gauge
        counted = server.tokens - server.count({"messages": messages[-1:]}) + _PRIMING
        walk.journal.count("gauge checks")
        walk.journal.write("gauge", shown=shown, counted=counted, slack=slack)
        if abs(counted - shown) > slack:
            walk.journal.violate(f"the gauge showed {shown:.0f} ± {slack:.0f} where {counted} were counted")


_GAUGE = re.compile(r"(~?)([\d.]+)(k?)(?: ±(\d+)%)? / [\d.]+k")


def _gauge(pane: Pane) -> tuple[float, float] | None:
    """The figure of the gauge and how far off it may be, both in tokens; None unless it is confirmed."""
    if pane.is_busy or not (found := _GAUGE.search(pane.terminal.text)) or found[1]:
        return None
    shown = float(found[2]) * (1_000 if found[3] else 1)
    rounding = (50 if "." in found[2] else 500) if found[3] else 0.5
    return shown, rounding + shown * int(found[4] or 1) / 100


def _wait(walk: Walk, seconds: float) -> None:
    """Wait until nothing is being done, so many seconds at most."""
    until = time.monotonic() + seconds
    walk.pump(0.1)
    while walk.pane.is_busy and not walk.pane.has_ended and time.monotonic() < until:
        walk.pump(0.05)
        if walk.patience and walk.pane.is_asking:
            walk.press(keys.TAB)
            walk.pump(0.5)
            walk.press(keys.ENTER)


def _keep_rolling(walk: Walk) -> None:
    """Turn rolling context on where a key has turned it off: a full session would send nothing more."""
    until = time.monotonic() + ECHO_SECONDS
    if "rolling: off" in walk.pane.terminal.text:
        walk.pane.probe()
        walk.press(keys.CTRL_U + "/rolling-context on")
        walk.press(keys.ENTER)
    while "rolling: off" in walk.pane.terminal.text and time.monotonic() < until:
        walk.pump(0.05)


def _empty_box(walk: Walk, rng: random.Random) -> None:
    """Go to the prompt and empty it, as a careful user would; now and then not."""
    if rng.random() < 0.9:
        walk.pane.probe()
        walk.press(keys.CTRL_U)


def _command(walk: Walk, rng: random.Random) -> None:
    name = rng.choice([*COMMANDS, rng.choice(UNKNOWN)])
    argument = rng.choice(_ARGUMENTS.get(name, ("",)))
    if walk.steady and name in _LEAVING:
        return
    _empty_box(walk, rng)
    walk.press(f"/{name} {argument}".rstrip())
    walk.pump(rng.choice((0.0, 0.05)))
    walk.press(keys.ENTER)
    walk.journal.count(f"/{name}" if name in COMMANDS else "unknown command")
    walk.pump(rng.choice((0.05, 0.2, 0.5)))
    for _ in range(rng.choice((0, 0, 1, 2, 4))):
        walk.press(rng.choice((*keys.SHOWING, *keys.ANSWERS)))
        walk.pump(0.02)


_LEAVING = {"new", "fork", "sessions", "resume", "undo", "rewind", "branches", "search"}


def _mode(walk: Walk, rng: random.Random) -> None:
    """Go into a mode and press what is bound there, and what is not."""
    name = rng.choice(sorted(keys.MODES))
    way_in, inside = keys.MODES[name]
    walk.press(way_in)
    for _ in range(rng.randrange(1, 7)):
        walk.pump(rng.choice((0.0, 0.02, 0.05)))
        walk.press(
            rng.choice(inside) if rng.random() < 0.8 else rng.choice((keys.ESC, keys.TAB, "a", keys.F6))
        )
    walk.pump(0.05)


def _any_keys(walk: Walk, rng: random.Random) -> None:
    table = (*keys.MOVING, *keys.WITH_MODIFIERS, *keys.CONTROL, *keys.ALT, *keys.FUNCTION, *keys.KITTY)
    for _ in range(rng.randrange(1, 8)):
        walk.press(rng.choice((*table, "a", "é", "漢", "👩‍💻", " ", keys.ESC)))
        walk.pump(rng.choice((0.0, 0.0, 0.03)))


def _answer(walk: Walk, rng: random.Random) -> None:
    """As if a question stood there, which it often does after a call of run_command."""
    walk.pane.probe()
    for _ in range(rng.randrange(1, 4)):
        walk.press(rng.choice(keys.ANSWERS))
        walk.pump(0.05)


def _paste(walk: Walk, rng: random.Random) -> None:
    walk.press(keys.pasted(rng.choice(_PASTES)))
    walk.pump(0.05)
    walk.press(rng.choice(("", "", keys.ENTER, keys.CTRL_U, keys.TAB)))


def _resize(walk: Walk, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 3))):
        walk.pane.resize(*rng.choice(_SIZES))
        walk.pump(rng.choice((0.0, 0.05)))


def _mouse(walk: Walk, rng: random.Random) -> None:
    columns, rows = walk.pane.size
    column, row = rng.randint(1, columns), rng.randint(1, rows)
    match rng.randrange(4):
        case 0:
            walk.press(keys.mouse(0, column, row) + keys.mouse(0, column, row, up=True))
        case 1:
            to = rng.randint(1, columns), rng.randint(1, rows)
            walk.press(keys.mouse(0, column, row) + keys.mouse(32, *to) + keys.mouse(0, *to, up=True))
        case 2:
            walk.press(keys.mouse(rng.choice((64, 65)), column, row) * rng.randrange(1, 12))
        case 3:
            click = keys.mouse(0, column, row) + keys.mouse(0, column, row, up=True)
            walk.press(click * rng.choice((2, 3)))
    walk.pump(0.05)


def _mouse_outside(walk: Walk, rng: random.Random) -> None:
    columns, rows = walk.pane.size
    inside = rng.randint(1, columns), rng.randint(1, rows)
    outside = rng.choice(((columns + 1, 1), (1, rows + 1), (columns + 50, rows + 50), (columns + 1, rows)))
    walk.press(
        rng.choice(
            (
                keys.mouse(0, *outside),
                keys.mouse(0, *outside, up=True),
                keys.mouse(0, *inside) + keys.mouse(32, *outside) + keys.mouse(0, *outside, up=True),
            )
        )
    )
    walk.pump(0.05)


def _replies(walk: Walk, rng: random.Random) -> None:
    walk.press(rng.choice(keys.REPLIES))


def _odd_bytes(walk: Walk, rng: random.Random) -> None:
    walk.press(rng.choice(keys.ODD_BYTES))
    walk.pump(0.05)


def _suspend(walk: Walk, _rng: random.Random) -> None:
    """Ctrl+Z and fg."""
    pane = walk.pane
    walk.press(keys.CTRL_Z)
    until = time.monotonic() + ECHO_SECONDS
    while state_of(pane.pid) not in {"T", ""} and time.monotonic() < until:
        walk.pump(0.05)
    if not pane.has_ended:
        pane.terminal.go_on()
    walk.pump(0.2)


def _kill(walk: Walk, _rng: random.Random) -> None:
    """kill -9, and go on where it was."""
    walk.pane_killed(walk.pane.kill())
    walk.reopen("--continue")


def _terminate(walk: Walk, rng: random.Random) -> None:
    number = rng.choice((signal.SIGTERM, signal.SIGHUP))
    os.kill(walk.pane.pid, number)
    walk.pane.finish(-number, 128 + number)
    walk.reopen("--continue")


def _quit(walk: Walk, rng: random.Random) -> None:
    if rng.random() < 0.5:
        walk.pane.quit()
    else:
        walk.pane.probe()
        walk.press(keys.CTRL_U + "/quit")
        walk.pump(0.1)
        walk.press(keys.ENTER)
        walk.pane.pump(0.3)
        if not walk.pane.has_ended:  # a queued message, a completion, a draft: by key, then
            walk.pane.quit()
        else:
            walk.pane.finish()
    walk.reopen(*rng.choice((("--continue",), ("--continue",), ())))


def _second(walk: Walk, rng: random.Random) -> None:
    """Open another terminal on the same store, or go to it, or close it."""
    walk.second(rng.choice(("open", "other", "other", "close")))


def _script(walk: Walk, rng: random.Random) -> None:
    """`-p` on the same store."""
    argv = [
        "-p",
        f"say{walk.next_mark()}x in a script",
        *rng.choice((["--continue"], [], ["--output-format", "json"])),
    ]
    running = subprocess.Popen(
        [sys.executable, "-m", "rolling_chat", *argv],
        cwd=walk.folder,
        env=walk.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + 60 * SCALE
    while running.poll() is None and time.monotonic() < until:
        walk.pump(0.05)
    running.kill()
    said = running.communicate()[1].decode(errors="replace")[-1000:]
    walk.journal.write("script", argv=argv, code=running.returncode, err=said)
    if running.returncode not in {0, 1, 2, 3} or "Traceback" in said:
        raise PromiseError(f"-p ended with {running.returncode}: {said}")


def _idle(walk: Walk, rng: random.Random) -> None:
    walk.pump(rng.choice((0.1, 0.5)))


ACTIONS: tuple[Action, ...] = (
    Action("say", 20, 60, _say),
    Action("command", 22, 12, _command),
    Action("mode", 12, 6, _mode),
    Action("keys", 10, 3, _any_keys),
    Action("answer", 6, 4, _answer),
    Action("paste", 4, 1, _paste),
    Action("resize", 4, 1.5, _resize),
    Action("mouse", 6, 2, _mouse),
    Action("mouse-outside", 2, 0.5, _mouse_outside),
    Action("terminal-replies", 1, 0.5, _replies),
    Action("odd-bytes", 2, 0.5, _odd_bytes),
    Action("suspend", 1, 0.3, _suspend),
    Action("kill", 1.2, 0.15, _kill),
    Action("terminate", 0.6, 0.1, _terminate),
    Action("quit", 0.8, 0.1, _quit),
    Action("second", 2, 0, _second),
    Action("script", 0.4, 0, _script),
    Action("idle", 3, 1, _idle),
)
