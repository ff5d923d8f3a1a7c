"""The hooks of a session: those in the user's settings, then those in the project's `.agents/hooks.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rolling_chat.settings.hook_settings import DEFAULT_TIMEOUT, EVENTS, Hook, HookSettings, read_hook
from rolling_chat.settings.project_files import FileKind
from rolling_chat.settings.trust import FolderTrust, TrustedFile
from rolling_chat.text import one_line, printable

_MAX_HOOKS = 50  # a project's hooks per event
_MAX_FAULTS = 10
_MAX_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class Hooks:
    """Hooks by event, in the order in which they run. `faults` are lines about unusable hooks."""

    by_event: Mapping[str, tuple[Hook, ...]] = field(default_factory=lambda: MappingProxyType({}))
    faults: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(self.by_event.values())


def read_hooks(settings: HookSettings, trust: FolderTrust) -> Hooks:
    """Return the hooks of the settings and of the folder's trusted files."""
    found: dict[str, list[Hook]] = {event: list(map(read_hook, getattr(settings, event))) for event in EVENTS}
    faults: list[str] = []
    for file in trust.contents(FileKind.HOOKS):
        for event, hook in _read_file(file, faults):
            if sum(not one.is_own for one in found[event]) < _MAX_HOOKS:
                found[event].append(hook)
    by_event = {event: tuple(hooks) for event, hooks in found.items() if hooks}
    return Hooks(MappingProxyType(by_event), tuple(dict.fromkeys(faults))[:_MAX_FAULTS])


def _read_file(file: TrustedFile, faults: list[str]) -> Iterator[tuple[str, Hook]]:
    """Yield the hooks of a file, `{"hooks": {EVENT: [{"matcher", "hooks": [{"command"}]}]}}`."""
    name = printable(file.name, 200)
    try:
        if len(file.data) > _MAX_BYTES:
            raise ValueError(f"it is larger than {_MAX_BYTES:,} bytes")
        data = json.loads(file.data)
    except (ValueError, RecursionError) as error:
        faults.append(f"{name} is left out: it is not JSON ({one_line(str(error), 100)}).")
        return
    events = data.get("hooks") if isinstance(data, dict) else None
    if not isinstance(events, dict):
        faults.append(f'{name} is left out: it has no table "hooks".')
        return
    for event, groups in events.items():
        if event not in EVENTS:
            faults.append(
                f"{name}: there is no event {printable(str(event), 60)} here; its hooks are left out."
            )
        elif not isinstance(groups, list):
            faults.append(f"{name}: {event} is not a list; its hooks are left out.")
        else:
            for group in groups:
                yield from (
                    (event, hook) for hook in _read_group(group, f"{name}: a hook of {event}", faults)
                )


def _read_group(group: Any, what: str, faults: list[str]) -> Iterator[Hook]:
    if not isinstance(group, dict) or not isinstance(group.get("hooks", []), list):
        faults.append(f"{what} is left out: it is not a table with a list of hooks.")
        return
    for one in group.get("hooks", [group]):
        try:
            yield _read_one(one, group.get("matcher", ""))
        except ValueError as error:
            faults.append(f"{what} is left out: {one_line(str(error), 160)}.")


def _read_one(one: Any, matcher: object) -> Hook:
    """Read one hook, ignoring unknown fields, which may be other agents'. Raises ValueError."""
    if not isinstance(one, dict):
        raise ValueError("it is not a table")
    if one.get("type", "command") != "command":
        raise ValueError(f"its type is {printable(str(one['type']), 40)}, and only commands are run")
    timeout = one.get("timeout", DEFAULT_TIMEOUT)
    on_failure = one.get("onFailure", one.get("on_failure", "continue"))
    table = {"command": one.get("command"), "matcher": matcher, "timeout": timeout, "on_failure": on_failure}
    return read_hook(table, is_own=False)
