"""The report of the next request, computed once for every state of the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from rolling_chat.agent.errors import in_words
from rolling_chat.agent.request.builder import PlannedRequest, ToolChoice
from rolling_chat.agent.request.forecast import Preview
from rolling_chat.agent.request.prompt_counter import PromptCounter
from rolling_chat.agent.session_state import SessionState
from rolling_chat.context import ContextOverflowError, PromptReport
from rolling_chat.messages import Message
from rolling_chat.partly_read import NotReadError, with_last
from rolling_chat.providers.background_thread import in_background

Made = TypeVar("Made")

_MAX_MISSING = 40  # parts of a branch to read one by one, for old messages still sent, before reading it all


class RequestPreview:
    """Reports the next request of a session, reusing a report until something changes.

    The newest part of a long branch that has just been opened is usually enough. A request that is too long
    has a report as well. Methods raise ChatError if the branch cannot be read.
    """

    def __init__(self, state: SessionState, counter: PromptCounter) -> None:
        self._state = state
        self._conversation = state.conversation
        self._planner = state.planner
        self._counter = counter
        self._report: tuple[object, PromptReport] | None = None
        self._making = asyncio.Lock()

    @property
    def is_ready(self) -> bool:
        """Whether the report can be made at once: the branch is read, and little remains to be counted."""
        if self._making.locked() or not (self._conversation.is_whole or self._conversation.is_long):
            return False
        if self._report is not None and self._report[0] == self._revision:
            return True
        is_counted = not self._planner.counts.uncounted(self._conversation.recent)
        return is_counted and self._planner.is_quick(self._conversation.branch)

    @property
    def can_vary(self) -> bool:
        """Whether the report of a varied request can be made at once."""
        with in_words():
            return self._planner.is_quick(self._conversation.branch)

    def report(self) -> PromptReport:
        """Return the report of the next request, making it if there is none."""
        revision = self._revision
        if self._report is None or self._report[0] != revision:
            with in_words():
                return self._keep(revision, self._on_branch(self._planner.forecast.preview))
        return self._report[1]

    def report_with(self, draft: str) -> PromptReport:
        """Return the report of the next request as if `draft` were sent, without changing anything."""
        message = Message("user", draft)
        with in_words():
            return self._on_branch(lambda branch: self._planner.forecast.report(with_last(branch, message)))

    async def ready(self) -> None:
        """Wait until the report is available at once, making it off the event loop if that takes long."""
        with in_words():
            await self.whole()
        if not self.is_ready:
            await self.warm()

    async def warm(self) -> None:
        """Make the report off the event loop, first reading the rest of the branch unless that is long.

        The counts made for it are stored, so that no later process has to repeat them.
        """
        with in_words():
            if not self._conversation.is_long:
                await self._conversation.read_rest()
            async with self._making:
                await self._make()

    async def settled(self) -> None:
        """Wait until no report is being made and the branch, unless long, is read. Raises StoreError."""
        if self._conversation.is_long:
            async with self._making:
                return
        await self.whole()

    async def whole(self) -> None:
        """Wait until the branch is read and no report is being made. Raises StoreError."""
        await self._conversation.read_rest()
        async with self._making:
            pass

    async def plan(self, tool_choice: ToolChoice, input_limit: int) -> PlannedRequest:
        """Plan the next request, to be sent now; off the event loop if many messages have changed.

        If only its upper bound keeps the request from fitting untrimmed, the provider is asked for a count.
        `input_limit` as for `Planner.plan`. Raises ContextOverflowError and StoreError.
        """
        planner = self._planner
        await self._conversation.queue.run(planner.notice_idleness)
        await self._counter.count_uncertain(self._conversation.branch, tool_choice)
        try:
            planned = await self._plan(tool_choice, input_limit)
        except ContextOverflowError:
            if input_limit or not await self._counter.settle(self._conversation.branch, tool_choice):
                raise
            planned = await self._plan(tool_choice, input_limit)
        else:
            report = planned.report
            gave_way = report.trimmed or report.reduced_reserve or report.bound > report.room
            if (
                gave_way
                and not input_limit
                and await self._counter.settle(self._conversation.branch, tool_choice)
            ):
                planned = await self._plan(tool_choice, input_limit)
        planner.take(planned)
        return planned

    async def _plan(self, tool_choice: ToolChoice, input_limit: int) -> PlannedRequest:
        planner, conversation = self._planner, self._conversation
        planner.feedback.remember_sizes(conversation.branch)
        if not planner.is_quick(conversation.branch):
            return await self._plan_in_background(tool_choice, input_limit)
        try:
            return planner.plan(conversation.branch, tool_choice=tool_choice, input_limit=input_limit)
        except NotReadError:
            return await self._plan_in_background(tool_choice, input_limit)

    async def _plan_in_background(self, tool_choice: ToolChoice, input_limit: int) -> PlannedRequest:
        planner, conversation = self._planner, self._conversation
        async with self._making:
            while True:
                revision = planner.plan_state.revision
                planned = await self._in_background(
                    partial(planner.plan, tool_choice=tool_choice, input_limit=input_limit)
                )
                await in_background(conversation.save_counts)
                if planner.plan_state.revision == revision:
                    return planned
                # The user changed pins or settings meanwhile: plan again with them.

    async def _make(self) -> None:
        if self._state.is_closed:
            return
        self._planner.feedback.remember_sizes(self._conversation.branch)
        revision = self._revision
        if self._report is None or self._report[0] != revision:
            preview = await self._in_background(self._planner.forecast.preview)
            self._keep(revision, preview)
        if not self._state.is_followed and not self._state.is_closed:
            await in_background(self._conversation.save_counts)

    async def _in_background(self, work: Callable[[Sequence[Message]], Made]) -> Made:
        """Run `work` on the branch off the event loop, reading any missing parts that it needs."""
        if self._planner.plan_state.pins:  # any message may be pinned
            await self._conversation.read_rest()
        for _ in range(_MAX_MISSING):
            try:
                return await in_background(partial(work, self._conversation.branch))
            except NotReadError as missing:
                await self._conversation.read_missing(missing.index)
        await self._conversation.read_rest()
        return await in_background(partial(work, self._conversation.branch))

    def _on_branch(self, work: Callable[[Sequence[Message]], Made]) -> Made:
        """Run `work` on the part of the branch that was read, or on all of it if that is not enough."""
        try:
            return work(self._conversation.branch)
        except NotReadError:
            return work(self._conversation.messages)

    def _keep(self, revision: object, preview: Preview) -> PromptReport:
        self._planner.forecast.keep(preview)
        self._report = (revision, preview.report)
        return preview.report

    @property
    def _revision(self) -> object:
        planner = self._planner
        is_whole = self._conversation.is_whole  # a report of a part lacks rows that may now be requested
        return (
            self._conversation.version,
            is_whole,
            planner.plan_state.revision,
            planner.setup.model,
            planner.setup.rolling,
        )
