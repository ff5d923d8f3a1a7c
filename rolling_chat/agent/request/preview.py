"""The report of the next request, made once for every state of the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Literal

from rolling_chat.agent.request.counting import uncounted
from rolling_chat.agent.request.planned import PlannedRequest, Preview
from rolling_chat.agent.session import OpenSession
from rolling_chat.context import PromptReport
from rolling_chat.providers.background import in_background


class RequestPreview:
    """Keeps the report until the conversation, or what it is planned by, changes.

    `session` is whichever is open at the time. Every method raises StoreError where the branch
    cannot be read.
    """

    def __init__(self, session: Callable[[], OpenSession]) -> None:
        self._session = session
        self._report: tuple[object, PromptReport] | None = None
        self._making = asyncio.Lock()

    def report(self) -> PromptReport:
        """The report, also of a request that is too long; made now if there is none."""
        session, state = self._session(), self._state
        if self._report is None or self._report[0] != state:
            return self._seen(session, state, session.planner.look(session.conversation.messages))
        return self._report[1]

    async def plan(self, tool_choice: Literal["auto", "none"], most: int) -> PlannedRequest:
        """The next request, to be sent now; off the event loop where there is much to look at.

        `most` as for `Planner.plan`. Raises ContextOverflowError.
        """
        session = self._session()
        planner, conversation = session.planner, session.conversation
        planner.notice_idleness()
        planner.remember_sizes(conversation.messages)
        if planner.is_quick(conversation.messages):
            planned = planner.plan(conversation.messages, tool_choice=tool_choice, most=most)
            conversation.save_counts()
        else:
            planned = await self._plan_beside(session, tool_choice, most)
        planner.take(planned)
        return planned

    async def _plan_beside(
        self, session: OpenSession, tool_choice: Literal["auto", "none"], most: int
    ) -> PlannedRequest:
        planner, conversation = session.planner, session.conversation
        async with self._making:
            while True:
                branch, revision = tuple(conversation.messages), planner.revision
                plan = partial(planner.plan, branch, tool_choice=tool_choice, most=most)
                planned = await in_background(plan)
                await in_background(conversation.save_counts)
                if planner.revision == revision:
                    return planned
                # the person has pinned or switched something meanwhile: this request goes by it

    async def warm(self) -> None:
        """Read the rest of the branch and make the report, off the event loop.

        What is counted for it is stored, so that no later process counts it again.
        """
        await self._session().conversation.read_rest()
        async with self._making:
            session, state = self._session(), self._state
            branch = tuple(session.conversation.messages)
            session.planner.remember_sizes(branch)
            if self._report is None or self._report[0] != state:
                self._seen(session, state, await in_background(partial(session.planner.look, branch)))
            if not session.is_held:
                await in_background(session.conversation.save_counts)

    def _seen(self, session: OpenSession, state: object, look: Preview) -> PromptReport:
        session.planner.keep(look)
        self._report = (state, look.report)
        return look.report

    @property
    def is_ready(self) -> bool:
        """Can the report be had at once: is the branch whole, and little to look at or to count?"""
        session = self._session()
        conversation = session.conversation
        if not conversation.is_whole or self._making.locked():
            return False
        if self._report is not None and self._report[0] == self._state:
            return True
        messages = conversation.messages
        return not uncounted(messages) and session.planner.is_quick(messages)

    async def ready(self) -> None:
        """Wait until the report can be had at once, made off the event loop where that takes long."""
        await self.whole()
        if not self.is_ready:
            await self.warm()

    async def whole(self) -> None:
        """Wait until the branch is whole, and until no report is being made."""
        await self._session().conversation.read_rest()
        async with self._making:
            pass

    @property
    def _state(self) -> object:
        session = self._session()
        planner = session.planner
        # the session itself, not its id: one that is opened again has another planner
        return (session, session.conversation.version, planner.revision, planner.model, planner.rolling)
