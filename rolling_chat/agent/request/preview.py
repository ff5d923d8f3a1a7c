"""The report of the next request, made once for every state of the conversation."""

from __future__ import annotations

import asyncio
from functools import partial

from rolling_chat.agent.errors import in_words
from rolling_chat.agent.request.builder import PlannedRequest, ToolChoice
from rolling_chat.agent.request.planner import Preview
from rolling_chat.agent.request.prompt_counter import PromptCounter
from rolling_chat.agent.session_state import SessionState
from rolling_chat.context import ContextOverflowError, PromptReport
from rolling_chat.messages import Message
from rolling_chat.providers.background_thread import in_background


class RequestPreview:
    """Reports what the next request of a session would be, reusing a report until something changes.

    A request that is too long has a report as well. Methods raise ChatError where the branch cannot be read.
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
        """Whether the report can be made at once: the branch is read, and little is left to count."""
        if not self._conversation.is_whole or self._making.locked():
            return False
        if self._report is not None and self._report[0] == self._revision:
            return True
        messages = self._conversation.messages
        return not self._planner.counts.uncounted(messages) and self._planner.is_quick(messages)

    @property
    def can_vary(self) -> bool:
        """Whether the report of a varied request can be made at once."""
        with in_words():
            return self._planner.is_quick(self._conversation.messages)

    def report(self) -> PromptReport:
        """Return the report of the next request, making it if there is none."""
        revision = self._revision
        if self._report is None or self._report[0] != revision:
            with in_words():
                return self._keep(revision, self._planner.look(self._conversation.messages))
        return self._report[1]

    def report_with(self, draft: str) -> PromptReport:
        """Return the report of the next request as if `draft` was sent; nothing is changed."""
        with in_words():
            branch = self._conversation.messages
        return self._planner.preview([*branch, Message("user", draft)])

    async def ready(self) -> None:
        """Wait until the report can be had at once, made off the event loop where that takes long."""
        with in_words():
            await self.whole()
        if not self.is_ready:
            await self.warm()

    async def warm(self) -> None:
        """Read the rest of the branch and make the report, off the event loop.

        What is counted for it is stored, so that no later process counts it again.
        """
        with in_words():
            await self._conversation.read_rest()
            async with self._making:
                await self._make()

    async def whole(self) -> None:
        """Wait until the branch is read and no report is being made. Raises StoreError."""
        await self._conversation.read_rest()
        async with self._making:
            pass

    async def plan(self, tool_choice: ToolChoice, most: int) -> PlannedRequest:
        """Plan the next request, to be sent now; off the event loop where there is much to look at.

        What only its upper bound keeps from fitting is counted by the provider, where it can be asked.
        `most` as for `Planner.plan`. Raises ContextOverflowError and StoreError.
        """
        planner = self._planner
        planner.notice_idleness()
        await self._counter.count_uncertain(self._conversation.messages, tool_choice)
        try:
            planned = await self._plan(tool_choice, most)
        except ContextOverflowError:
            if most or not await self._counter.settle(self._conversation.messages, tool_choice):
                raise
            planned = await self._plan(tool_choice, most)
        else:
            report = planned.report
            gave_way = report.trimmed or report.reduced_reserve or report.bound > report.room
            if gave_way and not most and await self._counter.settle(self._conversation.messages, tool_choice):
                planned = await self._plan(tool_choice, most)
        planner.take(planned)
        return planned

    async def _plan(self, tool_choice: ToolChoice, most: int) -> PlannedRequest:
        planner, conversation = self._planner, self._conversation
        planner.remember_sizes(conversation.messages)
        if not planner.is_quick(conversation.messages):
            return await self._plan_in_background(tool_choice, most)
        planned = planner.plan(conversation.messages, tool_choice=tool_choice, most=most)
        conversation.save_counts()
        return planned

    async def _plan_in_background(self, tool_choice: ToolChoice, most: int) -> PlannedRequest:
        planner, conversation = self._planner, self._conversation
        async with self._making:
            while True:
                branch, revision = tuple(conversation.messages), planner.revision
                plan = partial(planner.plan, branch, tool_choice=tool_choice, most=most)
                planned = await in_background(plan)
                await in_background(conversation.save_counts)
                if planner.revision == revision:
                    return planned
                # the user has pinned or switched something meanwhile: this request goes by it

    async def _make(self) -> None:
        if self._state.is_closed:
            return
        revision, branch = self._revision, tuple(self._conversation.messages)
        self._planner.remember_sizes(branch)
        if self._report is None or self._report[0] != revision:
            self._keep(revision, await in_background(partial(self._planner.look, branch)))
        if not self._state.is_followed and not self._state.is_closed:
            await in_background(self._conversation.save_counts)

    def _keep(self, revision: object, preview: Preview) -> PromptReport:
        self._planner.keep(preview)
        self._report = (revision, preview.report)
        return preview.report

    @property
    def _revision(self) -> object:
        planner = self._planner
        return (self._conversation.version, planner.revision, planner.setup.model, planner.setup.rolling)
