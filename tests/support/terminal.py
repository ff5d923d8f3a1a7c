"""A real pseudo-terminal with a terminal emulator behind it: what a person would type and see."""

from __future__ import annotations

import base64
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

import pyte
from wcwidth import wcwidth

from tests.support.patience import PATIENCE_SECONDS
from tests.support.processes import wait_until_ended

_MOST_AT_ONCE = 256  # bytes: what a terminal that is ready for any takes without blocking
_LOOK_EVERY = 0.1  # seconds between looks at a condition while nothing is painted

_OSC_52 = re.compile(rb"\]52;[a-z]*;([A-Za-z0-9+/=]+)[\x07\x1b]")  # with its end: it may come in pieces
# Is a paint marked where it begins and ends? Yes, and this is the mode in between.
_ASKS_FOR_MARKS, _HAS_MARKS, _PAINTING = b"\x1b[?2026$p", "\x1b[?2026;2$y", 2026
_PAINTED = b"\x1b[?2026l"
_OTHER_SCREEN = 1049


_JOINED = re.compile("\u200d.")

Start: TypeAlias = Callable[[Sequence[str], Mapping[str, str], Path | str, int], int]
"""Starts a program in a terminal, whose descriptor it is given; returns the number of the child."""


def start_program(argv: Sequence[str], environ: Mapping[str, str], folder: Path | str, terminal: int) -> int:
    """Start any program in a terminal."""
    pid = os.fork()
    if pid == 0:
        try:
            os.login_tty(terminal)
            os.chdir(folder)
            os.execvpe(argv[0], list(argv), environ)
        finally:  # what cannot be started is no second run of the tests
            os._exit(127)
    return pid


class _Screen(pyte.Screen):
    """Pyte knows no other screen: whoever goes to it finds it empty, as in xterm and tmux.

    Nor does it know graphemes: it drops all that follows a character that takes no room.
    """

    def draw(self, data: str) -> None:
        if not data.isascii():
            data = _JOINED.sub("", data)
            data = "".join(char for char in data if wcwidth(char) > 0 or unicodedata.combining(char))
        super().draw(data)

    def set_mode(self, *modes: int, **kind: bool) -> None:
        super().set_mode(*modes, **kind)
        if _OTHER_SCREEN in modes and kind.get("private"):
            self.erase_in_display(2)


class Terminal:
    """A child process in a pseudo-terminal of `columns` by `rows`, its screen read by pyte.

    A context manager: at the end the child is killed, whatever became of the test. Without `echo` the
    system does not show what is typed before the child takes the keys over. `start` starts the child.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str],
        folder: Path | str,
        columns: int = 100,
        rows: int = 30,
        echo: bool = True,
        start: Start = start_program,
    ) -> None:
        self._screen = _Screen(columns, rows)
        self._screen.write_process_input = self._answer  # type: ignore[method-assign]
        self._stream = pyte.ByteStream(self._screen)
        self.raw = bytearray()
        self._undrawn: deque[tuple[float, bytes]] = deque()
        self._begun = b""  # of a paint that has not come whole
        self._ended = False
        self._master, slave = pty.openpty()
        # before the child is there: it may be quicker than we are
        self._set_size(columns, rows)
        if not echo:
            settings = termios.tcgetattr(slave)
            settings[3] &= ~termios.ECHO
            termios.tcsetattr(slave, termios.TCSANOW, settings)
        self.modes_before, self.line_settings_before = self.modes, self.line_settings
        colors = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.pid = start(argv, {**colors, **environ}, folder, slave)
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.pid:
            self.kill()
        if self._master >= 0:
            os.close(self._master)

    @property
    def lines(self) -> list[str]:
        """The screen as it stands, without trailing blanks."""
        return [line.rstrip() for line in self.padded_lines]

    @property
    def padded_lines(self) -> list[str]:
        """The screen as it stands, every line as wide as the window."""
        return [self._row(number) for number in range(self._screen.lines)]

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines)

    @property
    def modes(self) -> set[int]:
        """The private modes that are set: 25 the cursor, 1049 the other screen, 2004 bracketed paste, …."""
        return {mode >> 5 for mode in self._screen.mode if mode >= 32}

    @property
    def copied(self) -> list[str]:
        """What the terminal was told to put on its clipboard, in order."""
        return [base64.b64decode(text).decode() for text in _OSC_52.findall(self.raw)]

    @property
    def has_ended(self) -> bool:
        """Has the child closed the terminal?"""
        return self._ended

    def pump(self, seconds: float) -> None:
        """Show what comes within `seconds`."""
        until = time.monotonic() + seconds
        while not self._ended and (left := until - time.monotonic()) > 0:
            self._read(left)

    @property
    def line_settings(self) -> list[object]:
        """How the system treats what is typed: echo, line by line, …."""
        return list(termios.tcgetattr(self._master))

    def type(self, text: str) -> None:
        """Send keys as a terminal would."""
        os.write(self._master, text.encode())

    def send(self, data: bytes, seconds: float = PATIENCE_SECONDS) -> None:
        """Send raw bytes, and read meanwhile: a child that writes and is not read may take no keys.

        Raises AssertionError where the child takes nothing for `seconds`.
        """
        until = time.monotonic() + seconds
        while data and not self._ended:
            _, writable, _ = select.select([], [self._master], [], _LOOK_EVERY)
            if writable:
                data = data[os.write(self._master, data[:_MOST_AT_ONCE]) :]
                until = time.monotonic() + seconds
            self._read(0.0)
            if time.monotonic() >= until:
                raise AssertionError(f"the program takes no keys\n{self.text}")

    def say(self, text: str) -> None:
        """Type a line, see it in the prompt box, send it."""
        self.type(text)
        self.see(f"❯ {text}")
        self.type("\r")

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window."""
        self._screen.resize(rows, columns)
        self._set_size(columns, rows)

    def resize_blank(self, columns: int, rows: int) -> None:
        """Change the size of the window to another; all that is seen then was painted afterwards."""
        self._screen.erase_in_display(2)
        self.resize(columns, rows)

    def see(self, *wanted: str, seconds: float = PATIENCE_SECONDS) -> str:
        """Wait until all of `wanted` stand on the screen; returns the screen."""
        self.wait_until(
            lambda: all(word in self.text for word in wanted), f"never saw {wanted}", seconds=seconds
        )
        return self.text

    def see_either(self, *wanted: str) -> None:
        """Wait until one of `wanted` stands on the screen."""
        self.wait_until(lambda: any(word in self.text for word in wanted), f"never saw one of {wanted}")

    def wait_until(
        self, condition: Callable[[], bool], what: str, *, seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Read the terminal until `condition` holds, also one that is not about the screen.

        Nothing is looked at in the middle of a paint. Raises AssertionError with the screen.
        """
        until = time.monotonic() + seconds
        while _PAINTING in self.modes or not condition():
            if not self._read(_LOOK_EVERY) and (self._ended or time.monotonic() >= until):
                raise AssertionError(f"{what}\n{self.text}")

    def gather(self, seconds: float) -> bytes:
        """Take what comes next within `seconds`, and leave drawing it to `drawn`.

        For measuring: the emulator is slower than what it is to measure.
        """
        data = self._take(seconds)
        if data:
            self._undrawn.append((time.perf_counter(), data))
        return data

    def drawn(self) -> Iterator[tuple[float, bytes]]:
        """Draw what was gathered, read by read; after each, when it came (perf_counter) and what it was."""
        while self._undrawn:
            at, data = self._undrawn.popleft()
            self._draw(data)
            yield at, data

    def leave(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Read until the child has ended; returns its exit code."""
        until = time.monotonic() + seconds
        while self._read(until - time.monotonic()):
            pass
        if time.monotonic() >= until:
            raise AssertionError(f"the program did not end\n{self.text}")
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def vanish(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Close the window over the child's head, and wait until the child has ended."""
        os.close(self._master)
        self._master = -1
        wait_until_ended(self.pid, seconds)
        os.waitpid(self.pid, 0)
        self.pid = 0

    def signal(self, number: int) -> None:
        """Send the child a signal."""
        os.kill(self.pid, number)

    def wait_until_stopped(self) -> None:
        """Wait until the child is suspended, as by a shell's ctrl+z."""
        status = 0

        def is_stopped() -> bool:
            nonlocal status
            pid, status = os.waitpid(self.pid, os.WUNTRACED | os.WNOHANG)
            return pid == self.pid

        self.wait_until(is_stopped, "the program was not suspended")
        assert os.WIFSTOPPED(status), self.text

    def go_on(self) -> None:
        """What a shell's `fg` does: let the child and all that it started run again."""
        os.killpg(self.pid, signal.SIGCONT)

    @property
    def takes_lines(self) -> bool:
        """Is the terminal as a shell wants it: echoing, a line at a time?"""
        modes = termios.tcgetattr(self._master)[3]
        return bool(modes & termios.ECHO) and bool(modes & termios.ICANON)

    def kill(self) -> None:
        """kill -9, as a crash or an impatient person would."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.pid = 0

    def drain(self) -> None:
        """Draw what was gathered, and what a child that is dead had still written."""
        for _ in self.drawn():
            pass
        while self._read(0.0):
            pass

    def _read(self, seconds: float) -> bool:
        """Feed what comes to the emulator; False at the end of the child or of patience."""
        data = self._take(seconds)
        # a screen that is painted without a pause is still seen between two paints
        whole = data.rfind(_PAINTED) + len(_PAINTED) if _PAINTED in data else len(data)
        self._begun = data[whole:]
        self._draw(data[:whole])
        return bool(data)

    def _take(self, seconds: float) -> bytes:
        if self._begun:
            data, self._begun = self._begun, b""
            return data
        ready, _, _ = select.select([self._master], [], [], max(0.0, seconds))
        if not ready:
            return b""
        try:
            data = os.read(self._master, 65_536)
        except OSError:
            data = b""
        self._ended = not data
        return data

    def _draw(self, data: bytes) -> None:
        self.raw += data
        if self.raw.find(_ASKS_FOR_MARKS, max(0, len(self.raw) - len(data) - len(_ASKS_FOR_MARKS) + 1)) >= 0:
            self._answer(_HAS_MARKS)
        self._stream.feed(data)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _row(self, number: int) -> str:
        """A row; half of a wide character whose other half was written over is a blank, as in a terminal.

        (The emulator's own reading fails there.)
        """
        cells, row = [], self._screen.buffer[number]
        for column in range(self._screen.columns):
            data = row[column].data
            if not data and column and wcwidth(row[column - 1].data[:1]) == 2:
                continue
            cells.append(data or " ")
        return "".join(cells)

    def _answer(self, data: str) -> None:
        os.write(self._master, data.encode())
