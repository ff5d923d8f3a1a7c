"""ContextPlan: the decisions of the pipeline, as a value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from rolling_chat.messages import Json, JsonObject, Message

PLAN_VERSION = 1


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """What leaves the prompt and what is shortened, for one branch, model and window.

    Messages are known by their place in the branch. `omitted` maps a place to the layer that took
    it, `levels` a place to the tokens that its result may keep. `seen` is the length of the branch
    when the plan was taken, `fingerprint` that of its last message: a plan that does not match is
    set aside. Immutable; `to_json` and `from_json` carry it to and from a store.
    """

    model: str = ""
    window: int = 0
    seen: int = 0
    fingerprint: str = ""
    omitted: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    levels: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))

    def fits(self, messages: Sequence[Message], model: str | None, window: int) -> bool:
        """Does the plan hold for this branch, model and window? A window that grew plans anew."""
        if self.model != (model or "") or window > self.window or not 0 < self.seen <= len(messages):
            return False
        return fingerprint(messages[self.seen - 1]) == self.fingerprint

    def to_json(self) -> dict[str, Json]:
        """The plan as plain JSON values."""
        return {
            "version": PLAN_VERSION,
            "model": self.model,
            "window": self.window,
            "seen": self.seen,
            "fingerprint": self.fingerprint,
            "omitted": {str(index): layer for index, layer in self.omitted.items()},
            "levels": {str(index): tokens for index, tokens in self.levels.items()},
        }

    @classmethod
    def from_json(cls, data: JsonObject | None) -> ContextPlan | None:
        """Read a plan back; None where there is none or another version wrote it."""
        if not data or data.get("version") != PLAN_VERSION:
            return None
        return cls(
            model=data["model"],
            window=data["window"],
            seen=data["seen"],
            fingerprint=data["fingerprint"],
            omitted=MappingProxyType({int(index): layer for index, layer in data["omitted"].items()}),
            levels=MappingProxyType({int(index): tokens for index, tokens in data["levels"].items()}),
        )


def fingerprint(message: Message) -> str:
    """A short digest of what a message says, whoever stored it."""
    said = json.dumps(message.to_dict(), sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:16]
