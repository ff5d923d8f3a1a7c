"""What a session keeps from one request to the next: the plan, the pins and the summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rolling_chat.agent.memory.pin_scope import PinFinder, PinnedIds, PinScope, pin_scope_of
from rolling_chat.agent.request.counting import SessionCounts
from rolling_chat.agent.request.setup import RequestSetup
from rolling_chat.agent.runtime import Runtime
from rolling_chat.context import ContextPlan, Pins, Summary
from rolling_chat.context.measured_sizes import NOTHING_MEASURED, TokensByKey
from rolling_chat.messages import Json, Message
from rolling_chat.sessions.records import StoredSummary


def as_summary(stored: StoredSummary | None) -> Summary | None:
    """Return a stored summary as the pipeline's type; None for one that only records an undo."""
    if stored is None or not stored.text:
        return None
    return Summary(stored.text, stored.place, stored.generation, stored.skipped)


@dataclass(frozen=True, slots=True)
class _Replaced:
    """The model that a fallback has replaced, with the planning state to restore."""

    model: str
    address: str | None
    plan: ContextPlan | None
    previous_length: int


class PlanState:
    """The plan, the pins and the summary of one session's branch.

    The plan is kept but not used while rolling is off. Assign `plan` for a change that leaves the next
    request as it is; otherwise call `use_plan`. `new_sizes` are message sizes that are not in `counts` yet.
    `is_counted` is set when the provider has counted a prompt without answering it. `previous_length` is the
    number of messages in the last request, and `wire_tokens` how many tokens its wire form added to its plan.
    """

    def __init__(self, runtime: Runtime, setup: RequestSetup, session_id: str, counts: SessionCounts) -> None:
        self._runtime = runtime
        self._session_id = session_id
        self.setup = setup
        self.counts = counts
        self.plan: ContextPlan | None = None
        self.summary: StoredSummary | None = None
        self.new_sizes: TokensByKey = {}
        self.is_counted = False
        self.previous_length = 0
        self.wire_tokens = 0
        self._pins = PinnedIds()
        self._pin_finder = PinFinder(self._pins)
        self._scope: tuple[str, PinScope] = ("", PinScope())  # the id of a branch's head, and its scope
        self._replaced: _Replaced | None = None
        self._revision = 0

    @property
    def revision(self) -> int:
        """A number that grows whenever the next request may have changed."""
        return self._revision + self.setup.revision

    def mark_changed(self) -> None:
        """Record that the next request may have changed."""
        self._revision += 1

    def use_plan(self, plan: ContextPlan | None) -> None:
        """Replace the plan; the pipeline ignores one that does not match the branch."""
        self.plan = plan
        self.mark_changed()

    def load_plan(self, plan: Json) -> None:
        """Replace the plan with the stored one of a branch that the session has moved to."""
        self.new_sizes = {}
        stored = ContextPlan.from_json(plan) if isinstance(plan, dict) else None
        # the session's counts have the sizes; the pipeline gets them from there
        self.use_plan(replace(stored, measured=NOTHING_MEASURED) if stored is not None else None)
        if self._replaced is not None:
            self._replaced = replace(self._replaced, plan=self.plan, previous_length=0)
        self.previous_length = self.wire_tokens = 0
        self.read_summary()

    def read_summary(self) -> None:
        """Read the newest summary of the branch from the store."""
        self.summary = self._runtime.store.summary(self._session_id)
        self.mark_changed()

    def use_model(self, model: str, address: str | None) -> None:
        """Plan for another model from now on, whose provider has nothing cached."""
        self._replaced, self.is_counted = None, False
        self.new_sizes = {}
        self.previous_length = self.wire_tokens = 0
        self.setup.use_model(model, address)

    def stand_in(self, model: str, address: str | None) -> None:
        """Plan for a fallback model until `stand_back`, and keep the state of the model that it replaces."""
        replaced = self._replaced or _Replaced(
            self.setup.model, self.setup.address, self.plan, self.previous_length
        )
        self.use_model(model, address)
        self._replaced = replaced

    def stand_back(self) -> None:
        """Plan for the replaced model again, with its own plan, which matches its provider's cache."""
        if (replaced := self._replaced) is None:
            return
        self.use_model(replaced.model, replaced.address)
        self.use_plan(replaced.plan)
        self.previous_length = replaced.previous_length

    @property
    def pins(self) -> PinnedIds:
        """The pinned and the excluded message ids of this session, on all branches."""
        return self._pins

    def use_pins(self, pins: PinnedIds) -> None:
        """Replace the pins from the next request on; the plan keeps the decisions that they allow."""
        self._pins, self._pin_finder = pins, PinFinder(pins)
        self._scope = ("", PinScope())
        self.mark_changed()

    def pins_on(self, branch: Sequence[Message]) -> Pins:
        """Return the session's pins as indices of the prompt's messages, without those of other branches."""
        return self._pin_finder.on(branch)

    def pin_scope(self, branch: Sequence[Message]) -> PinScope:
        """Return which messages of a branch the pins and exclusions affect."""
        head = branch[-1].id if branch else ""
        if self._scope[0] != head:
            self._scope = (head, pin_scope_of(branch, self._pins))
        return self._scope[1]
