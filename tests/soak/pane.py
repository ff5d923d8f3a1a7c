"""One terminal with the program in it: what is typed, whether it answers, how it ends."""

from __future__ import annotations

import itertools
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.soak.journal import Journal
from tests.soak.replies import TITLE
from tests.support.terminal import Terminal

SCALE = float(os.environ.get("SOAK_SCALE", "1"))
"""Every limit times this: for machines that are slow, or have other things to do."""

ECHO_SECONDS = 2.0 * SCALE
START_SECONDS = 20.0 * SCALE
END_SECONDS = 5.0 * SCALE
MAX_MEMORY = 500_000_000  # bytes
_MEMORY_PER_BYTE = (
    3  # that a long session may take beyond that: its newest texts, and a copy of all on demand
)

ESC, BACKSPACE, CTRL_Q = "\x1b", "\x7f", "\x11"
_LETTERS = "бгджзилфцчшщэюя"  # no key is bound to any of them
_FAULTS = (b"a fault of the program", b"Traceback (most recent call last)", f"\x1b]0;{TITLE}".encode())
_DRAWN_BETWEEN = re.compile(r"[\s│┃▏▎▍▌❯|┆…]")
_AT_ONCE = 4_096  # bytes that are sent before others are looked at
_SLICE, _GLANCE = 0.05, 0.002  # seconds, likewise
_ESC_SECONDS = 0.25 * SCALE  # Esc and a letter that are read at once are Alt and the letter
_KEPT_OF_RAW = 100_000  # bytes
_ASKING = "asking permission"
_BUSY = re.compile(
    rf"({_ASKING}|waiting for|answering|thinking|running|trying again|stopping|summarizing).*\d+ s"
)


class PromiseError(AssertionError):
    """A promise that was broken: it did not answer, it did not end, it ended badly."""


class Pane:
    """A terminal of `size` columns and rows, in which `argv` has been started.

    `meanwhile` is called again and again while this one is waited for: it shows what other terminals are
    sent, for a program whose terminal shows nothing comes to a stop.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str],
        folder: Path,
        size: tuple[int, int],
        journal: Journal,
        meanwhile: Callable[[], None],
    ) -> None:
        self.size = size
        self._meanwhile = meanwhile
        self._journal = journal
        self._words = _probe_words()
        self.terminal = Terminal(
            [sys.executable, "-m", "rolling_chat", *argv],
            environ=environ,
            folder=folder,
            columns=size[0],
            rows=size[1],
        )
        self._found = (self.terminal.modes, self.terminal.line_settings)
        self.pid = self.terminal.pid
        self.peak = 0
        self._is_closed = False
        journal.write("start", argv=list(argv), size=size, pid=self.pid)

    @property
    def has_ended(self) -> bool:
        """Has the program ended by itself?"""
        return self.terminal.has_ended

    @property
    def is_busy(self) -> bool:
        """Does the status line say that something is being done?"""
        return _BUSY.search(self.terminal.text) is not None

    @property
    def is_asking(self) -> bool:
        """Is the user asked whether a call may run?"""
        return _ASKING in self.terminal.text

    def wait_ready(self) -> bool:
        """Wait until the gauge is there; False where the program has ended instead."""
        until = time.monotonic() + START_SECONDS
        while "rolling:" not in self.terminal.text and not self.has_ended:
            if time.monotonic() > until:
                raise PromiseError(f"the program did not come up\n{self.terminal.text}")
            self.pump(0.05)
        return not self.has_ended

    def press(self, keys: str | bytes) -> None:
        """Send keys."""
        data = keys.encode(errors="surrogateescape") if isinstance(keys, str) else keys
        self._journal.write(
            "keys", keys=data.decode(errors="surrogateescape") if len(data) < 2_000 else f"{len(data)} bytes"
        )
        for start in range(0, len(data), _AT_ONCE):
            self.terminal.send(data[start : start + _AT_ONCE], seconds=10 * SCALE)
            self._meanwhile()

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window."""
        self._journal.write("resize", columns=columns, rows=rows)
        self.size = (columns, rows)
        self.terminal.resize(columns, rows)

    def pump(self, seconds: float) -> None:
        """Let time pass."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self.has_ended:
            self.terminal.pump(min(left, _SLICE))
            self._meanwhile()

    def drain(self) -> None:
        """Show what has come, or some of it."""
        self.terminal.pump(_GLANCE)

    def probe(self) -> float:
        """Type something and see it, after Esc where that is needed; returns the seconds it took."""
        if self.size[0] < 60 or self.size[1] < 16:
            self.resize(100, 30)
        self._wake()
        typed = 0
        for patience in (ECHO_SECONDS / 4, ECHO_SECONDS / 2, ECHO_SECONDS / 2, ECHO_SECONDS, ECHO_SECONDS):
            word = next(self._words)
            began = time.monotonic()
            self.press(word)
            typed += len(word)
            if self._shows(word, patience):
                self.press(BACKSPACE * typed)
                return time.monotonic() - began
            if self.has_ended:
                return 0.0
            self.press(ESC)
            self.pump(_ESC_SECONDS)
        raise PromiseError(f"no key is echoed\n{self.terminal.text}")

    def check(self, stored: int = 0) -> None:
        """What must hold at every moment, with a session of `stored` bytes. Raises PromiseError."""
        for fault in _FAULTS:
            if fault in self.terminal.raw:
                raise PromiseError(f"it shows {fault.decode()!r}\n{self.terminal.text}")
        del self.terminal.raw[:-_KEPT_OF_RAW]
        memory = memory_of(self.pid)
        self.peak = max(self.peak, memory)
        if memory > MAX_MEMORY + _MEMORY_PER_BYTE * stored:
            raise PromiseError(f"it takes {memory / 1e6:.0f} MB")

    def quit(self) -> None:
        """Quit by key. Raises PromiseError where it does not end, or not as it should."""
        self._wake()
        self.press(CTRL_Q)
        self.pump(0.5)
        if not self.has_ended:
            self.pump(END_SECONDS)
        if not self.has_ended:  # a question may stand in the way
            self.press("\r")
        self.finish()

    def finish(self, *codes: int) -> None:
        """Take the end of a program that ends, with 0 or one of `codes`.

        Raises PromiseError where it does not, or leaves the terminal otherwise than it was.
        """
        self.pump(END_SECONDS)
        try:
            code = self.terminal.leave(0.5)
        except AssertionError as error:
            raise PromiseError(str(error)) from None
        self._journal.write("end", code=code)
        self.check_text()
        if code not in {0, *codes}:
            raise PromiseError(f"it ended with {code}\n{self.terminal.text}")
        if self.terminal.modes != self._found[0]:
            odd = sorted(self.terminal.modes ^ self._found[0])
            raise PromiseError(f"the terminal was left with other modes: {odd}")
        if self.terminal.line_settings != self._found[1]:
            raise PromiseError("the terminal was left with other line settings")

    def check_text(self) -> None:
        """The faults on the screen alone."""
        for fault in _FAULTS:
            if fault in self.terminal.raw:
                raise PromiseError(f"it ended with {fault.decode()!r}\n{self.terminal.text}")

    def kill(self) -> str:
        """kill -9; returns what was on the screen."""
        self.drain()
        self._journal.write("kill")
        self.terminal.kill()
        self.terminal.drain()
        return self.terminal.text

    def close(self) -> None:
        """Let go of the terminal, whatever became of the program; twice does no harm."""
        if not self._is_closed:
            self._is_closed = True
            self.terminal.__exit__(None, None, None)

    def _shows(self, word: str, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while True:
            if word in _DRAWN_BETWEEN.sub("", self.terminal.text):
                return True
            if self.has_ended or time.monotonic() > until:
                return False
            self.pump(0.02)

    def _wake(self) -> None:
        """As a shell's `fg`, where a key has suspended it; an editor is waited for.

        While another program has the terminal, the system itself may show what is typed, or swallow it.
        """
        if state_of(self.pid) == "T":
            self.terminal.go_on()
        until = time.monotonic() + 2 * ECHO_SECONDS
        while not self.has_ended and self.terminal.takes_lines:
            if time.monotonic() > until:
                raise PromiseError(f"it does not take the terminal back\n{self.terminal.text}")
            self.pump(0.05)


def _probe_words() -> Iterator[str]:
    for letters in itertools.cycle(itertools.permutations(_LETTERS, 4)):
        yield "".join(letters)


def memory_of(pid: int) -> int:
    """The resident memory of a process in bytes; 0 where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def state_of(pid: int) -> str:
    """The state of a process as the system's letter; empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def processes_with(mark: str) -> dict[int, str]:
    """The processes whose environment holds `mark`, by their id, with their command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if mark.encode() in (entry / "environ").read_bytes() and state_of(int(entry.name)) not in {
                "Z",
                "",
            }:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[int(entry.name)] = line[:200]
        except OSError:
            continue
    return found


def end_processes(pids: Sequence[int]) -> None:
    """kill -9 each of them."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
