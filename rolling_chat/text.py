"""Make foreign text safe for a terminal: text from models, tools and files is shown, never interpreted.

A character's Unicode category decides whether it may be printed. `visible` is for reading, and keeps the
parts of emoji and joined scripts; `exact` is for approving, and shows every character that could be
overlooked or mistaken for another.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache, partial

_TAB = 4
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NEWLINE = re.compile("\r\n?|\x0b|\x0c|\x85|\u2028|\u2029")
_BLANKS = re.compile("[ \t\n]+")
_UNUSUAL = re.compile("[^ -~\n\t]+")
# invisible: Default_Ignorable_Code_Point in Unicode's DerivedCoreProperties.txt
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_BLANK_SIGNS = "\u2800\U0001d159"  # signs without ink: an empty Braille cell, a note without a head
_ZWNJ, _ZWJ = "\u200c", "\u200d"
_VARIANTS = "\ufe0e\ufe0f"  # text and emoji presentation
_KEYCAP = "\u20e3"
_JOINING = _ZWNJ + _ZWJ + _VARIANTS
_TYPED = _JOINING + "\u00ad"  # a soft hyphen marks where a word may be broken
_PICTURES = range(0x1F000, 0x1FB00)  # pictographs, including those that this Python does not know yet
_OLD_PICTURES = "©®‼⁉™ℹ〰〽㊗㊙"

_WORD = re.compile(r"\w{2,}")
_EAST_ASIAN = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"})


def normalize_text(text: str) -> str:
    """Return text that can be stored and sent: surrogate pairs are joined, lone surrogates become U+FFFD.

    Surrogates come from invalid UTF-8 on the command line, from JSON escapes that a model wrote, and from
    servers that split an emoji between two chunks of a stream. SQLite and every HTTP client refuse them.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", _joined(text))
    return text


def split_whole(text: str) -> tuple[str, str]:
    """Split streamed text before the first half of a surrogate pair whose second half is still to come."""
    if text and "\ud800" <= text[-1] <= "\udbff":
        return text[:-1], text[-1]
    return text, ""


def visible(text: str, *, tabs: bool = False, above: str = "") -> str:
    """Return `text` with control and hidden characters made visible; lines stay lines.

    C0 controls become their pictures (`␛`), all others their code point (`<U+202E>`), so that nothing can
    move a cursor, set a color or change the reading direction. Joiners are kept inside emoji and joined
    scripts. Only LF and CR LF end a line. Tabs become spaces, unless `tabs` keeps them for the code that
    draws the line. `above` is the text just before a piece of a longer text.
    """
    lines = _joined(text).replace("\r\n", "\n")
    return _UNUSUAL.sub(partial(_reading, above), lines if tabs else _expand_tabs(lines))


def count_undecided(text: str) -> int:
    """Return how many characters at the end of streamed text depend on the next one and must wait for it."""
    return 1 if text and (text[-1] in "\r" + _JOINING or "\ud800" <= text[-1] <= "\udbff") else 0


def exact_spans(text: str) -> Iterator[tuple[str, bool]]:
    """Split `text` into spans with everything easily overlooked shown as a code; True marks a code.

    Only LF ends a line, and only the space is a space: any other character that is unprintable, invisible,
    or no text (a lone surrogate, a byte) is shown as a code. So are, in a word with letters of several
    scripts, those that are not of its main script.
    """
    plain: list[str] = []
    strangers = _strangers(text)
    for at, char in enumerate(text):
        if char != "\n" and (at in strangers or not _is_plain(char)):
            if plain:
                yield "".join(plain), False
                plain = []
            yield _code(char), True
        else:
            plain.append(char)
    if plain:
        yield "".join(plain), False


def exact(text: str) -> str:
    """Return `text` with everything easily overlooked shown as a code."""
    return "".join(span for span, _ in exact_spans(text))


def max_cells(char: str) -> int:
    """Return the largest width, in cells, in which a terminal may draw a printable character.

    Terminals differ on combining marks, ambiguous width, flags and the skin colors of emoji.
    """
    if char.isascii():
        return 1
    is_wide = unicodedata.east_asian_width(char) in "WFA" or unicodedata.category(char) in ("So", "Sk")
    return 2 if is_wide else 1


def printable(text: str, max_chars: int = 80) -> str:
    """Return a name or value for use in a line, with unprintable characters and line ends as codes.

    It is cut to `max_chars` characters; 0: not cut.
    """
    cut = text[: max_chars + 1] if max_chars else text
    clean = "".join(char if _is_plain(char) else _code(char) for char in cut)
    return clean if not max_chars or len(clean) <= max_chars else clean[: max_chars - 1] + "…"


def one_line(text: str, max_chars: int = 0) -> str:
    """Put `text` on one line with single spaces; cut it to `max_chars` characters if given."""
    if max_chars:
        # the text may be megabytes, so use only its beginning
        text = text[: 4 * max_chars]
    line = _BLANKS.sub(" ", visible(text, tabs=True)).strip(" ")
    return line if not max_chars or len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"


def typed(text: str) -> str:
    """Return typed text without unprintable characters, for the prompt box.

    Joiners are kept anywhere, because keys arrive one at a time.
    """
    return _UNUSUAL.sub(_typing, _NEWLINE.sub("\n", normalize_text(text)))


def without_controls(text: str) -> str:
    """Clean `text` for a file or a pipe: show control characters as codes, keep everything else."""
    return _CONTROLS.sub(lambda match: _code(match.group()), normalize_text(text).replace("\r\n", "\n"))


def _joined(text: str) -> str:
    """Join the halves of surrogate pairs; keep lone surrogates."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _expand_tabs(text: str) -> str:
    return text.expandtabs(_TAB) if "\t" in text else text


def _reading(above: str, match: re.Match[str]) -> str:
    """Replace unreadable characters in a run of unusual ones with codes."""
    run = match.group()
    if run.replace("\u3000", "").replace("\xa0", "").isprintable() and _IGNORABLE.search(run) is None:
        return run
    before = match.string[max(0, match.start() - 2) : match.start()]
    if match.start() < 2:
        before = (above + before)[-2:]
    after = match.string[match.end() : match.end() + 1]
    around, first = before + run + after, len(before)
    return "".join(
        char if _is_readable(around, at) else _code(char) for at, char in enumerate(run, start=first)
    )


def _typing(match: re.Match[str]) -> str:
    return "".join(
        char for char in match.group() if char in _TYPED or (_is_known(char) and not _IGNORABLE.match(char))
    )


def _is_readable(text: str, at: int) -> bool:
    char = text[at]
    if char in _VARIANTS:
        above = text[at - 1 : at]
        return _is_picture(above) or (above in "0123456789#*" and text[at + 1 : at + 2] == _KEYCAP)
    if char in (_ZWNJ, _ZWJ):
        above, below = text[:at].rstrip(_VARIANTS)[-1:], text[at + 1 : at + 2]
        joins_pictures = char == _ZWJ and _is_picture(above) and _is_picture(below)
        return joins_pictures or (_is_joined_letter(above) and _is_joined_letter(below))
    return _is_known(char) and not _IGNORABLE.match(char)


def _is_known(char: str) -> bool:
    """Return whether a character is printable, counting spaces of any width and newer pictographs."""
    if char.isprintable() or ord(char) in _PICTURES:
        return True
    return unicodedata.category(char) == "Zs"


def _is_picture(char: str) -> bool:
    if not char or char.isascii():
        return False
    return ord(char) in _PICTURES or char in _OLD_PICTURES or unicodedata.category(char) in ("So", "Sm")


def _is_joined_letter(char: str) -> bool:
    """Return whether a letter's shape may depend on its neighbors: never in Latin, Greek and Cyrillic."""
    return char > "\u0530" and unicodedata.category(char)[0] in "LM" and not _IGNORABLE.match(char)


def _is_plain(char: str) -> bool:
    """Return whether a character is plainly visible: it has ink, or is the space."""
    if char.isascii():
        return char.isprintable()
    return char.isprintable() and char not in _BLANK_SIGNS and not _IGNORABLE.match(char)


def _strangers(text: str) -> frozenset[int]:
    """Return the indices of letters that are not of their word's main script."""
    if text.isascii():
        return frozenset()
    found: list[int] = []
    for word in _WORD.finditer(text):
        if word.group().isascii():
            continue
        scripts = [_script(char) for char in word.group()]
        counts = Counter(script for script in scripts if script)
        if len(counts) > 1:
            main = max(counts, key=lambda script: (counts[script], script == "LATIN"))
            found += [word.start() + at for at, script in enumerate(scripts) if script and script != main]
    return frozenset(found)


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    """Return the script of a letter, by its name; empty for scripts used with Latin, and for non-letters."""
    first, _, rest = unicodedata.name(char, "").partition(" ")
    if first in _EAST_ASIAN or first == "MODIFIER":
        return ""
    return first if "LETTER" in rest or first == "MATHEMATICAL" else ""


def _code(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not text, as Python's surrogateescape represents it
        return f"<0x{code - 0xDC00:02X}>"
    return f"<U+{code:04X}>"
