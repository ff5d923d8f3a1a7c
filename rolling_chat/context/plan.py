"""The plan: the pipeline's decisions about one conversation, as an immutable value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType

from rolling_chat.context.calibration import Calibration
from rolling_chat.context.config import ContextConfig
from rolling_chat.context.index_ranges import IndexRanges
from rolling_chat.context.measured_sizes import NOTHING_MEASURED, Confirmed, MeasuredSizes
from rolling_chat.context.notice_contents import NoticeContents
from rolling_chat.context.pins import PinEffects, Pins
from rolling_chat.context.prompt_items import OLDER, Decisions, PromptItem
from rolling_chat.context.repair import Repairer
from rolling_chat.context.summary_text import Summary
from rolling_chat.messages import Json, JsonObject, Message
from rolling_chat.notes import NoteEdits, NoteKey

PLAN_VERSION = 3


@dataclass(frozen=True, slots=True)
class PlanIndex:
    """A cache of messages that were already processed, so that the next request reads only new ones.

    `items` are the kept items of the first `seen` messages, `sources` the messages they were made from, and
    `last` the newest message. `unfit` are the indexes of messages that no prompt can carry. The index is not
    stored: a plan that is loaded from a store rebuilds it once. An index built with rolling off is invalid
    with rolling on, and vice versa.
    """

    config: ContextConfig
    model: str
    pin_effects: PinEffects
    seen: int
    last: Message | JsonObject | None
    items: tuple[PromptItem, ...]
    sources: tuple[Message | JsonObject, ...]
    repairer: Repairer
    task: int
    unfit: tuple[int, ...]
    todo: int = -1  # the index of the newest call that sets a to-do list
    unseen: int = 0  # messages below this index were not read, because none could be omitted

    def is_valid_for(
        self,
        messages: Sequence[Message | JsonObject],
        model: str | None,
        config: ContextConfig,
        pin_effects: PinEffects,
    ) -> bool:
        """Return whether the cache is valid for these messages, this model, configuration and pins.

        The same pins may affect more messages as a branch grows, such as a turn that was running when
        excluded.
        """
        if self.model != (model or "") or not 0 < self.seen <= len(messages):
            return False
        if messages[self.seen - 1] != self.last:
            return False
        if pin_effects.before(self.seen) != self.pin_effects.before(self.seen):
            return False
        if config != self.config and _shaping(config) != _shaping(self.config):
            return False
        real = (item.index for item in self.items if item.index >= 0)
        return all(
            messages[index] is source or messages[index] == source
            for index, source in zip(real, self.sources, strict=True)
        )


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """The contents of a sent prompt, kept until the provider reports its count.

    `fixed` is the best estimate of system message and tools, `fixed_estimate` their plain estimate."""

    model: str
    items: tuple[PromptItem, ...]
    fixed: int
    fixed_estimate: int


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """What is omitted and shortened in one branch, for one model and window.

    Messages are identified by their index in the branch. `seen` is the length of the branch when the plan was
    made, `fingerprint` identifies its last message: a plan that does not match is ignored. `pins` come from
    the user and stay in effect until replaced; `summary` is the active one, with its text as sent. `is_cold`
    means that the provider's cache no longer has this branch, so that a trim costs nothing. `confirmed` is
    the model's last count, `measured` the size of each message in it. `sent` is the prompt whose count has
    not arrived yet, `doubted` a count that `confirm_count` has not believed so far. Immutable; `to_json` and
    `from_json` serve stores.
    """

    model: str = ""
    window: int = 0
    seen: int = 0
    fingerprint: str = ""
    decisions: Decisions = field(default_factory=Decisions)
    pins: Pins = field(default_factory=Pins)
    summary: Summary | None = None
    is_cold: bool = False
    confirmed: Confirmed | None = None
    measured: MeasuredSizes = NOTHING_MEASURED
    index: PlanIndex | None = field(default=None, compare=False, repr=False)
    sent: SentPrompt | None = field(default=None, compare=False, repr=False)
    doubted: int = field(default=0, compare=False, repr=False)

    def fits(self, messages: Sequence[Message | JsonObject], model: str | None, window: int) -> bool:
        """Return whether the plan is valid for this branch and model, and for a window that is not larger."""
        return self.model == (model or "") and window <= self.window and self.is_of(messages)

    def is_of(self, messages: Sequence[Message | JsonObject]) -> bool:
        """Return whether the plan was made for this branch, regardless of model and window."""
        if not 0 < self.seen <= len(messages):
            return False
        return fingerprint(messages[self.seen - 1]) == self.fingerprint

    def seen_under(self, config: ContextConfig, model: str) -> int:
        """Return how many messages need not be processed again under `config` and `model`."""
        index = self.index
        if index is None or index.model != model or _shaping(index.config) != _shaping(config):
            return 0
        return index.seen

    def afresh(self) -> ContextPlan | None:
        """Return the parts that a new plan must take over from this one: notes; None if there are none."""
        notice = self.decisions.notice
        notes = tuple(sorted((*notice.notes, *notice.hidden_notes), key=lambda note: note.key))
        if not notes:
            return None
        known = Decisions(notice=NoticeContents(hidden_notes=notes))
        return ContextPlan(seen=self.seen, fingerprint=self.fingerprint, decisions=known, pins=self.pins)

    def cold(self) -> ContextPlan:
        """Return the plan marked as cold: the provider's cache no longer has the prompt."""
        return replace(self, is_cold=True)

    def to_json(self, *, with_sizes: bool = True) -> dict[str, Json]:
        """Return the plan as plain JSON values; without message sizes if the caller stores those."""
        decisions, measured = self.decisions, self.measured.sizes if with_sizes else {}
        sizes = [[index, tokens, length] for (index, length), tokens in measured.items()]
        return {
            "version": PLAN_VERSION,
            "model": self.model,
            "window": self.window,
            "seen": self.seen,
            "fingerprint": self.fingerprint,
            "omitted": [list(part) for part in decisions.omitted.parts],
            "masked": sorted(decisions.masked),
            "reasons": {str(index): why for index, why in sorted(decisions.masked.items()) if why != OLDER},
            "arguments": sorted(decisions.arguments),
            "levels": {str(index): tokens for index, tokens in decisions.levels.items()},
            "carried": decisions.todo_index,
            "told": decisions.notice.to_json(),
            "pinned": sorted(self.pins.pinned),
            "excluded": sorted(self.pins.excluded),
            "notes": [[key.index, key.number, text] for key, text in sorted(self.pins.notes.items())],
            "summary": asdict(self.summary) if self.summary else None,
            "confirmed": asdict(self.confirmed) if self.confirmed else None,
            "measured": [self.measured.model, *sizes],
        }

    @classmethod
    def from_json(cls, data: JsonObject | None) -> ContextPlan | None:
        """Read a plan from JSON; None if there is none or another version wrote it."""
        if not data or data.get("version") != PLAN_VERSION:
            return None
        return cls(
            model=data["model"],
            window=data["window"],
            seen=data["seen"],
            fingerprint=data["fingerprint"],
            decisions=Decisions(
                IndexRanges(tuple((start, stop, layer) for start, stop, layer in data["omitted"])),
                MappingProxyType(_masked(data["masked"], data.get("reasons") or {})),
                frozenset(data["arguments"]),
                MappingProxyType({int(index): tokens for index, tokens in data["levels"].items()}),
                data.get("carried", -1),
                NoticeContents.from_json(data.get("told")),
            ),
            pins=Pins(frozenset(data["pinned"]), frozenset(data["excluded"]), _edits(data.get("notes", ()))),
            summary=_summary(data["summary"]) if data["summary"] else None,
            confirmed=Confirmed(**data["confirmed"]) if data.get("confirmed") else None,
            measured=_measured_sizes(*data.get("measured") or ("",)),
        )


def _masked(indexes: Sequence[int], reasons: Mapping[str, str]) -> dict[int, str]:
    return {index: reasons.get(str(index), OLDER) for index in indexes}


def _summary(data: JsonObject) -> Summary:
    return Summary(**{**data, "skipped": tuple((start, stop) for start, stop in data.get("skipped", ()))})


def _edits(notes: Sequence[tuple[int, int, str]]) -> NoteEdits:
    return MappingProxyType({NoteKey(index, number): text for index, number, text in notes})


def _measured_sizes(model: str, *sizes: Sequence[int]) -> MeasuredSizes:
    return MeasuredSizes(model).add({(index, length): tokens for index, tokens, length in sizes})


def _shaping(config: ContextConfig) -> ContextConfig:
    """Return the part of a configuration that shapes items.

    Calibration changes only their sizes, and the output reserve not even those."""
    calibration = Calibration(shape=config.calibration.shape)
    return replace(
        config, safety_margin=0.0, reserved_output_tokens=0, unproven_share=0.0, calibration=calibration
    )


def fingerprint(message: Message | JsonObject) -> str:
    """Return a short digest of a message's content, equal for both forms of a message."""
    said = message.to_dict() if isinstance(message, Message) else Message.from_dict(message).to_dict()
    text = json.dumps(said, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
