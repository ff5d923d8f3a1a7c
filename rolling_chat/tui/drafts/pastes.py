"""Long pastes and mentioned files as tokens in a draft: one word on the screen for each. No Textual here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from rolling_chat import figures
from rolling_chat.mentions import MARK, NOT_TYPED, plain
from rolling_chat.text import printable, typed

# Brackets that no keyboard has and that `clean` takes out of everything that comes in: what looks like
# a token but was typed by hand has others. They are drawn as plain ones.
_OPEN, _CLOSE = "\U0010fff0", "\U0010fff1"
_DRAWN = str.maketrans({_OPEN: "[", _CLOSE: "]", MARK: "@", NOT_TYPED: "!"})
_TAKEN_OUT = str.maketrans({_OPEN: None, _CLOSE: None, MARK: None, NOT_TYPED: None})
_TOKEN = re.compile(
    f"{_OPEN}(?:paste|output|file|folder|picture|resource) (\\d+):[^{_OPEN}{_CLOSE}\n]*{_CLOSE}"
)

_MAX_LINES, _MAX_CHARACTERS = 10, 1_500  # a paste of more is folded
# What may stand in the box open: with more, a key takes too long to be echoed.
_OPEN_CHARACTERS, _OPEN_LINE = 100_000, 10_000

_NONE: Mapping[int, str] = MappingProxyType({})
_MAX_NAME = 40  # characters of a path in a token


@dataclass(frozen=True, slots=True)
class FoldedFile:
    """A file in a draft: how it is `spelled` after the `@`, and what it adds, where it was read.

    `note` says in a few words what `kind` of file it is, and its price.
    """

    spelled: str
    tokens: int
    text: str = ""
    note: str = ""
    kind: str = "file"


_NO_FILES: Mapping[int, FoldedFile] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Draft:
    """The content of the prompt box: its text, with a token for each long paste and each mentioned file.

    The pastes and the files are given by number; no two have the same.
    """

    text: str = ""
    pastes: Mapping[int, str] = field(default_factory=lambda: _NONE)
    files: Mapping[int, FoldedFile] = field(default_factory=lambda: _NO_FILES)

    @property
    def said(self) -> str:
        """The text as it is sent: every token replaced by its paste, or by its marked mention."""
        return self._replaced(self.pastes)

    @property
    def whole(self) -> str:
        """The text as it is read: as it is sent, with a plain `@` for every mention."""
        return plain(self.said)

    @property
    def command_line(self) -> str:
        """The text, which may be a command; empty where a `!` at its beginning was not typed."""
        whole = self.whole
        is_pasted = whole.lstrip().startswith("!") and not self.text.lstrip().startswith("!")
        return "" if is_pasted else whole

    @property
    def kept(self) -> str:
        """The text as it is kept: with the tokens of its pastes, and marked mentions for its files."""
        return self._replaced({})

    @property
    def attached(self) -> tuple[FoldedFile, ...]:
        """The files whose tokens are still in the text, each once."""
        numbers = {int(token[1]) for token in _TOKEN.finditer(self.text)}
        files = (file for number, file in self.files.items() if number in numbers)
        return tuple({file.spelled: file for file in files}.values())

    def _replaced(self, pastes: Mapping[int, str]) -> str:
        def replaced(token: re.Match[str]) -> str:
            number = int(token[1])
            if number in self.files:
                return MARK + self.files[number].spelled
            if number in self.pastes:
                return pastes.get(number, token[0])
            return drawn(token[0])

        return _TOKEN.sub(replaced, self.text)

    @property
    def used(self) -> dict[int, str]:
        """The pastes, by number, whose tokens are still in the text."""
        numbers = {int(token[1]) for token in _TOKEN.finditer(self.text)}
        return {number: self.pastes[number] for number in sorted(numbers) if number in self.pastes}

    def __bool__(self) -> bool:
        return bool(self.text)


def clean(text: str) -> str:
    """Return foreign text fit to be inserted in the box: no control characters, token brackets or marks."""
    return typed(text).translate(_TAKEN_OUT)


def _clean_own(text: str) -> str:
    """Clean text that came from the box, and keep the marks of its mentions."""
    return MARK.join(map(clean, text.split(MARK)))


def drawn(text: str) -> str:
    """Return `text` as displayed, its tokens in plain brackets of the same width."""
    return text.translate(_DRAWN)


def spans(line: str) -> Iterator[tuple[int, int, int]]:
    """Return the tokens of a line, each with its number, where it begins and where it ends."""
    return ((int(token[1]), token.start(), token.end()) for token in _TOKEN.finditer(line))


def token(number: int, text: str, tokens: int, kind: str = "paste") -> str:
    """Return the token that stands for a paste; `tokens` 0 leaves its size in tokens out.

    `kind` is its first word, such as "output" for what a command wrote.
    """
    lines = _lines(text)
    size = figures.plural(lines, "line") if lines > 1 else figures.plural(len(text), "character")
    price = f", ~{figures.tokens(tokens)} tokens" if tokens else ""
    return f"{_OPEN}{kind} {number}: {size}{price}{_CLOSE}"


def file_token(number: int, file: FoldedFile) -> str:
    """Return the token that stands for a mentioned file; the end of a long name is shown."""
    name = printable(file.spelled.translate(_TAKEN_OUT), 0)
    shown = name if len(name) <= _MAX_NAME else f"…{name[1 - _MAX_NAME :]}"
    return f"{_OPEN}{file.kind} {number}: {shown}{f', {file.note}' if file.note else ''}{_CLOSE}"


def restored(text: str, pastes: Mapping[int, str]) -> Draft:
    """Return a draft read from a file, its mentions marked; a token without a paste becomes plain text."""
    pieces, end = [], 0
    for found in _TOKEN.finditer(text):
        whole = found[0] if int(found[1]) in pastes else drawn(found[0])
        pieces += [_clean_own(text[end : found.start()]), whole]
        end = found.end()
    kept = Draft("".join([*pieces, _clean_own(text[end:])]), {n: clean(paste) for n, paste in pastes.items()})
    return Draft(kept.text, kept.used)


def folded(text: str, known: Iterable[str], price: Callable[[str], int], first: int = 1) -> Draft:
    """Return a draft of the box's own text, each `known` paste a token, or all one if it is too long.

    The pastes are numbered from `first` on.
    """
    text = _clean_own(text)
    pastes: dict[int, str] = {}
    for paste in sorted(set(known), key=len, reverse=True):
        if paste and paste in text:
            number = first + len(pastes)
            pastes[number] = paste
            text = text.replace(paste, token(number, paste, price(paste)))
    if may_stand_open(text):
        return Draft(text, pastes)
    whole = Draft(text, pastes).whole  # no mention is looked for in what is not read
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
