"""Run the README's first command as a newcomer would: fresh home, no key, a real pseudo-terminal.

Waits until the gauge is on the screen, asks one question, waits for the answer, and leaves.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import tempfile
import termios
import time

import pyte

COLUMNS, ROWS = 100, 30
INSTALL_SECONDS = 600.0
ANSWER_SECONDS = 60.0


def main(command: str) -> int:
    """Drive `command`; returns 0 when everything that must be seen was seen."""
    home = tempfile.mkdtemp()
    keep = {
        key: value for key, value in os.environ.items() if key in {"PATH", "LANG"} or key.startswith("PIP_")
    }
    environ = {**keep, "HOME": home, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("bash", ["bash", "-c", command], environ)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)

    def see(wanted: str, seconds: float) -> None:
        until = time.monotonic() + seconds
        while wanted not in "\n".join(screen.display):
            ready, _, _ = select.select([terminal], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                sys.exit("\n".join([*screen.display, f"never saw {wanted!r}"]))
            try:
                stream.feed(os.read(terminal, 65_536))
            except OSError:
                sys.exit("\n".join([*screen.display, f"the program ended before {wanted!r} was seen"]))

    see("rolling: off", INSTALL_SECONDS)
    os.write(terminal, b"Are you a language model?")
    see("Are you a language model?", ANSWER_SECONDS)
    os.write(terminal, b"\r")
    see("no language model", ANSWER_SECONDS)
    os.write(terminal, b"/quit\r")
    see("rolling-chat --resume", ANSWER_SECONDS)
    _, status = os.waitpid(pid, 0)
    print("\n".join(line.rstrip() for line in screen.display if line.strip()))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
