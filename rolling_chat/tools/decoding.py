"""Decode bytes from files and commands to text that every provider and the store accept."""

from __future__ import annotations

import codecs
import os

from rolling_chat.text import printable

MAX_RESULT_BYTES = 10_000_000
"""The most that one result keeps; what the model is shown is capped far below, by the pipeline."""

_BOMS = (
    # The little-endian mark of UTF-32 begins with that of UTF-16, so it is tried first.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


def encoding_of(head: bytes) -> str:
    """Return the encoding given by the byte order mark in a file's first bytes; UTF-8 by default."""
    return next((name for mark, name in _BOMS if head.startswith(mark)), "utf-8")


_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),  # also office documents and wheels
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x7fELF", "an ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
    (b"MZ", "a Windows program or library"),
    (b"\x00asm", "a WebAssembly module"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"OggS", "an Ogg recording"),
    (b"ID3", "an MP3 recording"),
)
_KINDS_WITHIN = (  # RIFF and MP4 have their kind after a size
    (b"WEBP", "a WebP picture"),
    (b"WAVE", "a WAV recording"),
    (b"ftyp", "an MP4 film"),
    (b"ustar", "a tar archive"),
)


def binary_kind(head: bytes) -> str:
    """Return the kind of a binary file, from its first bytes: "a PNG picture"; "" for text.

    A file without a known beginning is binary if it contains a NUL, as in git.
    """
    is_wide = encoding_of(head) in {"utf-16", "utf-32"}
    if is_wide or (b"\x00" not in head and not head.startswith(b"%PDF-")):
        return ""
    known = (kind for mark, kind in _KINDS if head.startswith(mark))
    within = (kind for mark, kind in _KINDS_WITHIN if mark in (head[4:8], head[8:12], head[257:262]))
    return next(known, "") or next(within, "") or "binary data"


def decode(data: bytes, encoding: str = "utf-8") -> str:
    """Decode any bytes as text; invalid ones and NUL, which SQLite refuses, become U+FFFD.

    Other control characters are kept; the screen makes them visible.
    """
    return data.decode(encoding, errors="replace").replace("\x00", "\ufffd")


def show_name(path: str | os.PathLike[str]) -> str:
    """Return a file's name as one line of text, whatever bytes it contains."""
    return printable(os.fsencode(path).decode("utf-8", errors="surrogateescape"), 0)
