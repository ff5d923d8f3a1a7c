"""/mode: choose which calls need permission: commands and edits, only commands, or none; or none run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rolling_chat.commands.base import Choice, Command, CommandContext, first_word
from rolling_chat.text import one_line

if TYPE_CHECKING:
    from rolling_chat.agent import Policy

POLICIES: Mapping[Policy, str] = {
    "ask": "commands and changes of files ask first",
    "edits": "changes of files in this folder run; commands ask first",
    "plan": "nothing runs and no file is changed; the model answers with a plan",
    "read-only": "nothing runs and no file is changed",
    "all": "everything runs without asking",
}
"""The policies and their meanings."""


_NEXT: dict[Policy, Policy] = {
    "ask": "edits",
    "edits": "plan",
    "plan": "read-only",
    "read-only": "ask",
    "all": "ask",
}


def next_policy(policy: Policy) -> Policy:
    """Return the policy that the key switches to; `all` can only be chosen by name."""
    return _NEXT[policy]


def policy_line(policy: Policy) -> str:
    """Return the line that reports the policy of permissions."""
    return f"Mode {policy}: {POLICIES[policy]}. Rules that deny always hold; /permissions lists them."


def _choices(_context: CommandContext) -> list[Choice]:
    return [Choice(name, name, meaning) for name, meaning in POLICIES.items()]


async def _run(context: CommandContext, argument: str) -> None:
    permissions = context.chat.session.permissions
    asked = argument or await context.pick("What may run", _choices(context), current=permissions.policy)
    if not asked:
        return
    policy = next((name for name in POLICIES if name == asked), None)
    if policy is None:
        names = ", ".join(POLICIES)
        context.say(f"/mode takes {names}, not {one_line(asked, 40)!r}.", warning=True)
        return
    permissions.policy = policy
    context.say(policy_line(policy), warning=policy == "all")


MODE = Command(
    "mode",
    "[ask|edits|plan|read-only|all]",
    "Change what asks for permission in this session",
    _run,
    while_busy=True,
    arguments=first_word(_choices),
)
