"""The settings: every key, its type, its default and what is allowed, in this one place."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from rolling_chat.permissions.rules import parse_rule

# far above any real window or count, far below what arithmetic in floats takes without error
MOST = 1_000_000_000

_SHOWN = 80  # characters of a wrong text in the line that says so

KeyPath: TypeAlias = tuple[str, ...]

_TRUNCATIONS = ("head", "tail", "both")
_ESTIMATORS = ("auto", "ratio", "chars", "bytes", "cl100k_base", "o200k_base")


class SettingsError(Exception):
    """A setting that cannot be used; `str()` is the one line for the person."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What one key takes.

    `kind` is bool, int, float, str or tuple (a list of strings); bounds hold for numbers, both
    ends allowed but `below`. `choices` are the words allowed, for a tuple the words that may
    stand in place of the list. `project` says whether a project's own file may set the key:
    only what can neither run code nor send data elsewhere. `never_project`: not even in a trusted folder.
    `adds`: what a project sets is added to the user's own list. `item` reads one text of a list, and raises
    ValueError with the reason where it cannot; `example` is one that it takes.
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
    adds: bool = False
    item: Callable[[str], object] | None = None
    example: str = ""

    @property
    def takes_text(self) -> bool:
        """Whether a plain word is a value of this key."""
        return self.kind is str or bool(self.choices)

    @property
    def allowed(self) -> str:
        """What the key takes, in words."""
        words = " or ".join(f'"{choice}"' for choice in self.choices)
        if self.example:
            return f'a list of rules such as "{self.example}"'
        if self.kind is tuple:
            return f"{words} or a list of names" if words else "a list of texts"
        if words:
            return words if len(self.choices) == 2 else "one of " + words.replace(" or ", ", ")
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return "an address beginning with http:// or https://" if self.url else "a text on one line"
        return f"{'a whole number' if self.kind is int else 'a number'}{self._bounds()}"

    def check(self, value: object) -> Any:
        """Return `value` as the settings hold it. Raises ValueError if it is not allowed."""
        if not self._allows(value):
            raise ValueError(self.allowed)
        if isinstance(value, list | tuple):
            self._check_items(value)
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

    def _allows(self, value: object) -> bool:
        match value:
            case bool():
                return self.kind is bool
            case int() | float():
                return self._allows_number(value)
            case str():
                return self._allows_text(value)
            case list() | tuple():
                return self.kind is tuple and all(isinstance(item, str) and _plain(item) for item in value)
            case _:
                return False

    def _allows_number(self, value: float) -> bool:
        if self.kind is not float and not (self.kind is int and isinstance(value, int)):
            return False
        return (
            -MOST <= value <= MOST  # false for nan, too
            and (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def _allows_text(self, value: str) -> bool:
        if self.choices:
            return value in self.choices
        if self.kind is not str or not _plain(value):
            return False
        return not self.url or value == "" or is_address(value)

    def _bounds(self) -> str:
        if self.above is not None and self.most is not None:
            return f" above {self.above:g} and at most {self.most:g}"
        if self.least is not None and self.below is not None:
            return f" from {self.least:g} to below {self.below:g}"
        if self.least is not None:
            return f" from {self.least:g} to {MOST:,}"
        return ""


def is_address(text: str) -> bool:
    """Say whether `text` is an HTTP address: a scheme, a host, and a port that there can be."""
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


def _plain(text: str) -> bool:
    return text.isprintable()


def _key(default: Any, kind: type, *, project: bool = False, **rule: Any) -> Any:
    return field(default=default, metadata={"rule": Rule(kind, project=project, **rule)})


def _size(default: int, *, least: int = 0, project: bool = True) -> Any:
    return _key(default, int, least=least, project=project)


def _table(of: type) -> Any:
    return field(default_factory=lambda: MappingProxyType({}), metadata={"table_of": of})


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What is known of one model, sizes in tokens; 0: ask the catalogue, "": the provider's own."""

    max_input_tokens: int = _size(0)
    max_output_tokens: int = _size(0)
    api_base: str = _key("", str, url=True)


@dataclass(frozen=True, slots=True)
class ToolContextSettings:
    """What the pipeline does with the results of one tool; "" leaves the general setting."""

    truncation: Literal["", "head", "tail", "both"] = _key("", str, choices=_TRUNCATIONS, project=True)


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """The rolling pipeline. Sizes are in tokens, shares are of the budget."""

    enabled: bool = _key(False, bool, project=True)
    max_context_tokens: int = _size(0)
    reserved_output_tokens: int = _size(4096)
    safety_margin: float = _key(0.10, float, least=0, below=1, project=True)
    max_history_tokens: int = _size(20_000)
    preserve_recent_turns: int = _size(5)
    usage_threshold: float = _key(0.8, float, above=0, most=1, project=True)
    trim_to: float = _key(0.6, float, above=0, most=1, project=True)
    trim_strategy: Literal["priority", "priority-based", "oldest-first"] = _key(
        "priority", str, choices=("priority", "priority-based", "oldest-first"), project=True
    )
    summarize: Literal["off", "extract", "model"] = _key(
        "model", str, choices=("off", "extract", "model"), project=True
    )
    # another model may be another company's server: not for a project to choose
    summary_model: str = _key("", str)
    max_tool_result_tokens: int = _size(8000, least=1)
    tool_result_truncation: Literal["head", "tail", "both"] = _key(
        "head", str, choices=_TRUNCATIONS, project=True
    )
    tool_result_keep_first: int = _size(2)
    tool_result_keep_last: int = _size(5)
    tool_result_masking: Literal["auto", "exact", "steps"] = _key(
        "auto", str, choices=("auto", "exact", "steps"), project=True
    )
    token_estimator: str = _key("auto", str, choices=_ESTIMATORS, project=True)
    tools: Mapping[str, ToolContextSettings] = _table(ToolContextSettings)


def _permission_rules(**rule: Any) -> Any:
    return _key((), tuple, item=parse_rule, example="run_command(git status *)", **rule)


@dataclass(frozen=True, slots=True)
class PermissionSettings:
    """Permission rules (`rolling_chat.permissions.rules`): what runs without asking, and what never runs."""

    allow: tuple[str, ...] = _permission_rules(never_project=True)
    deny: tuple[str, ...] = _permission_rules(project=True, adds=True)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What the model may do, and how long it may go on by itself."""

    max_tool_iterations: int = _size(25, least=1, project=False)
    retry_minutes: int = _size(5, least=0, project=False)
    max_tool_calls: int = _size(200, least=1, project=False)
    approvals: Literal["read-only", "ask", "edits", "all"] = _key(
        "ask", str, choices=("read-only", "ask", "edits", "all")
    )
    tools: Literal["all", "none"] | tuple[str, ...] = _key("all", tuple, choices=("all", "none"))
    # variables that commands get although they hold secrets: not for a project to choose
    environment: tuple[str, ...] = _key((), tuple)
    permissions: PermissionSettings = field(
        default_factory=PermissionSettings, metadata={"group": PermissionSettings}
    )


@dataclass(frozen=True, slots=True)
class SessionsSettings:
    """How long saved sessions are kept; 0 days: for ever."""

    # what deletes is not for a project to choose
    keep_days: int = _size(0, project=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting in force.

    `origins` tells for each dotted key where its value came from: "default", a file's path,
    "environment" or "command line". `trusted_folders` are the projects whose own settings file
    may set every key. `warnings` are lines for people about what was given and means nothing.
    """

    model: str = _key("", str)
    theme: str = _key("midnight", str, project=True)
    trusted_folders: tuple[str, ...] = _key((), tuple)
    context: ContextSettings = field(default_factory=ContextSettings, metadata={"group": ContextSettings})
    models: Mapping[str, ModelSettings] = _table(ModelSettings)
    agent: AgentSettings = field(default_factory=AgentSettings, metadata={"group": AgentSettings})
    sessions: SessionsSettings = field(default_factory=SessionsSettings, metadata={"group": SessionsSettings})
    origins: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), compare=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def for_model(self, model: str) -> ModelSettings:
        """The settings of `model`, named exactly as in `[models."…"]`; defaults where there are none."""
        return self.models.get(model, _NO_MODEL_SETTINGS)


_NO_MODEL_SETTINGS = ModelSettings()
ANY = "*"


def _rules(of: type, prefix: KeyPath = ()) -> Iterator[tuple[KeyPath, Rule]]:
    for item in dataclasses.fields(of):
        path = (*prefix, item.name)
        if "rule" in item.metadata:
            yield path, item.metadata["rule"]
        elif "group" in item.metadata:
            yield from _rules(item.metadata["group"], path)
        elif "table_of" in item.metadata:
            yield from _rules(item.metadata["table_of"], (*path, ANY))


RULES: Mapping[KeyPath, Rule] = MappingProxyType(dict(_rules(Settings)))
"""Every key by its path; ANY stands for a name of the person's own (a model, a tool)."""


def build(
    values: Mapping[KeyPath, Any], origins: Mapping[str, str], warnings: Iterable[str] = ()
) -> Settings:
    """Make the settings from checked values by path; what is not given has its default."""
    read_only = MappingProxyType(dict(origins))
    settings: Settings = _build(Settings, values, (), origins=read_only, warnings=tuple(warnings))
    return settings


def _build(of: type, values: Mapping[KeyPath, Any], prefix: KeyPath, **more: Any) -> Any:
    depth = len(prefix)
    inside = {path: value for path, value in values.items() if path[:depth] == prefix}
    parts: dict[str, Any] = dict(more)
    for item in dataclasses.fields(of):
        path = (*prefix, item.name)
        if "rule" in item.metadata and path in inside:
            parts[item.name] = inside[path]
        elif "group" in item.metadata:
            parts[item.name] = _build(item.metadata["group"], inside, path)
        elif "table_of" in item.metadata:
            names = dict.fromkeys(key[depth + 1] for key in inside if key[: depth + 1] == path)
            made = {name: _build(item.metadata["table_of"], inside, (*path, name)) for name in names}
            parts[item.name] = MappingProxyType(made)
    return of(**parts)
