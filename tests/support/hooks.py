"""Hooks of tests: settings that run a shell line on an event, and what such a line was given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rolling_chat.settings.hook_settings import HookSettings


def hooked(**commands: str | dict[str, Any] | list[str | dict[str, Any]]) -> HookSettings:
    """Settings with a hook, or several, for each event."""

    def table(one: str | dict[str, Any]) -> dict[str, Any]:
        return {"command": one} if isinstance(one, str) else one

    given = {event: one if isinstance(one, list) else [one] for event, one in commands.items()}
    return HookSettings(**{event: tuple(map(table, hooks)) for event, hooks in given.items()})


def answers(**fields: Any) -> str:
    """A shell line that answers with JSON."""
    return f"cat > /dev/null; echo '{json.dumps(fields)}'"


def decides(event: str, **fields: Any) -> str:
    """A shell line that answers with what is specific to an event."""
    return answers(hookSpecificOutput={"hookEventName": event, **fields})


def project_hooks(folder: Path, **commands: str) -> Path:
    """Write a project's own file of hooks; return it."""
    hooks = {
        event: [{"matcher": "*", "hooks": [{"type": "command", "command": command}]}]
        for event, command in commands.items()
    }
    file = folder / ".agents" / "hooks.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"hooks": hooks}))
    return file
