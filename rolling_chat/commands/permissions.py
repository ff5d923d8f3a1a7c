"""/permissions: list the permission rules; add, remove or keep rules of the session or folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat.commands.base import Choice, Column, Command, CommandContext, Table, first_word
from rolling_chat.text import exact, one_line

if TYPE_CHECKING:
    from rolling_chat.permissions.rules import PermissionRule

_NAME = "/permissions"
_COLUMNS = (Column("rule"), Column("says"), Column("from"))
_WORDS = (
    Choice("add", "add", "add a rule for this session, such as network(pip install *)"),
    Choice("remove", "remove", "take back a rule of this session or folder"),
    Choice("keep", "keep", "write a rule of this session or folder into your settings"),
)


def _shown(rule: PermissionRule) -> str:
    return one_line(exact(rule.text))


def _list(context: CommandContext) -> None:
    permissions = context.chat.session.permissions
    rows = [(_shown(rule), "deny", "settings") for rule in permissions.deny]
    rows += [(_shown(rule), "deny", "this folder") for rule in permissions.denied_in_folder]
    rows += [(_shown(rule), "allow", "settings") for rule in permissions.allow]
    rows += [(_shown(rule), "allow", "this folder") for rule in permissions.folder]
    rows += [(_shown(rule), "allow", "this session") for rule in permissions.session]
    policy = f"agent.approvals is {permissions.policy}"
    if not rows:
        context.say(f"There are no permission rules; {policy}.")
        return
    lead = [
        f"{policy}; a rule that denies wins. {_NAME} remove and keep change those of this session and folder."
    ]
    context.show_tables("Permissions", lead, [Table(_COLUMNS, rows)])


async def _choose(context: CommandContext, title: str, text: str) -> PermissionRule | None:
    """Return the session's or folder's rule with this text, or the one that the user picks."""
    permissions = context.chat.session.permissions
    rules = {rule.text: rule for rule in (*permissions.session, *permissions.folder)}
    if not rules:
        context.say("This session and this folder have no permission rules of their own.")
        return None
    if text and text not in rules:
        context.say(
            f"Neither this session nor this folder has a rule {one_line(exact(text), 80)}.", warning=True
        )
        return None
    origins = {rule.text: "this folder" for rule in permissions.folder}
    choices = [
        Choice(rule.text, _shown(rule), origins.get(rule.text, "this session")) for rule in rules.values()
    ]
    chosen = text or await context.pick(title, choices)
    return rules.get(chosen) if chosen else None


def _add(context: CommandContext, text: str) -> None:
    rule = context.chat.session.permissions.add(text)
    context.say(f"Added {_shown(rule)} for this session.")


async def _remove(context: CommandContext, text: str) -> None:
    rule = await _choose(context, "Remove a rule", text)
    if rule is not None:
        context.chat.session.permissions.remove(rule)
        context.say(f"Removed {_shown(rule)}: it asks again.")


async def _keep(context: CommandContext, text: str) -> None:
    rule = await _choose(context, "Keep a rule in your settings", text)
    if rule is not None:
        context.chat.session.permissions.keep(rule)
        context.say(f"Kept {_shown(rule)} in your settings (agent.permissions.allow).")


async def _run(context: CommandContext, argument: str) -> None:
    word, _, rest = argument.partition(" ")
    match word.lower():
        case "":
            _list(context)
        case "add":
            _add(context, rest.strip())
        case "remove":
            await _remove(context, rest.strip())
        case "keep":
            await _keep(context, rest.strip())
        case _:
            context.say(f"{_NAME} takes add, remove or keep, not {argument!r}.", warning=True)


PERMISSIONS = Command(
    "permissions",
    "[add|remove|keep] [rule]",
    "List the permission rules; add, remove or keep one of this session or folder",
    _run,
    while_busy=True,
    arguments=first_word(lambda _context: _WORDS),
)
