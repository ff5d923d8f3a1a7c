"""The short names of permission rules in questions."""

from __future__ import annotations

from rolling_chat.permissions.rules import PermissionRule
from rolling_chat.text import exact


def name_of_rule(rule: PermissionRule) -> str:
    """Return a rule's name, short enough for a narrow screen."""
    match rule.reach:
        case "tool":
            return rule.tool
        case "prefix":
            return f"{exact(rule.command)} *"
        case "path":
            return f"{rule.tool} in {exact(rule.command)}"
        case "host":
            return f"{rule.tool} from {exact(rule.command)}"
        case _:
            return "exactly this command"  # which is shown above, whole
