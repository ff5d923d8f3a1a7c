"""The rolling summary of the open session: made in the background, published, taken back, edited."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.memory.summarizer import Summarizer, SummarySource
from rolling_chat.agent.models import address_of
from rolling_chat.agent.request.planned import as_summary
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session import OpenSession
from rolling_chat.agent.text import sound_text
from rolling_chat.context import (
    ContextConfig,
    PromptReport,
    SummaryError,
    count_tokens,
    most_summary_tokens,
)
from rolling_chat.events import SummaryBegan, SummaryEnded, SummaryEvent
from rolling_chat.messages import Usage
from rolling_chat.sessions.records import StoredSummary, StoreError

log = logging.getLogger("rolling_chat.agent.memory.summaries")

EDITED = "you"
"""`made_by` of a summary that the person edited."""

MAX_PASSES = 10
"""The most passes that one asking for a summary makes."""

_MAX_FAILURES = 2  # passes in a row without progress, before the next ones wait
_FIRST_WAIT, _LONGEST_WAIT = 60.0, 3_600.0  # seconds; every further failure doubles the wait


@dataclass(frozen=True, slots=True)
class Proposal:
    """A summary that the person may take or leave.

    `covers` counts the messages that it stands for; `before` and `after` are reports of the next
    request without and with it. `refused` is why it was extracted by rule, where a model was asked.
    """

    summary: StoredSummary
    expected: int
    covers: int
    before: PromptReport
    after: PromptReport
    refused: str = ""


class Summaries:
    """The summaries of the session that is open at the time; `session` says which one that is.

    A pass runs in a task of its own and is published between two turns, if the branch is still the
    one that it was made on. `listener` is told when one begins and ends.
    """

    def __init__(self, runtime: Runtime, session: Callable[[], OpenSession]) -> None:
        self._runtime = runtime
        self._session = session
        self._task: asyncio.Task[None] | None = None
        self._proposing: asyncio.Task[Proposal] | None = None
        self._between_turns = asyncio.Event()
        self._between_turns.set()
        self._summarizer = Summarizer(runtime, self._spend, self._between_turns)
        self._may_ask = True
        self._failures = 0
        self._wait_until = 0.0
        self._notice = ""  # what is said when the pass that runs has ended
        self._dismissed_in: OpenSession | None = None
        self.listener: Callable[[SummaryEvent], None] | None = None

    @property
    def current(self) -> StoredSummary | None:
        """The summary that counts on this branch; None where there is none, or it was taken back."""
        newest = self._session().planner.summary
        return newest if newest is not None and newest.text else None

    @property
    def is_in_force(self) -> bool:
        """Does the next request carry the summary that counts? Until it does, it is only ready."""
        planner, current = self._session().planner, self.current
        plan = planner.decisions
        if not planner.rolling or current is None or plan is None or plan.summary is None:
            return False
        return plan.summary.generation == current.generation

    @property
    def busy(self) -> bool:
        """Is one being made in the background?"""
        return self._task is not None and not self._task.done()

    @property
    def is_proposing(self) -> bool:
        """Is one being made that the person asked for?"""
        return self._proposing is not None

    def is_worth_saying(self, report: PromptReport | None) -> bool:
        """Does the next request (its `report`) carry a summary, and was the line about it not dismissed?"""
        session = self._session()
        if session.info.summary_noted or self._dismissed_in is session:
            return False
        return report is not None and report.summary > 0

    def dismiss(self) -> None:
        """The person has read that the session is summarised; it is not said again.

        In a session that another process has, this one alone remembers it.
        """
        self._dismissed_in = self._session()
        self._dismissed_in.update(summary_noted=True)

    def extract_only(self) -> None:
        """From now on no model is asked: summaries are extracted by rule, which costs nothing."""
        self._may_ask = False

    def turn_began(self) -> None:
        """Nothing is published until the turn has ended, and a server with one slot is the turn's."""
        self._between_turns.clear()
        self._summarizer.yield_to_turn()

    async def has_yielded(self) -> None:
        """Wait, not for long, until what would keep the turn's request waiting is stopped."""
        await self._summarizer.has_yielded()

    def turn_ended(self, *, done: bool) -> None:
        """What is ready may be published; after an answer that was `done` the next pass may be due."""
        self._between_turns.set()
        if done and not self.busy and self._is_wanted():
            self._task = asyncio.create_task(self._run(self._session()))

    def cancel(self) -> None:
        """Stop what is being made: the branch or the session is left."""
        self.stop_proposing()
        self._cancel_pass()

    def _cancel_pass(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def leave_session(self) -> None:
        """Another session is open from now on."""
        self.cancel()
        self._failures, self._wait_until = 0, 0.0

    async def settled(self) -> None:
        """Wait until nothing is being made any more."""
        while self._task is not None and not self._task.done():
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        """Stop what is being made, and wait until it has let go of everything."""
        self.stop_proposing()
        await self._stop_pass()

    async def _stop_pass(self) -> None:
        task = self._task
        self._cancel_pass()
        if task is not None and not task.done():
            await asyncio.wait({task})

    async def propose(self, focus: str = "") -> Proposal:
        """Make a summary of all but the newest turn now; `focus` is what to keep in mind.

        Nothing is published. Raises ChatError where there is nothing to summarise, none came of it, or it
        was stopped; and while another is being made.
        """
        session = self._session()
        if not session.planner.rolling:
            raise ChatError("Rolling context is off, and summaries with it: /rolling-context on first.")
        if session.planner.config.summarize == "off":
            raise ChatError("Summaries are off: /rolling-context set summarize model turns them on.")
        session.make_ours()
        session.require_address()
        await self._stop_pass()
        if self._proposing is not None:
            raise ChatError("A summary is being made already: Esc stops it.")
        self._proposing = asyncio.create_task(self._propose(session, focus))
        self._tell(SummaryBegan())
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
            self._tell(SummaryEnded())

    def stop_proposing(self) -> bool:
        """Stop the summary that the person asked for; whether one was being made."""
        return self._proposing is not None and self._proposing.cancel()

    def take(self, proposal: Proposal) -> None:
        """Publish a proposal; it is in force with the next request. Raises ChatError if it is overtaken."""
        self._put_in_force(proposal.summary, proposal.expected)

    def undo(self) -> StoredSummary | None:
        """Go back to the summary before this one, None where there was none; with the next request.

        Raises ChatError where there is nothing to undo.
        """
        current, session = self.current, self._session()
        if current is None:
            raise ChatError("There is no summary to undo.")
        with in_words():
            older = {one.generation: one for one in self._runtime.store.summaries(session.info.id)}
        before = older.get(current.made_from)
        if before is None or not before.text:
            before = replace(current, text="", made_from=0, tokens_before=0, tokens_after=0)
        self._put_in_force(replace(before, created_at=0.0), current.generation, anew=True)
        return self.current

    def edit(self, text: str) -> None:
        """Let the summary say `text` from the next request on. Raises ChatError."""
        current, text = self.current, sound_text(text).strip()
        if current is None:
            raise ChatError("There is no summary to edit.")
        if not text:
            raise ChatError("An empty summary stands for nothing; /compact undo takes it back.")
        if text == current.text:
            return
        edited = replace(
            current, text=text, made_by=EDITED, made_from=current.generation, created_at=0.0,
            tokens_after=count_tokens(text, self._session().planner.model),
        )  # fmt: skip
        self._publish_now(edited, current.generation)

    @property
    def most_tokens(self) -> int:
        """The most that a summary takes in a request of this session, in tokens."""
        return most_summary_tokens(self._session().planner.config.max_context_tokens)

    # -- in the background

    def _is_wanted(self) -> bool:
        planner, session = self._session().planner, self._session()
        if not planner.rolling or planner.config.summarize == "off" or session.is_held:
            return False
        return self._runtime.clock() >= self._wait_until

    async def _run(self, session: OpenSession) -> None:
        """Pass after pass while one is due; a failure keeps what there was."""
        has_begun, self._notice = False, ""
        try:
            while self._is_wanted():
                subject, expected = self._subject(session), _generation(session)
                if (due := await subject.due()) is None:
                    break
                if not has_begun:
                    has_begun = True
                    self._tell(SummaryBegan())
                made = await self._summarizer.make(subject, due)
                await self._between_turns.wait()
                if self._publish(session, made.summary, expected) is None:
                    raise SummaryError("the conversation has gone another way meanwhile")
                self._failures, self._wait_until = 0, 0.0
                if made.refused:
                    self._notice = f"{refused_line(made.refused)}."
        except (SummaryError, StoreError) as error:
            self._fail(session, str(error))
        except Exception as error:
            log.exception("the summary broke")
            self._fail(session, f"a fault of the program ({type(error).__name__})")
        finally:
            if has_begun:
                self._tell(SummaryEnded(self._notice))

    def _fail(self, session: OpenSession, reason: str) -> None:
        """Keep what there was. The first failure is not worth a word: the next pass may well succeed."""
        self._failures += 1
        log.warning("session %s: no summary, what there was stays: %s", session.info.id, reason)
        if self._failures < _MAX_FAILURES:
            return
        wait = min(_FIRST_WAIT * 2 ** (self._failures - _MAX_FAILURES), _LONGEST_WAIT)
        self._wait_until = self._runtime.clock() + wait
        self._notice = (
            f"Older messages are not being summarized ({reason}); they stay on disk. "
            f"Next try in {wait / 60:.0f} min at the earliest."
        )

    async def _propose(self, session: OpenSession, focus: str) -> Proposal:
        planner, expected = session.planner, _generation(session)
        first = subject = replace(self._subject(session), focus=focus, early=True)
        refused = ""
        for _ in range(MAX_PASSES):
            if (due := await subject.due()) is None:
                break
            made = await self._summarizer.make(subject, due)
            subject = replace(subject, newest=replace(made.summary, generation=expected + 1))
            refused = refused or made.refused
        if subject.newest is None or subject is first:
            raise ChatError("There is nothing to summarise: the newest turn always stays whole.")
        messages = session.conversation.messages
        _, after = planner.plan_with(messages, as_summary(subject.newest))
        summary = replace(subject.newest, made_from=first.newest.generation if first.newest else 0)
        return Proposal(summary, expected, summary.place, planner.preview(messages), after, refused)

    def _put_in_force(self, summary: StoredSummary, expected: int, *, anew: bool = False) -> None:
        """Publish a summary and plan the next request with it."""
        published, session = self._publish_now(summary, expected), self._session()
        plan, _ = session.planner.plan_with(session.conversation.messages, as_summary(published), anew=anew)
        if plan is not None:
            session.planner.use_plan(plan)
            session.update(plan=plan.to_json())

    def _publish_now(self, summary: StoredSummary, expected: int) -> StoredSummary:
        """Publish what the person asked for. Raises ChatError."""
        if not self._between_turns.is_set():
            raise ChatError("The model is still answering: Esc stops it.")
        session = self._session()
        self.cancel()
        session.make_ours()
        with in_words():
            published = self._publish(session, summary, expected)
        if published is None:
            raise ChatError("The conversation has gone another way meanwhile: ask for the summary again.")
        return published

    def _publish(self, session: OpenSession, summary: StoredSummary, expected: int) -> StoredSummary | None:
        if session.conversation.open_calls():
            return None
        published = self._runtime.store.publish_summary(session.info.id, summary, expected=expected)
        session.planner.read_summary()
        session.read_info()
        return published

    def _subject(self, session: OpenSession) -> SummarySource:
        planner = session.planner
        branch, newest = session.conversation.messages, planner.summary
        return SummarySource(
            planned=planner.planned(branch),
            newest=newest if newest is not None and newest.text else None,
            pins=planner.pins.on(branch),
            model=planner.model,
            config=planner.config if self._may_ask else _by_rule(planner.config),
            session_id=session.info.id,
            address=address_of(
                self._runtime,
                planner.config.summary_model or planner.model,
                session.info,
                session.former_addresses,
            ),
            chat_address=planner.address,
            tools=tuple(tool.schema for tool in planner.tools),
        )

    def _spend(self, usage: Usage) -> None:
        self._session().usage += usage

    def _tell(self, event: SummaryEvent) -> None:
        if self.listener is not None:
            self.listener(event)


def refused_line(reason: str) -> str:
    """What is said where a model's answer was not accepted."""
    return f"The model's summary was not used ({reason}); it was extracted by rule"


def _by_rule(config: ContextConfig) -> ContextConfig:
    return replace(config, summarize="extract") if config.summarize == "model" else config


def _generation(session: OpenSession) -> int:
    """That of the summary which counts, also of one that only takes back; 0 for none."""
    newest = session.planner.summary
    return newest.generation if newest is not None else 0
