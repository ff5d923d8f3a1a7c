"""Plan mode: nothing is changed, and the model is asked for a plan.

What the model is told stands below the user's message and not in the system prompt: that stays as it is,
and with it all that the provider has cached of the conversation. It is kept with the message, so that the
prompt of a later turn begins with the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from rolling_chat.agent.permissions import Policy
from rolling_chat.messages import Message

PLAN_NOTE = """\
[Plan mode. Change nothing and run nothing yet: only tools that read are allowed. Look at what the \
request is about, then answer with a plan: numbered steps, each with the files that it changes and how; \
how the result will be checked; and what is still unclear, as questions. The user decides whether it is \
carried out.]\
"""
PLAN_ENDED = "[Plan mode is over: tools that change things may be called again.]"
CARRY_OUT = "Carry out the plan."


def mode_note(policy: Policy, recent: Sequence[Message]) -> str:
    """Return the note for the user's next message; `recent` are the newest messages of the branch."""
    if policy == "plan":
        return PLAN_NOTE
    last = next(
        (note for one in reversed(recent) if (note := one.note).startswith((PLAN_NOTE, PLAN_ENDED))), ""
    )
    return PLAN_ENDED if last.startswith(PLAN_NOTE) else ""
