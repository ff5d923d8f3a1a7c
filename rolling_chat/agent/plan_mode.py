"""Plan mode: nothing is changed, and the model is asked for a plan.

The note for the model follows the user's message, so that the system prompt does not change and the
provider's cache of the conversation stays valid. It is stored with the message, so that the prompts of later
turns begin with the same bytes.
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
    """Tells the model of one session when plan mode begins and ends, checking every message only once."""

    def __init__(self, permissions: Permissions, conversation: Conversation) -> None:
        self._permissions = permissions
        self._conversation = conversation
        self._seen: tuple[int, Message] | None = None  # the number of messages checked, and the last of them
        self._newest_note = ""  # among them

    @property
    def note(self) -> str:
        """The note for the user's next message; empty for none."""
        if self._permissions.policy == "plan":
            return PLAN_NOTE
        return PLAN_ENDED if self._find_newest(self._conversation.recent).startswith(PLAN_NOTE) else ""

    def _find_newest(self, recent: Sequence[Message]) -> str:
        count, last = self._seen or (0, None)
        if last is None or len(recent) < count or recent[count - 1] is not last:
            count, self._newest_note = 0, ""
        notes = (one.note for one in reversed(recent[count:]))
        of_plan_mode = (note for note in notes if note.startswith((PLAN_NOTE, PLAN_ENDED)))
        self._newest_note = next(of_plan_mode, self._newest_note)
        self._seen = (len(recent), recent[-1]) if recent else None
        return self._newest_note
