"""Keys typed into a terminal at a person's pace or faster, and when each is seen."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.terminal import Terminal

# Letters that stand nowhere else on the screen, so that each is seen when its own key was taken.
FIRST = "ſ"
LETTERS = "".join(chr(number) for number in range(0x100, 0x250) if number != ord(FIRST))
_SHORTEST, _LONGEST = 0.08, 0.14  # seconds between two keys; uneven, so that they fall on no frame's beat
_PATIENCE, _QUIET = 30.0, 0.3  # seconds for the last key to be seen; seconds after it
_LONGEST_CHARACTER = 4  # bytes


@dataclass(frozen=True, slots=True)
class KeyTimes:
    """Milliseconds from a key to its letter on the screen; the least it can be for the `unseen` ones."""

    times: list[float] = field(default_factory=list)
    unseen: int = 0


def type_along(terminal: Terminal, *, is_over: Callable[[], bool], most_seconds: float) -> KeyTimes:
    """Type letter after letter until `is_over`, whatever becomes of them; then see what became of them.

    The emulator draws only after the last key, or its own slowness would be measured: what comes is
    stamped when it is read.
    """
    rng = random.Random(1)
    typed: dict[str, float] = {}
    began = time.perf_counter()
    for letter in LETTERS:
        now = time.perf_counter()
        if is_over() or now - began > most_seconds:
            break
        terminal.type(letter)
        typed[letter] = now
        pause = now + rng.uniform(_SHORTEST, _LONGEST)
        while (left := pause - time.perf_counter()) > 0:
            terminal.gather(left)
    while not is_over() and time.perf_counter() - began < most_seconds:
        terminal.gather(0.05)
    _wait_for_the_last(terminal, typed)
    return _seen(terminal, typed)


def appearances(
    terminal: Terminal, *signs: Callable[[str], bool], quiet: float = 0.15, most_seconds: float = 60.0
) -> list[float]:
    """When each sign first stood on the screen (perf_counter). Raises AssertionError where one never does.

    The emulator draws in the pauses of `quiet` seconds only, so that it holds up no reading.
    """
    began, found = time.perf_counter(), [0.0] * len(signs)
    while not all(found):
        if time.perf_counter() - began > most_seconds:
            raise AssertionError(f"never appeared\n{terminal.text}")
        while terminal.gather(quiet):
            pass
        for at, _ in terminal.drawn():
            screen = terminal.text
            found = [when or (at if sign(screen) else 0.0) for when, sign in zip(found, signs, strict=True)]
    return found


def _wait_for_the_last(terminal: Terminal, typed: dict[str, float]) -> None:
    """Read on until the last letter has come, and what is drawn with it."""
    last, before = list(typed)[-1].encode() if typed else b"", b""
    until = time.perf_counter() + _PATIENCE
    while last not in before and time.perf_counter() < until:
        before = before[-_LONGEST_CHARACTER:] + terminal.gather(0.1)
    until = time.perf_counter() + _QUIET  # an answer that still streams would never be quiet
    while (left := until - time.perf_counter()) > 0:
        terminal.gather(left)


def _seen(terminal: Terminal, typed: dict[str, float]) -> KeyTimes:
    ended = time.perf_counter()
    waiting, times, before = dict(typed), [], b""
    for at, data in terminal.drawn():
        text = (before + data).decode(errors="ignore")
        before = (before + data)[-_LONGEST_CHARACTER:]
        came = [letter for letter in waiting if letter in text]
        if came:
            screen = terminal.text
            times += [1_000 * (at - waiting.pop(letter)) for letter in came if letter in screen]
    # what never came has taken at least so long
    return KeyTimes(times + [1_000 * (ended - at) for at in waiting.values()], len(waiting))
