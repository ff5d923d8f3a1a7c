"""Load OpenAI's token encodings from local files; never use the network.

The file of an encoding is searched for in the user's cache (`TIKTOKEN_CACHE_DIR`) and in the litellm package.
A file that differs from the published one is ignored. An encoding without a file is None.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import itertools
import logging
import os
import threading
from binascii import a2b_base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding


@dataclass(frozen=True, slots=True)
class _PublishedEncoding:
    """An encoding as published by OpenAI: the file with its tokens, and the pattern that splits a text.

    tiktoken names a file by the SHA-1 of its URL.
    """

    file_name: str
    sha256: str
    pattern: str


_CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_O200K_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PUBLISHED = {
    "cl100k_base": _PublishedEncoding(
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        _CL100K_PATTERN,
    ),
    "o200k_base": _PublishedEncoding(
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        _O200K_PATTERN,
    ),
}
# The o200k pattern panics on some runs of a million characters, so text is encoded in parts.
_PIECE_CHARS = 100_000
# Parsing a whole file at once would take as much memory as everything else together.
_BYTES_AT_ONCE = 65_536
_load_lock = threading.Lock()
_log = logging.getLogger(__name__)

ENCODINGS = tuple(_PUBLISHED)


def find_encoding(name: str) -> Encoding | None:
    """Return the encoding `name`, for `encode_ordinary` only; None if its file is not on this machine."""
    with _load_lock:  # a second thread must not load it again
        return _encoding(name)


def has_encoding(name: str) -> bool:
    """Return whether the file of the encoding `name` is on this machine, without loading it."""
    return bool(_read_published(name))


def count_encoded(encoding: Encoding, text: str) -> int:
    """Count the tokens of `text`, in parts if it is long; each split adds at most one token."""
    if len(text) <= _PIECE_CHARS:
        return len(encoding.encode_ordinary(text))
    parts = (text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS))
    return sum(len(encoding.encode_ordinary(part)) for part in parts)


@cache
def _encoding(name: str) -> Encoding | None:
    contents = _read_published(name)
    if not contents:
        return None
    try:
        from tiktoken import Encoding  # noqa: PLC0415  # saves 40 ms if another estimator is used

        ranks = _ranks(contents)
        encoding = Encoding(name, pat_str=_PUBLISHED[name].pattern, mergeable_ranks=ranks, special_tokens={})
    except (ImportError, ValueError) as error:
        _log.warning("encoding %s cannot be loaded: %s", name, error)
        return None
    ranks.clear()  # tiktoken keeps a reference to this table, a third of its memory, but never reads it again
    return encoding


def _ranks(contents: bytes) -> dict[bytes, int]:
    """Parse a published file: each line is a base64 token and its rank, which equals the line number."""
    ranks: dict[bytes, int] = {}
    lines, numbers = io.BytesIO(contents), itertools.count()
    while chunk := lines.read(_BYTES_AT_ONCE):
        tokens = (chunk + lines.readline()).split()[::2]
        ranks.update(zip(map(a2b_base64, tokens), numbers, strict=False))
    return ranks


def _read_published(name: str) -> bytes:
    """Read the file of an encoding; empty if there is no file that matches the published one."""
    published = _PUBLISHED.get(name)
    if published is None:
        return b""
    for folder in _folders():
        path = folder / published.file_name
        try:
            contents = path.read_bytes() if path.is_file() else b""
        except OSError:
            continue
        if not contents:
            continue
        if hashlib.sha256(contents).hexdigest() == published.sha256:
            return contents
        _log.warning("encoding %s: %s is not the file that OpenAI published", name, path)
    return b""


def _folders() -> Iterator[Path]:
    for variable in ("TIKTOKEN_CACHE_DIR", "CUSTOM_TIKTOKEN_CACHE_DIR"):
        if folder := os.environ.get(variable):
            yield Path(folder)
    spec = importlib.util.find_spec("litellm")
    for location in (spec and spec.submodule_search_locations) or ():
        yield Path(location) / "litellm_core_utils" / "tokenizers"
