"""Load the settings from defaults, files, environment and command line; later sources take precedence."""

from __future__ import annotations

import difflib
import functools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rolling_chat.setting_rules import Rule, without_password
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.paths import HOME_VARIABLE, Paths
from rolling_chat.settings.schema import ANY, RULES, KeyPath, Settings, build
from rolling_chat.settings.toml_file import decode_toml, parse_toml, read_toml
from rolling_chat.settings.trust import FolderTrust, TrustedFile
from rolling_chat.text import printable

ENVIRONMENT_PREFIX = "ROLLING_CHAT_"
IN_HOOK = "ROLLING_CHAT_IN_HOOK"
"""Set in the environment of hooks, so that a hook that runs this program does not run itself."""

# read by the program itself; not settings
PROGRAM_VARIABLES = frozenset({HOME_VARIABLE, IN_HOOK, "ROLLING_CHAT_OFFLINE_DELAY"})

_ENVIRONMENT = "environment"
COMMAND_LINE = "command line"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_OVERRIDE = re.compile(r"""((?:"[^"]*"|'[^']*'|[^"'=])*)=(.*)""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Given:
    """One value from a source; `spelt` is the key as written there."""

    path: KeyPath
    value: object
    origin: str
    spelt: str


class Faults:
    """Handles faults in the settings: raises the first one, or collects them all in `lines`."""

    def __init__(self, *, collect: bool = False) -> None:
        self.lines: list[str] = []
        self._collect = collect

    def add(self, error: SettingsError) -> None:
        """Raise `error`, or collect it unless the same one is already there."""
        if not self._collect:
            raise error
        if str(error) not in self.lines:
            self.lines.append(str(error))

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Add a SettingsError that is raised in the block, and continue after it."""
        try:
            yield
        except SettingsError as error:
            self.add(error)


def load_settings(
    paths: Paths,
    folder: Path,
    environ: Mapping[str, str],
    overrides: Sequence[str] = (),
    faults: Faults | None = None,
    *,
    trust: FolderTrust | None = None,
) -> Settings:
    """Read the settings that apply in `folder`: defaults, files, environment and command line.

    `overrides` are `key=value`, with the value in TOML or, for a text, plain. A project's own file is read if
    it is trusted by `trust`. It may only set keys that can neither run code nor send data elsewhere, unless
    the user's own settings list its folder in `trusted_folders`; other keys cause a warning. It may deny
    permissions, but never grant them. Raises SettingsError for anything unknown, invalid or unreadable,
    because the program must not start on a guess. An unknown environment variable only causes a warning,
    because it may be meant for another program. With `faults` that collect, invalid settings are left out
    instead.
    """
    faults = faults or Faults()
    user = list(_from_file(paths.config_file, faults))
    later = [*_from_environment(environ), *_from_overrides(overrides, faults)]
    values, origins = _checked([*user, *later], faults)
    warnings = list(_unknown_variables(environ))
    is_listed = _is_listed(folder, values.get(("trusted_folders",), ()))
    if trust is not None and is_listed:
        trust.everything = True
    project_file = trust.settings() if trust is not None else None
    if project_file is not None:
        given = _from_data(project_file, faults)
        project = list(_safe(given, warnings, is_listed=is_listed))
        replacing = [item for item in project if not _is_combined(item)]
        values, origins = _checked([*user, *replacing, *later], faults)
        _combine(values, origins, [item for item in project if _is_combined(item)], faults)
    everywhere = {dotted(path): "default" for path in RULES if ANY not in path}
    return build(values, everywhere | origins, warnings)


def check_setting(path: KeyPath, value: object, origin: str, spelt: str = "") -> Any:
    """Check a value and convert it to its setting's type.

    Raises SettingsError, which names the origin, the key and the allowed values.
    """
    key = spelt or dotted(path)
    rule = find_rule(path)
    if rule is None:
        raise SettingsError(f"{origin}: {_unknown(path, key, value)}")
    try:
        return rule.check(value)
    except ValueError as error:
        raise SettingsError(f"{origin}: {printable(key)} = {shown(value)}: must be {error}") from None


def read_setting(key: str, text: str, origin: str) -> tuple[KeyPath, Any]:
    """Parse a key and its value as the user types them, as in `context.enabled=true`.

    Raises SettingsError like `check_setting`.
    """
    path = split_key(key)
    return path, check_setting(path, _value(text, find_rule(path)), origin, key)


def find_rule(path: KeyPath) -> Rule | None:
    """Return the rule of a key; None if there is no such key."""
    return RULES.get(path) or RULES.get(_with_any(path))


def split_key(text: str) -> KeyPath:
    """Split a dotted key of the settings into its parts.

    The name of a model or a tool needs no quotes, because shells remove them.
    """
    for pattern in RULES:
        if ANY not in pattern[:-1]:
            continue
        start, end = ".".join(pattern[:-2]) + ".", "." + pattern[-1]
        name = text[len(start) : -len(end)]
        if name and text.startswith(start) and text.endswith(end):
            return (*pattern[:-2], _unquoted(name), pattern[-1])
    return tuple(_unquoted(part.strip()) for part in text.split("."))


def dotted(path: KeyPath) -> str:
    """Format a key as in TOML, with dots and quotes."""
    return ".".join(part if _BARE_KEY.fullmatch(part) else f'"{part}"' for part in path)


def shown(value: object) -> str:
    """Format a value for a message: one line, shortened, without control characters."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{printable(without_password(value))}"'
        case dict():
            return "a table"
        case list() | tuple():
            return "a list"
        case int() if abs(value) >= 10**40:
            return "a huge number"
        case _:
            return printable(str(value))


def nearest(word: str, words: Iterable[str]) -> str:
    """Return the most similar of `words`, or an empty text."""
    return next(iter(difflib.get_close_matches(word[:200], list(words), n=1, cutoff=0.5)), "")


def _from_file(path: Path, faults: Faults) -> Iterator[_Given]:
    table: Mapping[str, object] = {}
    with faults.caught():
        table = read_toml(path)
    yield from _leaves(table, (), printable(str(path), 300), faults)


def _from_data(file: TrustedFile, faults: Faults) -> Iterator[_Given]:
    table: Mapping[str, object] = {}
    with faults.caught():
        table = parse_toml(decode_toml(file.data, file.path), file.path)
    yield from _leaves(table, (), printable(str(file.path), 300), faults)


def _leaves(table: Mapping[str, object], prefix: KeyPath, origin: str, faults: Faults) -> Iterator[_Given]:
    for name, value in table.items():
        path = (*prefix, name)
        if isinstance(value, dict) and _is_table(path):
            yield from _leaves(value, path, origin, faults)
        elif _is_table(path) and find_rule(path) is None:
            faults.add(
                SettingsError(
                    f"{origin}: {printable(dotted(path))} = {shown(value)}: must be a table of keys, "
                    f"as in [{printable(dotted(path))}]"
                )
            )
        else:
            yield _Given(path, value, origin, dotted(path))


def _is_table(path: KeyPath) -> bool:
    return any(
        len(path) < len(known) and all(want in (ANY, part) for want, part in zip(known, path, strict=False))
        for known in RULES
    )


def _from_environment(environ: Mapping[str, str]) -> Iterator[_Given]:
    for variable, path in sorted(_variables().items()):
        text = environ.get(variable, "")
        if text:  # users unset a variable in the shell by making it empty
            yield _Given(path, _value(text, RULES[path]), _ENVIRONMENT, variable)


def _unknown_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable that looks like one of ours but is not.

    Its value is not shown, because it may be a secret.
    """
    known = {name.removeprefix(ENVIRONMENT_PREFIX) for name in {*_variables(), *PROGRAM_VARIABLES}}
    for variable in sorted(environ):
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        if name == variable or name in known:
            continue
        near = nearest(name, sorted(known))
        hint = f"; did you mean {ENVIRONMENT_PREFIX}{near}?" if near else ""
        yield f"{_ENVIRONMENT}: unknown variable {printable(variable)} is not used{hint}"


def _variables() -> dict[str, KeyPath]:
    """Return the key that each environment variable sets."""
    return {ENVIRONMENT_PREFIX + "_".join(path).upper(): path for path in RULES if ANY not in path}


def _from_overrides(overrides: Sequence[str], faults: Faults) -> Iterator[_Given]:
    for override in overrides:
        match = _OVERRIDE.fullmatch(override)
        if match is None or not match[1].strip():
            faults.add(SettingsError(f"{COMMAND_LINE}: {printable(override)}: must be key=value"))
            continue
        key = match[1].strip()
        path = split_key(key)
        yield _Given(path, _value(match[2].strip(), find_rule(path)), COMMAND_LINE, key)


def _value(text: str, rule: Rule | None) -> object:
    try:
        # a newline would end the value and begin another key
        parsed = tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except (ValueError, RecursionError):
        return text
    wants_text = rule is not None and rule.takes_text and not isinstance(parsed, str | list)
    return text if wants_text else parsed


def _checked(given: Iterable[_Given], faults: Faults) -> tuple[dict[KeyPath, Any], dict[str, str]]:
    values: dict[KeyPath, Any] = {}
    origins: dict[str, str] = {}
    for item in given:
        with faults.caught():
            values[item.path] = check_setting(item.path, item.value, item.origin, item.spelt)
            origins[dotted(item.path)] = item.origin
    return values, origins


def _unknown(path: KeyPath, key: str, value: object) -> str:
    fault = f"unknown key {printable(key)} = {shown(value)}"
    if path[0] == "models" and isinstance(value, dict):
        return f'{fault}; a name with dots in it is put in quotes, as in [models."gpt-4.1"]'
    near = nearest(dotted(_with_any(path)), [dotted(known) for known in RULES])
    if near:
        return f"{fault}; did you mean {near.replace(dotted((ANY,)), _name_in(path))}?"
    return f"{fault}; allowed: {', '.join(dict.fromkeys(known[0] for known in RULES))}"


def _name_in(path: KeyPath) -> str:
    return printable(dotted((path[-2],))) if len(path) > 2 else "NAME"


def _with_any(path: KeyPath) -> KeyPath:
    """Replace a name that the user chose with ANY, if the schema has one in that position."""
    for known in RULES:
        is_like = len(known) == len(path) and known[0] == path[0]
        if ANY in known and is_like:
            return tuple(ANY if want == ANY else part for want, part in zip(known, path, strict=True))
    return path


def _is_listed(folder: Path, trusted: Sequence[str]) -> bool:
    try:
        here = folder.resolve()
        named = [Path(name).expanduser() for name in trusted]
        # a relative name would depend on the folder in which the program is started
        return any(path.is_absolute() and path.resolve() == here for path in named)
    except (OSError, RuntimeError):
        return False


def _safe(given: Iterable[_Given], warnings: list[str], *, is_listed: bool) -> Iterator[_Given]:
    """Yield the settings that a project may set; add a warning for every other one."""
    for item in given:
        rule = find_rule(item.path)
        if rule is None or (not rule.never_project and (rule.project or is_listed)):
            yield item
            continue
        trust = "" if rule.never_project else ", or list the folder there in trusted_folders"
        warnings.append(
            f"{item.origin}: {printable(item.spelt)} = {shown(item.value)}: a project may not set this; "
            f"put it in your own settings{trust}"
        )


def _is_combined(item: _Given) -> bool:
    """Return whether a project's value is combined with others instead of replacing them."""
    rule = find_rule(item.path)
    return rule is not None and (rule.adds or rule.tightens)


def _combine(
    values: dict[KeyPath, Any], origins: dict[str, str], given: Iterable[_Given], faults: Faults
) -> None:
    """Combine a project's values with all others, so that it can only add to lists and tighten limits."""
    for item in given:
        with faults.caught():
            more = check_setting(item.path, item.value, item.origin, item.spelt)
            rule = RULES[item.path]
            if rule.tightens:
                _tighten(rule, values, origins, item, more)
                continue
            values[item.path] = tuple(dict.fromkeys((*values.get(item.path, ()), *more)))
            before = origins.get(dotted(item.path))
            origins[dotted(item.path)] = f"{before}, {item.origin}" if before else item.origin


def _tighten(
    rule: Rule, values: dict[KeyPath, Any], origins: dict[str, str], item: _Given, wanted: str
) -> None:
    """Use a project's value if it is stricter than the current one."""
    now = values.get(item.path) or functools.reduce(getattr, item.path, Settings())
    if rule.choices.index(wanted) > rule.choices.index(now):
        values[item.path] = wanted
        origins[dotted(item.path)] = item.origin


def _unquoted(part: str) -> str:
    quoted = len(part) > 1 and part[0] == part[-1] and part[0] in "\"'"
    return part[1:-1] if quoted else part
