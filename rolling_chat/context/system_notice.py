"""What the pipeline adds to the system message: how much is missing, and the summary of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rolling_chat.context.summary import Summary
from rolling_chat.context.tool_results import recall_line
from rolling_chat.messages import Message

# While it is decided what leaves, the notice is taken to be as long as it can become.
_LONGEST_COUNT = 999_999


@dataclass(frozen=True, slots=True)
class SystemNotice:
    """`omitted` messages are missing and in no summary, the first and the last of them at these indexes;
    `recall` says that the model can read them back."""

    omitted: int = 0
    first: int = 0
    last: int = 0
    summary: Summary | None = None
    recall: bool = False

    def at_its_longest(self) -> SystemNotice:
        """The same, where nobody knows yet how much will be missing."""
        return replace(self, omitted=_LONGEST_COUNT, first=_LONGEST_COUNT, last=_LONGEST_COUNT + 1)

    def added_to(self, system: Message | None) -> Message | None:
        """The system message with the notice after the instructions and the summary after that."""
        added = "\n\n".join(filter(None, (self._notice(), self.summary.block if self.summary else "")))
        if not added:
            return system
        if system is None:
            return Message("system", added)
        if not isinstance(system.content, str):
            return replace(system, content=(*system.content, {"type": "text", "text": added}), counts={})
        content = f"{system.content}\n\n{added}" if system.content else added
        return replace(system, content=content, counts={})

    def _notice(self) -> str:
        if not self.omitted:
            return ""
        notice = f"[conversation truncated — {self.omitted} older messages omitted]"
        return f"{notice}\n{recall_line(self.first, self.last)}" if self.recall else notice
