"""Text that can be stored and sent: no half of a surrogate pair in it."""

from __future__ import annotations

_HIGH = range(0xD800, 0xDC00)


def normalize_text(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced by U+FFFD.

    They come from bytes that are no UTF-8 on the command line, from JSON escapes that a model
    wrote, and from servers that cut an emoji between two pieces of a stream. SQLite and every
    HTTP client refuse them.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def split_whole(text: str) -> tuple[str, str]:
    """`text` that may be shown now, and the first half of a pair whose second is still to come."""
    if text and ord(text[-1]) in _HIGH:
        return text[:-1], text[-1]
    return text, ""
