"""The rules of settings: types, bounds and choices."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

# far above any real window or count, far below the largest integer that floats represent exactly
MAX_NUMBER = 1_000_000_000

_SHOWN = 80  # characters of a wrong text quoted in an error


@dataclass(frozen=True, slots=True)
class Entry:
    """The rule of a setting that is a list of tables: `read` raises ValueError with what is wrong in one.

    `example` is such a table, `schema` its JSON Schema.
    """

    read: Callable[[Mapping[str, Any]], object]
    example: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of one setting: its type, bounds and choices.

    `kind` is bool, int, float, str or tuple (a list of strings). `least` and `most` are inclusive bounds of
    numbers, `above` and `below` exclusive ones. `choices` are the allowed words: of a text the only ones, of
    a list or number alternatives to it. `project`: a project's own file may set the key, which is only safe
    if the setting can neither run code nor send data elsewhere. `never_project`: not even in a trusted
    folder. `one`: a single text means a list of it. `adds`: a project's list is added to the user's own.
    `tightens`: the choices go from loose to strict, and a project's own counts if it is stricter. `item`
    reads one text of a list, and raises ValueError with the reason if it is not allowed; `example` is an
    allowed one. With an `entry`, the list consists of tables. `text` reads a text that is not empty, and
    raises ValueError likewise. `help` describes the setting in a sentence.
    """

    kind: type
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    url: bool = False
    project: bool = False
    never_project: bool = False
    one: bool = False
    adds: bool = False
    tightens: bool = False
    item: Callable[[str], object] | None = None
    example: str = ""
    entry: Entry | None = None
    text: Callable[[str], object] | None = None
    help: str = ""

    @property
    def takes_text(self) -> bool:
        """Whether the setting accepts a plain word without quotes."""
        return self.kind is str or self.one or (bool(self.choices) and not self.is_number)

    @property
    def is_number(self) -> bool:
        """Whether the setting is a number."""
        return self.kind in (int, float)

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        words = " or ".join(f'"{choice}"' for choice in self.choices)
        if self.entry is not None:
            return f"a list of tables such as {self.entry.example}"
        if self.text is not None:
            return f'an address such as "{self.example}"'
        if self.example:
            return f'a list of rules such as "{self.example}"'
        if self.one:
            return "a text or a list of texts"
        if self.kind is tuple:
            return f"{words} or a list of names" if words else "a list of texts"
        if words and not self.is_number:
            return words if len(self.choices) == 2 else "one of " + words.replace(" or ", ", ")
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return "an address beginning with http:// or https://" if self.url else "a text on one line"
        number = f"{'a whole number' if self.kind is int else 'a number'}{self._bounds()}"
        return f"{words} or {number}" if words else number

    def check(self, value: object) -> Any:
        """Check a value and convert it to the setting's type. Raises ValueError if it is not allowed."""
        if not self._allows(value):
            raise ValueError(self.allowed)
        if self.one and isinstance(value, str):
            return (value,)
        if self.text is not None and value:
            self._check_text(str(value))
        if isinstance(value, list | tuple):
            self._check_entries(value) if self.entry is not None else self._check_items(value)
            return tuple(value)
        return float(value) if self.kind is float and isinstance(value, int) else value

    def _check_items(self, items: Sequence[str]) -> None:
        if self.item is None:
            return
        for text in items:
            try:
                self.item(text)
            except ValueError as error:
                raise ValueError(f'{self.allowed}; "{text[:_SHOWN]}" {error}') from None

    def _check_text(self, value: str) -> None:
        assert self.text is not None
        try:
            self.text(value)
        except ValueError as error:
            raise ValueError(f"{self.allowed}; {error}") from None

    def _check_entries(self, entries: Sequence[Mapping[str, Any]]) -> None:
        assert self.entry is not None
        for table in entries:
            try:
                self.entry.read(table)
            except ValueError as error:
                raise ValueError(f"{self.allowed}; {error}") from None

    def _allows(self, value: object) -> bool:
        match value:
            case bool():
                return self.kind is bool
            case int() | float():
                return self._allows_number(value)
            case str():
                return self._allows_text(value)
            case list() | tuple() if self.entry is not None:
                return all(isinstance(item, Mapping) for item in value)
            case list() | tuple():
                return self.kind is tuple and all(isinstance(item, str) and _plain(item) for item in value)
            case _:
                return False

    def _allows_number(self, value: float) -> bool:
        if self.kind is not float and not (self.kind is int and isinstance(value, int)):
            return False
        return -MAX_NUMBER <= value <= MAX_NUMBER and self.is_in_range(value)  # false for nan, too

    def is_in_range(self, value: float) -> bool:
        """Return whether a number is within the bounds."""
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def _allows_text(self, value: str) -> bool:
        if self.choices:
            return value in self.choices
        if self.one:
            return _plain(value)
        if self.kind is not str or not _plain(value):
            return False
        return not self.url or value == "" or is_address(value)

    def _bounds(self) -> str:
        if self.above is not None and self.most is not None:
            return f" above {self.above:g} and at most {self.most:g}"
        if self.least is not None and self.most is not None:
            return f" from {self.least:g} to {self.most:g}"
        if self.least is not None and self.below is not None:
            return f" from {self.least:g} to below {self.below:g}"
        if self.least is not None:
            return f" from {self.least:g} to {MAX_NUMBER:,}"
        return ""


def is_address(text: str) -> bool:
    """Return whether `text` is an HTTP address: a scheme, a host, and a valid port."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    return (
        text.startswith(("http://", "https://"))
        and text.isprintable()
        and not re.search(r"\s", text)
        and bool(parts.hostname)
        and port != 0
    )


def check_database_address(text: str) -> None:
    """Raise ValueError with the reason if `text` is not a PostgreSQL address, or contains a password."""
    parts = urlsplit(text)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ValueError("it begins with postgresql://")
    if parts.password is not None or any(name == "password" for name, _ in parse_qsl(parts.query)):
        raise ValueError("its password belongs in PGPASSWORD, a passfile or a service, and in no setting")


def without_password(text: str) -> str:
    """Return a text with the passwords of addresses in it replaced by stars."""
    text = re.sub(r"(?<=//)([^/@\s:]*):[^/@\s]*@", r"\1:***@", text)
    return re.sub(r"([?&]password=)[^&\s\"]*", r"\1***", text)


def _plain(text: str) -> bool:
    return text.isprintable()


def key(default: Any, kind: type, *, help: str, project: bool = False, **rule: Any) -> Any:
    """Define a setting: a dataclass field with its default and its rule."""
    return field(default=default, metadata={"rule": Rule(kind, help=help, project=project, **rule)})


def size(
    default: int | str, *, help: str, least: int = 0, project: bool = True, choices: tuple[str, ...] = ()
) -> Any:
    """Define a setting that is a count or a size in tokens, or one of a few words."""
    return key(default, int, help=help, least=least, project=project, choices=choices)
