"""Bytes from files and commands as text that every provider, and the store, can carry."""

from __future__ import annotations

import codecs
import os

from rolling_chat.text import printable

MAX_RESULT_BYTES = 10_000_000
"""The most that one result keeps; what the model is shown is capped far below, by the pipeline."""

_BOMS = (
    # UTF-32's little-endian mark begins with UTF-16's, so it is looked for first.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


def encoding_of(head: bytes) -> str:
    """Return the encoding that a file's first bytes name by a byte order mark, else UTF-8."""
    return next((name for mark, name in _BOMS if head.startswith(mark)), "utf-8")


def decode(data: bytes, encoding: str = "utf-8") -> str:
    """Decode any bytes as text; invalid ones and NUL, which SQLite refuses, become U+FFFD.

    Other control characters stay; the screen makes them visible.
    """
    return data.decode(encoding, errors="replace").replace("\x00", "\ufffd")


def show_name(path: str | os.PathLike[str]) -> str:
    """Show a file's name as one line of text, whatever bytes it is made of."""
    return printable(os.fsencode(path).decode("utf-8", errors="surrogateescape"), 0)
