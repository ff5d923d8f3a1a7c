"""Read and replace TOML files without losing anything, reporting every fault in one line."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from rolling_chat.settings.errors import SettingsError
from rolling_chat.text import printable

# a settings file has a page or two; a far larger one is something else
_MAX_BYTES = 1_000_000
_AT_END = "(at end of document)"


def read_toml(path: Path) -> dict[str, Any]:
    """Read `path`; a missing file is empty. Raises SettingsError, which names the file and the line."""
    return parse_toml(read_text(path), path)


def read_text(path: Path) -> str:
    """Read a settings file; empty if there is none. Raises SettingsError."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # a pipe would block forever
            raise SettingsError(f"{_name(path)}: is not a file")
        if found.st_size > _MAX_BYTES:
            raise SettingsError(f"{_name(path)}: too large for a settings file ({found.st_size:,} bytes)")
        data = path.read_bytes()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise SettingsError(f"{_name(path)}: cannot be read: {_reason(error)}") from None
    return decode_toml(data, path)


def decode_toml(data: bytes, path: Path) -> str:
    """Decode the bytes of `path`. Raises SettingsError, which names the file and the line."""
    if len(data) > _MAX_BYTES:
        raise SettingsError(f"{_name(path)}: too large for a settings file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{_name(path)}, line {line}: is not UTF-8 text") from None


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """Parse the text of `path`. Raises SettingsError, which names the file and the line."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise SettingsError(f"{_name(path)}: is not valid TOML: nested too deeply") from None
    except ValueError as error:
        if not isinstance(error, tomllib.TOMLDecodeError):  # int() refuses numbers with thousands of digits
            raise SettingsError(f"{_name(path)}: is not valid TOML: a number is too long") from None
        said = str(error).replace(_AT_END, f"(at line {text.count(chr(10)) + 1})")
        match = re.fullmatch(r"(.*) \(at line (\d+)(?:, column \d+)?\)", said, re.DOTALL)
        place, fault = (f", line {match[2]}", match[1]) if match else ("", said)
        raise SettingsError(f"{_name(path)}{place}: is not valid TOML: {printable(fault, 160)}") from None


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file atomically: readers see the old contents or the new ones, never a part.

    A missing folder is created. A symbolic link is followed and remains a link. The mode is kept; that of a
    new file is 0600. Raises SettingsError.
    """
    temporary = ""
    try:
        target = path.resolve()
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            Path(temporary).chmod(stat.S_IMODE(target.stat().st_mode))
        Path(temporary).replace(target)
    except (OSError, RuntimeError, ValueError) as error:
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        raise SettingsError(f"{_name(path)}: cannot be written: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _name(path: Path) -> str:
    return printable(str(path), 300)
