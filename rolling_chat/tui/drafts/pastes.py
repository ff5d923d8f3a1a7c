"""Long pastes as tokens in a draft: one word on the screen stands for ten thousand lines. No Textual here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from rolling_chat import figures
from rolling_chat.text import typed

# Brackets that no keyboard has and that `clean` takes out of everything that comes in: what looks like
# a token but was typed by hand has others. They are drawn as plain ones.
_OPEN, _CLOSE = "\U0010fff0", "\U0010fff1"
_DRAWN = str.maketrans({_OPEN: "[", _CLOSE: "]"})
_TAKEN_OUT = str.maketrans({_OPEN: None, _CLOSE: None})
_TOKEN = re.compile(f"{_OPEN}paste (\\d+):[^{_OPEN}{_CLOSE}\n]*{_CLOSE}")

_MAX_LINES, _MAX_CHARACTERS = 10, 1_500  # a paste of more is folded
# What may stand in the box open: with more, a key takes too long to be echoed.
_OPEN_CHARACTERS, _OPEN_LINE = 100_000, 10_000

_NONE: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Draft:
    """The content of the prompt box: its text, with a token for each long paste, and the pastes by number."""

    text: str = ""
    pastes: Mapping[int, str] = field(default_factory=lambda: _NONE)

    @property
    def whole(self) -> str:
        """The text with every token replaced by its paste."""
        return _TOKEN.sub(lambda token: self.pastes.get(int(token[1]), drawn(token[0])), self.text)

    @property
    def used(self) -> dict[int, str]:
        """The pastes, by number, whose tokens are still in the text."""
        numbers = {int(token[1]) for token in _TOKEN.finditer(self.text)}
        return {number: self.pastes[number] for number in sorted(numbers) if number in self.pastes}

    def __bool__(self) -> bool:
        return bool(self.text)


def clean(text: str) -> str:
    """Return `text` without control characters and token brackets, fit to be inserted in the prompt box."""
    return typed(text).translate(_TAKEN_OUT)


def drawn(text: str) -> str:
    """Return `text` as displayed, its tokens in plain brackets of the same width."""
    return text.translate(_DRAWN)


def spans(line: str) -> Iterator[tuple[int, int, int]]:
    """Return the tokens of a line, each with its number, where it begins and where it ends."""
    return ((int(token[1]), token.start(), token.end()) for token in _TOKEN.finditer(line))


def token(number: int, text: str, tokens: int) -> str:
    """Return the token that stands for a paste; `tokens` 0 leaves its size in tokens out."""
    lines = _lines(text)
    size = figures.plural(lines, "line") if lines > 1 else figures.plural(len(text), "character")
    price = f", ~{figures.tokens(tokens)} tokens" if tokens else ""
    return f"{_OPEN}paste {number}: {size}{price}{_CLOSE}"


def restored(text: str, pastes: Mapping[int, str]) -> Draft:
    """Return a draft read from a file; a token without a paste becomes plain text."""
    pieces, end = [], 0
    for found in _TOKEN.finditer(text):
        whole = found[0] if int(found[1]) in pastes else drawn(found[0])
        pieces += [clean(text[end : found.start()]), whole]
        end = found.end()
    kept = Draft("".join([*pieces, clean(text[end:])]), {n: clean(paste) for n, paste in pastes.items()})
    return Draft(kept.text, kept.used)


def folded(text: str, known: Iterable[str], price: Callable[[str], int], first: int = 1) -> Draft:
    """Return a draft of plain `text` with each `known` paste as a token, or all as one if it is too long.

    The pastes are numbered from `first` on.
    """
    text = clean(text)
    pastes: dict[int, str] = {}
    for paste in sorted(set(known), key=len, reverse=True):
        if paste and paste in text:
            number = first + len(pastes)
            pastes[number] = paste
            text = text.replace(paste, token(number, paste, price(paste)))
    if may_stand_open(text):
        return Draft(text, pastes)
    whole = Draft(text, pastes).whole
    return Draft(token(first, whole, price(whole)), {first: whole})


def is_long(text: str) -> bool:
    """Return whether to replace this paste with a token."""
    return len(text) > _MAX_CHARACTERS or _lines(text) > _MAX_LINES


def may_stand_open(text: str) -> bool:
    """Return whether the prompt box can hold this text and still echo keys at once."""
    if len(text) > _OPEN_CHARACTERS:
        return False
    return all(len(line) <= _OPEN_LINE for line in text.split("\n"))


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))
