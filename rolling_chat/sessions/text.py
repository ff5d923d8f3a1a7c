"""Text that others wrote, made fit for a line, a terminal or a file for people."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")
# C0 but tab and newline, DEL, C1, the marks that turn the direction of writing, surrogates
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LINE_ENDS = re.compile("\r\n|[\x85\u2028\u2029]")
_CONTROL_PICTURES = 0x2400
_DELETE_PICTURE = "\u2421"


def visible(text: str) -> str:
    """`text` with its control characters shown as pictures (␛), so that none reaches a terminal.

    Tabs and line ends stay. What has no picture becomes U+FFFD.
    """
    if _SURROGATE.search(text):  # the halves of a pair come together, what is alone becomes U+FFFD
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _UNSAFE.sub(_picture, _LINE_ENDS.sub("\n", text))


def one_line(text: str, characters: int) -> str:
    """`text` on one line of at most `characters`, control characters and double spaces left out."""
    # only the beginning is looked at: the text may be megabytes
    words = _UNSAFE.sub(" ", text[: 4 * characters]).split()
    line = " ".join(words)
    return line if len(line) <= characters else line[: characters - 1].rstrip() + "…"


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    return _DELETE_PICTURE if code == 0x7F else "\ufffd"
