"""A real pseudo-terminal with a terminal emulator behind it: what a person would type and see."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte

# How long anything may take before a test gives up; nothing waits this long when all is well.
PATIENCE_SECONDS = 60.0


class Terminal:
    """A child process in a pseudo-terminal of `columns` by `rows`, its screen read by pyte.

    A context manager: at the end the child is killed, whatever became of the test.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str],
        folder: Path | str,
        columns: int = 100,
        rows: int = 30,
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._screen.write_process_input = self._answer  # type: ignore[method-assign]
        self._stream = pyte.ByteStream(self._screen)
        self.raw = bytearray()
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(argv[0], list(argv), {"TERM": "xterm-256color", "COLORTERM": "truecolor", **environ})
        self.resize(columns, rows)

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
        return [line.rstrip() for line in self._screen.display]

    @property
    def padded_lines(self) -> list[str]:
        """The screen as it stands, every line as wide as the window."""
        return list(self._screen.display)

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines)

    def type(self, text: str) -> None:
        """Send keys as a terminal would."""
        os.write(self._master, text.encode())

    def say(self, text: str) -> None:
        """Type a line, see it in the prompt box, send it."""
        self.type(text)
        self.see(f"❯ {text}")
        self.type("\r")

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window."""
        self._screen.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

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
        """Read the terminal until `condition` holds. Raises AssertionError with the screen."""
        until = time.monotonic() + seconds
        while not condition():
            if not self._read(until - time.monotonic()):
                raise AssertionError(f"{what}\n{self.text}")

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
        until = time.monotonic() + seconds
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > until:
                raise AssertionError("the program outlived its terminal")
            time.sleep(0.05)
        self.pid = 0

    def signal(self, number: int) -> None:
        """Send the child a signal."""
        os.kill(self.pid, number)

    def wait_until_stopped(self) -> None:
        """Wait until the child is suspended, as by a shell's ctrl+z."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), self.text

    def kill(self) -> None:
        """kill -9, as a crash or an impatient person would."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.pid = 0

    def _read(self, seconds: float) -> bool:
        """Feed what comes to the emulator; False at the end of the child or of patience."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, seconds))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65_536)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def _answer(self, data: str) -> None:
        os.write(self._master, data.encode())
