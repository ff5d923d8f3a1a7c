"""Long pastes and mentioned files as tokens in a draft, each one word on the screen. No Textual here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from rolling_chat import figures
from rolling_chat.mentions import MARK, NOT_TYPED, plain
from rolling_chat.text import printable, typed

# Brackets that no keyboard has, and that `clean` removes from all input, so that typed text is never a
# token. They are drawn as plain brackets.
_OPEN, _CLOSE = "\U0010fff0", "\U0010fff1"
_DRAWN = str.maketrans({_OPEN: "[", _CLOSE: "]", MARK: "@", NOT_TYPED: "!"})
_TAKEN_OUT = str.maketrans({_OPEN: None, _CLOSE: None, MARK: None, NOT_TYPED: None})
_TOKEN = re.compile(
    f"{_OPEN}(?:paste|output|file|folder|picture|resource) (\\d+):[^{_OPEN}{_CLOSE}\n]*{_CLOSE}"
)

_MAX_LINES, _MAX_CHARACTERS = 10, 1_500  # a larger paste is folded
# Limits of unfolded text in the box; with more, keys are echoed too slowly.
_OPEN_CHARACTERS, _OPEN_LINE = 100_000, 10_000

_NONE: Mapping[int, str] = MappingProxyType({})
_MAX_NAME = 40  # characters of a path in a token


@dataclass(frozen=True, slots=True)
class FoldedFile:
    """A file in a draft: how it is `spelled` after the `@`, its tokens, and its text if it was read.

    `note` describes it in a few words, with its price; `kind` is the token's first word.
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

    Pastes and files are mapped from the numbers in their tokens; no two share a number.
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
        """The text for display: as it is sent, with a plain `@` for every mention."""
        return plain(self.said)

    @property
    def command_line(self) -> str:
        """The text to parse as a command; empty if it begins with a `!` that was not typed."""
        whole = self.whole
        is_pasted = whole.lstrip().startswith("!") and not self.text.lstrip().startswith("!")
        return "" if is_pasted else whole

    @property
    def kept(self) -> str:
        """The text for storage: with the tokens of its pastes, and marked mentions for its files."""
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
    """Return foreign text without control characters, token brackets or marks, safe for the box."""
    return typed(text).translate(_TAKEN_OUT)


def _clean_box_text(text: str) -> str:
    """Clean text that came from the box, and keep the marks of its mentions."""
    return MARK.join(map(clean, text.split(MARK)))


def drawn(text: str) -> str:
    """Return `text` as displayed, its tokens in plain brackets of the same width."""
    return text.translate(_DRAWN)


def spans(line: str) -> Iterator[tuple[int, int, int]]:
    """Return the number, start and end of each token in a line."""
    return ((int(token[1]), token.start(), token.end()) for token in _TOKEN.finditer(line))


def token(number: int, text: str, tokens: int, kind: str = "paste") -> str:
    """Return the token of a paste; with `tokens` 0 it omits its size in tokens.

    `kind` is its first word, such as "output" for a command's output.
    """
    lines = _lines(text)
    size = figures.plural(lines, "line") if lines > 1 else figures.plural(len(text), "character")
    price = f", ~{figures.tokens(tokens)} tokens" if tokens else ""
    return f"{_OPEN}{kind} {number}: {size}{price}{_CLOSE}"


def file_token(number: int, file: FoldedFile) -> str:
    """Return the token of a mentioned file, with only the end of a long name."""
    name = printable(file.spelled.translate(_TAKEN_OUT), 0)
    shown = name if len(name) <= _MAX_NAME else f"…{name[1 - _MAX_NAME :]}"
    return f"{_OPEN}{file.kind} {number}: {shown}{f', {file.note}' if file.note else ''}{_CLOSE}"


def restored(text: str, pastes: Mapping[int, str]) -> Draft:
    """Return a draft read from a file, its mentions marked; a token without a paste becomes plain text."""
    pieces, end = [], 0
    for found in _TOKEN.finditer(text):
        whole = found[0] if int(found[1]) in pastes else drawn(found[0])
        pieces += [_clean_box_text(text[end : found.start()]), whole]
        end = found.end()
    kept = Draft(
        "".join([*pieces, _clean_box_text(text[end:])]), {n: clean(paste) for n, paste in pastes.items()}
    )
    return Draft(kept.text, kept.used)


def folded(text: str, known: Iterable[str], price: Callable[[str], int], first: int = 1) -> Draft:
    """Return a draft of the box's own text, with each `known` paste as a token.

    A text that is still too long for the box becomes a single token. Pastes are numbered from `first` on.
    """
    text = _clean_box_text(text)
    pastes: dict[int, str] = {}
    for paste in sorted(set(known), key=len, reverse=True):
        if paste and paste in text:
            number = first + len(pastes)
            pastes[number] = paste
            text = text.replace(paste, token(number, paste, price(paste)))
    if fits_unfolded(text):
        return Draft(text, pastes)
    whole = Draft(text, pastes).whole  # folded text is not searched for mentions
    return Draft(token(first, whole, price(whole)), {first: whole})


def is_long(text: str) -> bool:
    """Return whether to replace this paste with a token."""
    return len(text) > _MAX_CHARACTERS or _lines(text) > _MAX_LINES


def fits_unfolded(text: str) -> bool:
    """Return whether the prompt box still echoes keys at once with this text unfolded."""
    if len(text) > _OPEN_CHARACTERS:
        return False
    return all(len(line) <= _OPEN_LINE for line in text.split("\n"))


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))
