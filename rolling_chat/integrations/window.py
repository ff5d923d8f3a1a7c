"""The rolling window of one conversation, for frameworks whose messages are values of their own."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rolling_chat.context import ContextConfig, ContextPlan, CountMemo, Fate, PromptReport, build_final_prompt

_SENT = (Fate.SENT, Fate.SHORTENED, Fate.MASKED, Fate.REPAIRED)
_MAX_CONVERSATIONS = 1_000


@dataclass(frozen=True, slots=True)
class Planned:
    """One message to send, in OpenAI's format; `index` is that of the message given, -1 for a new one.

    `is_same`: it is to be sent as it was given.
    """

    index: int
    message: Mapping[str, Any]
    is_same: bool


@dataclass(slots=True)
class RollingWindow:
    """Plans the requests of conversations so that they fit the model's window.

    The plan of each conversation is kept by its key, so that the beginning of its prompt stands still; of
    many conversations the newest thousand are. `report` is that of the newest request.
    """

    model: str
    config: ContextConfig = field(default_factory=ContextConfig)
    report: PromptReport | None = None
    _plans: OrderedDict[str, tuple[ContextPlan | None, CountMemo]] = field(default_factory=OrderedDict)

    def plan(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] = (), key: str = ""
    ) -> list[Planned]:
        """Return what to send of a conversation, in order. Raises ContextOverflowError if nothing fits."""
        plan, memo = self._plans.pop(key, (None, CountMemo()))
        final = build_final_prompt(
            messages, self.config, tools=list(tools) or None, model=self.model, plan=plan, memo=memo
        )
        self._plans[key] = final.plan, memo
        if len(self._plans) > _MAX_CONVERSATIONS:
            self._plans.popitem(last=False)
        self.report = final.report
        return list(_matched(final.messages, final.report, has_system=_has_system(messages)))


def _matched(sent: Sequence[dict[str, Any]], report: PromptReport, *, has_system: bool) -> Iterator[Planned]:
    """Yield the messages to send with the indexes of those given, which the report has in the same order."""
    rows = deque(row for row in report.rows if row.fate in _SENT and row.role != "system")
    for message in sent:
        role = message["role"]
        while rows and rows[0].fate is Fate.REPAIRED and rows[0].role != role:
            rows.popleft()
        if role == "system":
            yield Planned(0 if has_system else -1, message, is_same=False)
        elif rows and rows[0].role == role:
            row = rows.popleft()
            yield Planned(row.index, message, is_same=row.fate is Fate.SENT)
        else:
            yield Planned(-1, message, is_same=False)


def _has_system(messages: Sequence[Mapping[str, Any]]) -> bool:
    return bool(messages) and messages[0]["role"] == "system"
