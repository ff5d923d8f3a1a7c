"""The settings of hooks: commands that run on events, and may change or refuse them.

Events and fields are those of other agents, so that hooks written for these work here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rolling_chat.setting_rules import Entry, Rule

DEFAULT_TIMEOUT = 60  # seconds
MAX_TIMEOUT = 600

_KEYS = ("matcher", "command", "timeout", "on_failure")
_ON_FAILURE = ("continue", "block")


@dataclass(frozen=True, slots=True)
class Hook:
    """One command. It runs if `matcher`, a regular expression, matches the whole subject or is empty.

    `blocks_on_failure`: a failure of the hook itself counts as a refusal. `is_own`: it is the user's, not the
    project's.
    """

    command: str
    matcher: str = ""
    timeout: int = DEFAULT_TIMEOUT
    blocks_on_failure: bool = False
    is_own: bool = True


def read_hook(table: Mapping[str, object], *, is_own: bool = True) -> Hook:
    """Read one table of a list of hooks. Raises ValueError, whose text is the reason."""
    unknown = next((key for key in table if key not in _KEYS), None)
    if unknown is not None:
        raise ValueError(f"{unknown} is not known; a hook has {', '.join(_KEYS)}")
    command, matcher = table.get("command"), table.get("matcher", "")
    timeout, on_failure = table.get("timeout", DEFAULT_TIMEOUT), table.get("on_failure", "continue")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise ValueError("command must be a text")
    if not isinstance(matcher, str):
        raise ValueError("matcher must be a text")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 1 <= timeout <= MAX_TIMEOUT:
        raise ValueError(f"timeout must be from 1 to {MAX_TIMEOUT} seconds")
    if on_failure not in _ON_FAILURE:
        raise ValueError('on_failure must be "continue" or "block"')
    matcher = "" if matcher == "*" else matcher
    try:
        re.compile(matcher)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"matcher is no regular expression: {error}") from None
    return Hook(command, matcher, int(timeout), on_failure == "block", is_own)


_ENTRY = Entry(
    read_hook,
    '{ matcher = "run_command", command = "check.sh" }',
    {
        "type": "object",
        "properties": {
            "matcher": {
                "type": "string",
                "description": "A regular expression for names.",
            },
            "command": {
                "type": "string",
                "description": "Run by the shell.",
            },
            "timeout": {"type": "number", "minimum": 1, "maximum": MAX_TIMEOUT, "default": DEFAULT_TIMEOUT},
            "on_failure": {"enum": list(_ON_FAILURE), "default": "continue"},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
)


def _hooks(help: str) -> Any:
    rule = Rule(tuple, entry=_ENTRY, help=help, never_project=True)
    return field(default=(), metadata={"rule": rule})


@dataclass(frozen=True, slots=True)
class HookSettings:
    """The settings of `[[hooks.EVENT]]`, tables for `read_hook`. A project has a file for its own hooks."""

    SessionStart: tuple[Mapping[str, Any], ...] = _hooks("Commands to run before the first message.")
    UserPromptSubmit: tuple[Mapping[str, Any], ...] = _hooks("Commands to run before a message is sent.")
    PreToolUse: tuple[Mapping[str, Any], ...] = _hooks("Commands to run before a tool is used.")
    PostToolUse: tuple[Mapping[str, Any], ...] = _hooks("Commands to run after a tool was used.")
    PreCompact: tuple[Mapping[str, Any], ...] = _hooks("Commands to run before history is shortened.")
    Stop: tuple[Mapping[str, Any], ...] = _hooks("Commands to run when the model has answered.")
    Notification: tuple[Mapping[str, Any], ...] = _hooks("Commands to run when you are called back.")


EVENTS = tuple(HookSettings.__dataclass_fields__)
"""The events, by the names that agents share."""
