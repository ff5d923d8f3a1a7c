"""What always holds of a chat: every message of the branch has one fate, whatever was done to it before."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rolling_chat.agent import Chat, ChatError
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.context import Fate
from rolling_chat.context.summary_text import HEAD
from rolling_chat.messages import Message
from rolling_chat.settings.schema import AgentSettings, ContextSettings, Settings
from tests.support.agent import ScriptedProvider, collect, make_runtime, says

PICK = st.randoms(use_true_random=False)


class Talk(RuleBasedStateMachine):
    """A session that is talked in, summarized, rewound, forked and switched about."""

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.provider = ScriptedProvider(says("It is so, and has long been so. " * 12))
        context = ContextSettings(enabled=True, max_history_tokens=500, summarize="extract")
        chosen = Settings(context=context, agent=AgentSettings(tools="none"))
        self.runtime = make_runtime(Path(self.folder.name), self.provider, settings=chosen)
        self.chat = Chat.open(self.runtime)
        self.sessions = [self.chat.session.info.id]

    def wait_for(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    @rule(turns=st.integers(1, 4), settle=st.booleans())
    def say(self, turns: int, settle: bool) -> None:
        for number in range(turns):
            self.wait_for(
                collect(self.chat.send(f"What of src/part_{len(self.chat.session.messages)}.py, {number}?"))
            )
            if settle:
                self.wait_for(self.chat.session.summaries.settled())

    @rule(pick=PICK)
    def rewind(self, pick) -> None:
        if turns := self.chat.session.history.turns():
            self.chat.session.history.rewind(pick.choice(turns).message.id)

    @rule()
    def redo(self) -> None:
        try:
            self.chat.session.history.redo()
        except ChatError:
            return

    @rule()
    def fork(self) -> None:
        if self.chat.session.messages and len(self.sessions) < 4:
            self.chat.fork()
            self.sessions.append(self.chat.session.info.id)

    @rule(pick=PICK)
    def go_to_another_session(self, pick) -> None:
        self.chat.resume(pick.choice(self.sessions))

    @rule(takes=st.booleans())
    def compact(self, takes: bool) -> None:
        try:
            proposal = self.wait_for(self.chat.session.summaries.propose())
        except ChatError:
            return
        if takes:
            self.chat.session.summaries.take(proposal)
            assert self.chat.session.summaries.is_active

    @rule()
    def undo_summary(self) -> None:
        if self.chat.session.summaries.current is not None:
            self.chat.session.summaries.undo()

    @rule(text=st.sampled_from(["They met.", "They talked.\n" * 300]))
    def edit_summary(self, text: str) -> None:
        if self.chat.session.summaries.current is not None:
            self.chat.session.summaries.edit(text)

    @rule(on=st.booleans())
    def switch(self, on: bool) -> None:
        self.chat.session.overrides.set_rolling(on)

    @invariant()
    def every_message_has_one_fate(self) -> None:
        if not hasattr(self, "chat"):
            return
        report, messages = self.chat.session.preview.report(), self.chat.session.messages
        assert [row.id for row in report.rows] == ["", *(message.id for message in messages)]
        assert sum(report.fates.values()) == len(messages) + 1
        for fate in Fate:
            assert report.count(fate) == sum(row.fate is fate for row in report.rows)
        assert (report.summary > 0) >= (report.count(Fate.SUMMARIZED) > 0)

    @invariant()
    def what_counts_is_on_the_branch(self) -> None:
        current = self.chat.session.summaries.current if hasattr(self, "chat") else None
        if current is not None:
            assert self.chat.session.messages[current.place - 1].id == current.through
        assert not hasattr(self, "chat") or self.chat.session.info.has_summary == (current is not None)

    def teardown(self) -> None:
        if not hasattr(self, "chat"):
            return
        self.wait_for(self.chat.session.summaries.stop())
        for session in self.sessions:
            for record in self.runtime.store.requests(session):
                rebuilt = rebuild_request(self.runtime.store, record)
                assert rebuilt.is_same
                assert _summaries_in(rebuilt.messages) <= 1
        self.runtime.store.close()
        self.folder.cleanup()
        self.loop.close()


def _summaries_in(messages: tuple[Message, ...]) -> int:
    return messages[0].text.count(HEAD)


Talk.TestCase.settings = settings(
    max_examples=12, stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck)
)
TestTalk = Talk.TestCase
