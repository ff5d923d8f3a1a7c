"""Plan mode: nothing is changed, and the model is asked for a plan.

What the model is told stands below the user's message and not in the system prompt: that stays as it is,
and with it all that the provider has cached of the conversation. It is kept with the message, so that the
prompt of a later turn begins with the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from rolling_chat.agent.conversation import Conversation
from rolling_chat.agent.permissions import Permissions
from rolling_chat.messages import Message

PLAN_NOTE = """\
[Plan mode. Change nothing and run nothing yet: only tools that read are allowed. Look at what the \
request is about, then answer with a plan: numbered steps, each with the files that it changes and how; \
how the result will be checked; and what is still unclear, as questions. The user decides whether it is \
carried out.]\
"""
PLAN_ENDED = "[Plan mode is over: tools that change things may be called again.]"
CARRY_OUT = "Carry out the plan."


class PlanMode:
    """Tells the model of one session when plan mode begins and ends; looks at every message once."""

    def __init__(self, permissions: Permissions, conversation: Conversation) -> None:
        self._permissions = permissions
        self._conversation = conversation
        self._seen: tuple[int, Message] | None = None  # so many messages, and the last of them
        self._told = ""  # the newest note among them

    @property
    def note(self) -> str:
        """The note for the user's next message; empty for none."""
        if self._permissions.policy == "plan":
            return PLAN_NOTE
        return PLAN_ENDED if self._newest(self._conversation.recent).startswith(PLAN_NOTE) else ""

    def _newest(self, recent: Sequence[Message]) -> str:
        count, last = self._seen or (0, None)
        if last is None or len(recent) < count or recent[count - 1] is not last:
            count, self._told = 0, ""
        notes = (one.note for one in reversed(recent[count:]))
        told = (note for note in notes if note.startswith((PLAN_NOTE, PLAN_ENDED)))
        self._told = next(told, self._told)
        self._seen = (len(recent), recent[-1]) if recent else None
        return self._told
