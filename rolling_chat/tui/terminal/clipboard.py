"""Copy to the user's clipboard with OSC 52, also from inside tmux and screen.

A terminal that knows OSC 52 sets its clipboard, but does not confirm it. tmux reads the sequence only with
`set-clipboard on`, and passes on a wrapped one only with `allow-passthrough on`; both are off by default.
`tmux load-buffer -w` sets tmux's buffer and the terminal's clipboard with any settings. So that command is
tried first, and the sequences are written if it fails: tmux runs on another machine, or is older than 3.2.
GNU screen passes on the content of device control strings, which must be short.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path

from rolling_chat.programs import find_program

MAX_BYTES = 74_994
"""The longest text, in UTF-8, that is copied. In base64 it makes a sequence of 100,000 bytes, the limit of
hterm's osc52.sh, which terminals are known to accept; longer ones may be cut or dropped on the way."""

_PIECE_BYTES = 764  # screen 4.2.1 takes strings of 768 bytes, of which the wrapping is 4
_TMUX_SECONDS = 3.0  # its client may start slowly on a busy machine
_ESC = "\x1b"


class _Multiplexer(Enum):
    """The multiplexer between the program and the terminal."""

    NOBODY = auto()
    TMUX = auto()
    SCREEN = auto()


class Clipboard:
    """The clipboard of the terminal that `write` writes to.

    `environ` describes the terminal. Text that is too long for a clipboard is written to `file`, or dropped
    if that is None. tmux may be slow, so it is called in the background; `settle` waits for that.
    """

    def __init__(self, write: Callable[[str], None], environ: Mapping[str, str], file: Path | None) -> None:
        self._write = write
        self._environ = environ
        self._file = file
        self._next: str | None = None  # the text not yet sent to tmux
        self._sending: asyncio.Task[None] | None = None

    def put(self, text: str) -> str:
        """Copy `text`; return an empty string, or a line that says where it went instead."""
        size = len(_bytes(text))
        if size > MAX_BYTES:
            return self._save_to_file(text, f"{size:,} bytes are more than a terminal's clipboard takes")
        if not self._environ.get("TMUX"):
            self._write(osc52(text, self._environ))
            return ""
        self._next = text
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_to_tmux())
        return ""

    async def settle(self) -> None:
        """Wait until the last copy has been sent, for a few seconds at most."""
        if self._sending is not None:
            await self._sending

    async def _send_to_tmux(self) -> None:
        """Send copies to tmux one by one; of several waiting, only the last."""
        while (text := self._next) is not None:
            self._next = None
            if not await _copy_to_tmux(text, self._environ):
                self._write(osc52(text, self._environ))

    def _save_to_file(self, text: str, why: str) -> str:
        if self._file is None:
            return f"{why}: nothing was copied"
        try:
            write_private(self._file, _bytes(text))
        except OSError as error:
            return f"{why}, and {self._file} cannot be written: {error.strerror}"
        return f"{why}: it is in {self._file}"


def osc52(text: str, environ: Mapping[str, str]) -> str:
    """Return the escape sequences that set the clipboard, wrapped for tmux or screen if need be."""
    plain = f"{_ESC}]52;c;{base64.b64encode(_bytes(text)).decode()}\a"
    match _multiplexer(environ):
        case _Multiplexer.TMUX:
            # both plain and wrapped, as tmux's settings may allow either
            return f"{plain}{_ESC}Ptmux;{plain.replace(_ESC, _ESC * 2)}{_ESC}\\"
        case _Multiplexer.SCREEN:
            starts = range(0, len(plain), _PIECE_BYTES)
            return "".join(f"{_ESC}P{plain[at : at + _PIECE_BYTES]}{_ESC}\\" for at in starts)
        case _Multiplexer.NOBODY:
            return plain


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, replacing its content. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if sys.platform != "win32":  # there, the user's own folder is closed to others
            os.fchmod(descriptor, 0o600)  # the file may have existed, readable by others
        file.write(content)


def _multiplexer(environ: Mapping[str, str]) -> _Multiplexer:
    """Return the multiplexer named by the environment.

    Over ssh only TERM is left. TERM `screen` may also be tmux, and each prints the other's wrapping, so it
    counts as none.
    """
    if environ.get("TMUX") or environ.get("TERM", "").startswith("tmux"):
        return _Multiplexer.TMUX
    return _Multiplexer.SCREEN if environ.get("STY") else _Multiplexer.NOBODY


async def _copy_to_tmux(text: str, environ: Mapping[str, str]) -> bool:
    """Copy `text` to tmux's buffer and the terminal's clipboard; return whether tmux did so."""
    tmux = find_program("tmux", environ)
    if tmux is None:
        return False
    try:
        process = await asyncio.create_subprocess_exec(
            tmux, "load-buffer", "-w", "-",
            stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, env=dict(environ),
        )  # fmt: skip
    except OSError:
        return False
    try:
        await asyncio.wait_for(process.communicate(_bytes(text)), _TMUX_SECONDS)
    except TimeoutError:
        return False
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return process.returncode == 0


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
