"""Pictures on the user's clipboard, read with whichever program the system has for that."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping

from rolling_chat.programs import FOR_USER, find_program

_SECONDS = 3.0
_MAX_BYTES = 50_000_000  # no larger picture can be sent
_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")
_APPLESCRIPT = "get the clipboard as «class PNGf»"
_HEX = re.compile(rb"PNGf([0-9A-Fa-f]+)")


class ClipboardError(Exception):
    """The clipboard has no picture, or cannot be read; `str()` is one line for the user."""


def read_picture(environ: Mapping[str, str], system: str = sys.platform) -> bytes:
    """Return the picture on the clipboard; call it in a thread. Raises ClipboardError."""
    commands = list(_commands(environ, system))
    if not commands:
        raise ClipboardError(
            "Pictures on the clipboard are read with wl-paste or xclip, on macOS with pngpaste or osascript, "
            "and none was found. Mention the picture's file with @ instead."
        )
    for command in commands:
        data = _output(command, environ)
        if match := _HEX.search(data) if command[-1] == _APPLESCRIPT else None:
            data = bytes.fromhex(match[1].decode())
        if data:
            return data
    raise ClipboardError("There is no picture on the clipboard.")


def _commands(environ: Mapping[str, str], system: str) -> Iterator[list[str]]:
    """Yield commands that print the clipboard's picture, for installed programs only."""
    if system == "darwin":
        if program := find_program("pngpaste", environ):
            yield [program, "-"]
        if program := find_program("osascript", environ):
            yield [program, "-e", _APPLESCRIPT]
        return
    if environ.get("WAYLAND_DISPLAY") and (program := find_program("wl-paste", environ)):
        yield from ([program, "--no-newline", "--type", kind] for kind in _TYPES)
    if environ.get("DISPLAY") and (program := find_program("xclip", environ)):
        yield from ([program, "-selection", "clipboard", "-t", kind, "-o"] for kind in _TYPES)


def _output(command: list[str], environ: Mapping[str, str]) -> bytes:
    """Return a command's output, up to a limit; empty if it fails or takes too long."""
    try:
        process = subprocess.Popen(  # noqa: S603  # a system program, no shell
            command,
            env={**environ, **FOR_USER},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, ValueError):
        return b""
    timer = threading.Timer(_SECONDS, process.kill)
    timer.start()
    with process:
        assert process.stdout is not None
        data = process.stdout.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            process.kill()
        process.wait()
        timer.cancel()
    return data if process.returncode == 0 else b""
