"""The stored state of one open session: claimed or followed, read, repaired and released."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Unpack

from rolling_chat.agent.conversation import Conversation
from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.memory.pin_scope import PinnedIds
from rolling_chat.agent.models import model_warnings, unknown_address_line
from rolling_chat.agent.request.counting import SessionCounts
from rolling_chat.agent.request.planner import Planner
from rolling_chat.agent.request.setup import RequestSetup
from rolling_chat.agent.request.size_estimates import SizeEstimates
from rolling_chat.agent.runtime import Runtime
from rolling_chat.context.tokens import estimator_for
from rolling_chat.events import Listener
from rolling_chat.messages import Ending, Usage
from rolling_chat.sessions.records import SessionChanges, SessionInfo, StoreError
from rolling_chat.settings.schema import EFFORTS, Effort
from rolling_chat.text import one_line
from rolling_chat.tools import Tool

log = logging.getLogger("rolling_chat.agent.session_state")


class SessionState:
    """The stored state of one open session: its row, its branch, its counts, its plan and its pins.

    `info` is the session as lists show it, `usage` the usage of its requests, and `notices` lines to show
    when it is opened. A session that another process has open is followed: `holder` describes that process,
    and nothing is written. Raises StoreError if it cannot be claimed or read.
    """

    def __init__(
        self,
        runtime: Runtime,
        info: SessionInfo,
        *,
        model: str,
        address: str | None,
        rolling: bool,
        tools: Sequence[Tool],
        listener: Listener,
    ) -> None:
        self._runtime = runtime
        self.info = info
        self.is_closed = False
        self._owner = runtime.store.claim(info.id)
        self._opened = info
        self.former_addresses: dict[str, str | None] = {}  # by model, the last one last
        self.counts = SessionCounts()
        self.conversation = Conversation(runtime.store, info.id, listener, self.counts)
        setup = RequestSetup(
            runtime, started_at=info.created_at, model=model, address=address, rolling=rolling, tools=tools
        )
        setup.use_effort(_known_effort(info.effort))
        self.setup = setup
        self.planner = Planner(runtime, setup, info.id, self.counts)
        self.planner.cache.read()
        self._read_plan()
        self._read_pins()
        self.usage = runtime.store.usage(info.id)
        self.notices = list(self._notices(offers_tools=bool(tools)))
        if self._owner is not None:
            return
        self.repair()
        if (info.model, info.api_base, info.rolling) != (model, address, rolling):
            self.update(model=model, api_base=address, rolling=rolling)

    @property
    def sizes(self) -> SizeEstimates:
        """Estimates what drafts and replies add to this session's requests."""
        setup, choice = self.setup, self._runtime.settings.context.token_estimator
        estimator = estimator_for(setup.model, choice, setup.measurements.calibration, self.counts.memo)
        return SizeEstimates(setup.model, estimator, setup.takes_pictures)

    @property
    def is_followed(self) -> bool:
        """Whether another process has the session open."""
        return self._owner is not None

    @property
    def holder(self) -> str:
        """A description of who else has the session, whom it is left to; empty if there is none."""
        if self._owner is None:
            return ""
        if not self._owner.pid:
            return f"{one_line(self._owner.host, 40)}'s, and shared with you for reading only"
        since = datetime.fromtimestamp(self._owner.since).astimezone()
        return f"open in another terminal (process {self._owner.pid} since {since:%H:%M})"

    def make_ours(self) -> None:
        """Make sure that this process may write to the session. Raises ChatError if another has it open."""
        if self._owner is not None:
            self.refresh()
        if self._owner is not None:
            raise ChatError(f"This session is {self.holder}. /fork makes a copy that you can continue.")
        with in_words():
            self.repair()

    def require_address(self) -> None:
        """Raise ChatError if it is unknown which server the conversation would be sent to."""
        if self.setup.address is None:
            model = self.setup.model
            raise ChatError(f"Not sent: {unknown_address_line(model)}, or with /model {model} ADDRESS.")

    def refresh(self) -> bool:
        """Read what another process has written to the session; return whether anything has changed.

        Once that process has released the session, or died, this one takes it over.
        """
        if self._owner is None or not self._runtime.store.has_news(self.info.id):
            return False
        with in_words():
            self._owner = self._runtime.store.claim(self.info.id)
            changed = self.conversation.reload()
            changed |= self._read_pins()
            changed |= self._adopt_changes()
            if changed:
                self._read_plan()
            if self._owner is None:
                self._keep_choices()
                changed |= self.repair()
                self.planner.plan_state.read_summary()
        if changed:
            self.read_info()
        return changed

    def use_model(self, model: str, address: str | None) -> None:
        """Use `model` at `address` from now on, and store that with the session."""
        self.former_addresses.pop(self.setup.model, None)
        self.former_addresses[self.setup.model] = self.setup.address
        self.planner.plan_state.use_model(model, address)
        self.planner.cache.read()
        self.update(model=model, api_base=address)

    def use_effort(self, effort: Effort) -> None:
        """Ask for another reasoning effort from now on, and store that with the session."""
        self.setup.use_effort(effort)
        self.update(effort=effort)

    def _adopt_changes(self) -> bool:
        """Adopt the model, address and switches that another process set; return whether any changed.

        Its messages were meant for that server and must not be sent to another one.
        """
        planner, before = self.planner, self._opened
        info = self._runtime.store.session(self.info.id)
        moved = (info.model, info.api_base) != (before.model, before.api_base)
        if moved:
            planner.plan_state.use_model(info.model, info.api_base)
            planner.cache.read()
        switched = info.rolling != before.rolling
        if switched:
            self.setup.rolling = info.rolling
        if info.effort != before.effort:
            self.setup.use_effort(_known_effort(info.effort))
        self._opened = info
        return moved or switched

    def _keep_choices(self) -> None:
        """Store this process's model and switches, after it has taken over the session."""
        setup, info = self.setup, self._opened
        if (info.model, info.api_base, info.rolling) != (setup.model, setup.address, setup.rolling):
            self.update(model=setup.model, api_base=setup.address, rolling=setup.rolling)

    def repair(self) -> bool:
        """Seal the reply and answer the calls that a dead process or a failed store left open.

        Return whether there were any.
        """
        text = "[cancelled: the program ended before this was done]"
        settled = self.conversation.settle_reply(Ending.FAILED) is not None
        return bool(self.conversation.answer_open_calls(text, Ending.CANCELLED)) or settled

    def update(self, **changes: Unpack[SessionChanges]) -> None:
        """Change the session's row in the store; do nothing while another process has it open."""
        if self._owner is not None:
            return
        with in_words():
            self.info = self._runtime.store.update_session(self.info.id, **changes)

    def keep_pins(self, pins: PinnedIds) -> None:
        """Store and activate other pins, exclusions and changed notes. Raises ChatError."""
        self.update(pins=sorted(pins.pinned), excluded=sorted(pins.excluded), notes=pins.notes)
        self.planner.plan_state.use_pins(pins)

    def read_info(self) -> None:
        """Read the session's row again."""
        try:
            self.info = self._runtime.store.session(self.info.id)
        except StoreError:
            log.exception("session %s could not be read again", self.info.id)

    def spend(self, usage: Usage) -> None:
        """Add the usage of a request."""
        self.usage += usage

    def release(self) -> None:
        """Release the session; delete it if it never had a message."""
        self.is_closed = True
        self.conversation.close()
        store = self._runtime.store
        if self._owner is not None:
            return
        try:
            if not self.conversation.recent and store.is_blank(self.info.id):
                store.delete(self.info.id)
            else:
                store.release(self.info.id)
        except StoreError:
            log.exception("session %s could not be released", self.info.id)

    def _read_plan(self) -> None:
        self.planner.plan_state.load_plan(self._runtime.store.state(self.info.id).plan)

    def _read_pins(self) -> bool:
        """Read the stored pins; return whether they have changed."""
        state = self._runtime.store.state(self.info.id)
        pins = PinnedIds(frozenset(state.pins), frozenset(state.excluded), state.notes)
        if pins == self.planner.plan_state.pins:
            return False
        self.planner.plan_state.use_pins(pins)
        return True

    def _notices(self, *, offers_tools: bool) -> Iterator[str]:
        folder = str(self._runtime.folder)
        if self._owner is not None:
            yield f"This session is {self.holder}: what is said there shows here; /fork makes your own copy."
        if self.info.folder != folder:
            yield f"This session was begun in {self.info.folder}; tools work in {folder}."
        if offers_tools and not self.setup.tools:
            yield f"{self.setup.model} does not support tools: it can neither read files nor run commands."
        yield from filter(None, (self._runtime.trust.problem, self._runtime.trust.line))
        yield from model_warnings(self._runtime, self.setup.model, self.setup.address)


def _known_effort(stored: str | None) -> Effort | None:
    """Return a stored effort if this version knows it; None for that of the settings."""
    return next((one for one in EFFORTS if one == stored), None)
