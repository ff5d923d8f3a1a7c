"""The rolling summary of one session: made in the background, published, undone and edited."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.hooks.answers import Trigger
from rolling_chat.agent.memory.left_out_lines import left_out_of
from rolling_chat.agent.memory.proposal import Proposal, refused_line
from rolling_chat.agent.memory.summarizer import Summarizer, SummarySource
from rolling_chat.agent.models import address_of
from rolling_chat.agent.request.plan_state import as_summary
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session_state import SessionState
from rolling_chat.agent.turn.running import TurnGate
from rolling_chat.context import (
    ContextConfig,
    PromptReport,
    SummaryError,
    count_tokens,
    max_summary_tokens,
)
from rolling_chat.events import Listener, SummaryBegan, SummaryEnded, SummaryEvent
from rolling_chat.messages import Message
from rolling_chat.partly_read import NotReadError
from rolling_chat.sessions.records import StoredSummary, StoreError
from rolling_chat.text import normalize_text

log = logging.getLogger("rolling_chat.agent.memory.summaries")

BeforeCompact: TypeAlias = Callable[[Trigger, str], Awaitable[Sequence[str]]]
"""A hook to await before a summary is made: who asked for it, and what the user wants stressed.

It returns lines for the user.
"""

EDITED = "you"
"""`made_by` of a summary that the user edited."""

MAX_PASSES = 10
"""The maximum number of passes for a summary that the user asked for."""

_MAX_FAILURES = 2  # passes in a row without progress before further passes wait
_FIRST_WAIT, _LONGEST_WAIT = 60.0, 3_600.0  # seconds; every further failure doubles the wait


class Summaries:
    """The rolling summary of one session: made in the background, proposed, undone and edited.

    A pass runs in a task of its own. Its summary is published between two turns, if the branch has not
    changed. The listener is told when passes begin and end; `before` is awaited before the first.
    """

    def __init__(
        self,
        runtime: Runtime,
        state: SessionState,
        gate: TurnGate,
        summarizer: Summarizer,
        listener: Listener,
        *,
        before: BeforeCompact,
    ) -> None:
        self._runtime = runtime
        self._state = state
        self._planner = state.planner
        self._gate = gate
        self._listener = listener
        self._before = before
        self._task: asyncio.Task[None] | None = None
        self._proposing: asyncio.Task[Proposal] | None = None
        self._summarizer = summarizer
        self._may_ask = True
        self._failures = 0
        self._wait_until = 0.0
        self._notice = ""  # reported when the current pass has ended
        self._is_dismissed = False

    @property
    def current(self) -> StoredSummary | None:
        """The newest summary of this branch; None if there is none, or it was undone."""
        newest = self._planner.plan_state.summary
        return newest if newest is not None and newest.text else None

    @property
    def is_active(self) -> bool:
        """Whether the next request contains the newest summary, which until then is only ready."""
        planner, current = self._planner, self.current
        plan = planner.plan_state.plan
        if not planner.setup.rolling or current is None or plan is None or plan.summary is None:
            return False
        return plan.summary.generation == current.generation

    @property
    def busy(self) -> bool:
        """Whether a summary is being made in the background."""
        return self._task is not None and not self._task.done()

    @property
    def is_proposing(self) -> bool:
        """Whether a summary that the user asked for is being made."""
        return self._proposing is not None

    def is_worth_saying(self, report: PromptReport | None) -> bool:
        """Return whether the next request (its `report`) has a summary, and its banner was not dismissed."""
        if self._state.info.summary_noted or self._is_dismissed:
            return False
        return report is not None and report.summary > 0

    def dismiss(self) -> None:
        """Record that the user has dismissed the banner about the summary.

        In a session that another process has open, only this process remembers it.
        """
        self._is_dismissed = True
        self._state.update(summary_noted=True)

    def extract_only(self) -> None:
        """Extract summaries by rule from now on, which is free, instead of asking a model."""
        self._may_ask = False

    def begin_due(self) -> None:
        """Start making the next summary after an answer, if summaries are wanted."""
        if not self.busy and self._is_wanted():
            self._task = asyncio.create_task(self._run())

    def cancel(self) -> None:
        """Cancel any summary being made, because the branch or the session changes."""
        self.stop_proposing()
        self._cancel_pass()

    def _cancel_pass(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def settled(self) -> None:
        """Wait until no summary is being made in the background."""
        while self._task is not None and not self._task.done():
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        """Cancel any summary being made, and wait until its task has ended."""
        self.stop_proposing()
        await self._stop_pass()

    async def _stop_pass(self) -> None:
        task = self._task
        self._cancel_pass()
        if task is not None and not task.done():
            await asyncio.wait({task})

    async def propose(self, focus: str = "") -> Proposal:
        """Make a summary of all but the newest turn, for the user to accept; `focus` is what to stress.

        Nothing is published. Raises ChatError if there is nothing to summarize, if it fails or is stopped, or
        if another one is being made.
        """
        state = self._state
        if not state.planner.setup.rolling:
            raise ChatError("Rolling context is off, and summaries with it: /rolling-context on first.")
        if state.planner.setup.config.summarize == "off":
            raise ChatError("Summaries are off: /rolling-context set summarize model turns them on.")
        state.make_ours()
        state.require_address()
        await self._stop_pass()
        if self._proposing is not None:
            raise ChatError("A summary is being made already: Esc stops it.")
        self._notice = ""
        self._proposing = asyncio.create_task(self._propose(focus))
        self._report(SummaryBegan())
        try:
            return await self._proposing
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise ChatError("The summary was stopped; nothing was changed.") from None
        except SummaryError as error:
            raise ChatError(f"No summary came of it: {error}.") from error
        except StoreError as error:
            raise ChatError(str(error)) from error
        finally:
            self._proposing = None
            self._report(SummaryEnded(self._notice))

    def stop_proposing(self) -> bool:
        """Cancel the summary that the user asked for; return whether one was being made."""
        return self._proposing is not None and self._proposing.cancel()

    def take(self, proposal: Proposal) -> None:
        """Publish a proposal; it is active from the next request on. Raises ChatError if it is outdated."""
        self._activate(proposal.summary, proposal.expected)

    def undo(self) -> StoredSummary | None:
        """Restore the previous summary, if any, from the next request on; return it.

        Raises ChatError where there is nothing to undo.
        """
        current = self.current
        if current is None:
            raise ChatError("There is no summary to undo.")
        with in_words():
            older = {one.generation: one for one in self._runtime.store.summaries(self._state.info.id)}
        before = older.get(current.made_from)
        if before is None or not before.text:
            before = replace(current, text="", made_from=0, tokens_before=0, tokens_after=0)
        self._activate(replace(before, created_at=0.0), current.generation, anew=True)
        return self.current

    def edit(self, text: str) -> None:
        """Replace the summary's text from the next request on. Raises ChatError."""
        current, text = self.current, normalize_text(text).strip()
        if current is None:
            raise ChatError("There is no summary to edit.")
        if not text:
            raise ChatError("A summary cannot be empty; /compact undo goes back.")
        if text == current.text:
            return
        edited = replace(
            current, text=text, made_by=EDITED, made_from=current.generation, created_at=0.0,
            tokens_after=count_tokens(text, self._planner.setup.model),
        )  # fmt: skip
        self._publish_now(edited, current.generation)

    @property
    def max_tokens(self) -> int:
        """The maximum size of a summary in this session, in tokens."""
        return max_summary_tokens(self._planner.setup.config.max_context_tokens)

    # -- in the background

    def _is_wanted(self) -> bool:
        planner = self._planner
        if not planner.setup.rolling or planner.setup.config.summarize == "off" or self._state.is_followed:
            return False
        return self._runtime.clock() >= self._wait_until

    async def _run(self) -> None:
        """Make passes as long as one is due; a failure leaves the current summary in place."""
        has_begun, self._notice = False, ""
        try:
            while self._is_wanted():
                try:
                    source, expected = self._source(await self._branch()), self._generation
                    if (due := await source.due()) is None:
                        break
                    if not has_begun:
                        has_begun = True
                        self._report(SummaryBegan())
                        self._notice = " ".join(await self._before("auto", ""))
                    made = await self._summarizer.make(source, due)
                except NotReadError as missing:
                    await self._state.conversation.read_missing(missing.index)
                    continue
                await self._gate.idle.wait()
                publish = partial(self._publish, made.summary, expected)
                if await self._state.conversation.queue.run(publish) is None:
                    raise SummaryError("the conversation has changed meanwhile")
                self._failures, self._wait_until = 0, 0.0
                if made.refused:
                    self._notice = f"{refused_line(made.refused)}."
        except (SummaryError, StoreError) as error:
            self._fail(str(error))
        except Exception as error:
            log.exception("the summary broke")
            self._fail(f"a fault of the program ({type(error).__name__})")
        finally:
            if has_begun:
                self._report(SummaryEnded(self._notice))

    def _fail(self, reason: str) -> None:
        """Record a failure. The first is not reported, because the next pass may well succeed."""
        self._failures += 1
        log.warning("session %s: no summary, what there was stays: %s", self._state.info.id, reason)
        if self._failures < _MAX_FAILURES:
            return
        wait = min(_FIRST_WAIT * 2 ** (self._failures - _MAX_FAILURES), _LONGEST_WAIT)
        self._wait_until = self._runtime.clock() + wait
        self._notice = (
            f"Older messages are not being summarized ({reason}); they stay on disk. "
            f"Next try in {wait / 60:.0f} min at the earliest."
        )

    async def _propose(self, focus: str) -> Proposal:
        planner, expected = self._planner, self._generation
        await self._state.conversation.read_rest()
        first = source = replace(self._source(self._state.conversation.branch), focus=focus, early=True)
        refused = ""
        for number in range(MAX_PASSES):
            if (due := await source.due()) is None:
                break
            if not number:
                self._notice = " ".join(await self._before("manual", focus))
            made = await self._summarizer.make(source, due)
            source = replace(source, newest=replace(made.summary, generation=expected + 1))
            refused = refused or made.refused
        if source.newest is None or source is first:
            raise ChatError("There is nothing to summarize: the newest turn always stays whole.")
        messages = self._state.conversation.messages
        proposed = as_summary(source.newest)
        _, after = planner.forecast.with_summary(messages, proposed)
        summary = replace(source.newest, made_from=first.newest.generation if first.newest else 0)
        left_out = await left_out_of(self._state.conversation, proposed, after) if proposed else ()
        return Proposal(summary, expected, planner.forecast.report(messages), after, refused, left_out)

    def _activate(self, summary: StoredSummary, expected: int, *, anew: bool = False) -> None:
        """Publish a summary and plan the next request with it."""
        published, branch = self._publish_now(summary, expected), self._state.conversation.messages
        plan, _ = self._planner.forecast.with_summary(branch, as_summary(published), anew=anew)
        if plan is not None:
            self._planner.plan_state.use_plan(plan)
            self._state.update(plan=plan.to_json())

    def _publish_now(self, summary: StoredSummary, expected: int) -> StoredSummary:
        """Publish a summary at the user's request. Raises ChatError."""
        self._gate.require_idle()
        self.cancel()
        self._state.make_ours()
        with in_words():
            published = self._publish(summary, expected)
        if published is None:
            raise ChatError("The conversation has changed meanwhile: ask for the summary again.")
        return published

    def _publish(self, summary: StoredSummary, expected: int) -> StoredSummary | None:
        state = self._state
        if state.conversation.open_calls():
            return None
        published = self._runtime.store.publish_summary(state.info.id, summary, expected=expected)
        state.planner.plan_state.read_summary()
        state.read_info()
        return published

    async def _branch(self) -> Sequence[Message]:
        """Return the part of the branch that was read; all of it if there are pins or little is missing."""
        conversation = self._state.conversation
        if self._planner.plan_state.pins or not conversation.is_long:
            await conversation.read_rest()
        return conversation.branch

    def _source(self, branch: Sequence[Message]) -> SummarySource:
        state, planner = self._state, self._planner
        newest = planner.plan_state.summary
        return SummarySource(
            planned=planner.pipeline.messages(branch),
            branch=branch,
            newest=newest if newest is not None and newest.text else None,
            pins=planner.plan_state.pins_on(branch),
            model=planner.setup.model,
            config=planner.setup.config if self._may_ask else _by_rule(planner.setup.config),
            address=address_of(
                self._runtime,
                planner.setup.config.summary_model or planner.setup.model,
                state.info,
                state.former_addresses,
            ),
            chat_address=planner.setup.address,
            tools=planner.setup.inputs(planner.setup.config).tools_as_sent,
            memo=planner.counts.memo,
        )

    @property
    def _generation(self) -> int:
        """The generation of the newest summary, even if it only records an undo; 0 if there is none."""
        newest = self._planner.plan_state.summary
        return newest.generation if newest is not None else 0

    def _report(self, event: SummaryEvent) -> None:
        if self._listener.on_summary is not None:
            self._listener.on_summary(event)


def _by_rule(config: ContextConfig) -> ContextConfig:
    return replace(config, summarize="extract") if config.summarize == "model" else config
