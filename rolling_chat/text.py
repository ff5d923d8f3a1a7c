"""Foreign text made fit for a terminal: what a model, a tool or a file wrote is shown, never obeyed."""

from __future__ import annotations

import re

_TAB = 4
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSEEN = "\u200b\u2060-\u2064\ufeff\U000e0000-\U000e007f"
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}{_UNSEEN}]")
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NEWLINE = re.compile("\r\n?|\x0b|\x0c|\x85|\u2028|\u2029")


def visible(text: str, *, tabs: bool = False) -> str:
    """`text` with every control character shown instead of obeyed; lines stay lines.

    C0 controls become their pictures (`␛`), all others their code point (`<U+202E>`), so that
    nothing of it can move a cursor, set a colour or turn the reading direction. Tabs become spaces,
    unless `tabs` leaves them to whoever draws the line.
    """
    lines = _NEWLINE.sub("\n", _joined(text))
    return _UNSAFE.sub(_shown, lines if tabs else _expand_tabs(lines))


def one_line(text: str, most: int = 0) -> str:
    """`text` on one line, runs of white space made one space; cut to `most` characters where given."""
    if most:
        # only the beginning is looked at: the text may be megabytes
        text = text[: 4 * most]
    line = visible(" ".join(text.split()))
    return line if not most or len(line) <= most else line[: most - 1].rstrip() + "…"


def typed(text: str) -> str:
    """`text` as it may stand in the prompt box: control characters are left out, not shown."""
    return _UNSAFE.sub("", _NEWLINE.sub("\n", _joined(text)))


def without_controls(text: str) -> str:
    """`text` for a file or a pipe: control characters shown, tabs and every other character kept."""
    return _CONTROLS.sub(_shown, _joined(text).replace("\r\n", "\n"))


def _joined(text: str) -> str:
    """The halves of surrogate pairs joined; what is alone becomes U+FFFD."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _expand_tabs(text: str) -> str:
    return text.expandtabs(_TAB) if "\t" in text else text


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"<U+{code:04X}>"
