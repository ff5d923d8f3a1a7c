"""Move the head of a session back and forth in its tree of messages; nothing is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.memory.summaries import Summaries
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session_state import SessionState
from rolling_chat.agent.turn.running import TurnGate
from rolling_chat.messages import Message
from rolling_chat.sessions.records import LeftBranch


@dataclass(frozen=True, slots=True)
class SaidTurn:
    """A turn of the branch, by its user message: `number` counts from 1 at the root."""

    number: int
    message: Message


@dataclass(frozen=True, slots=True)
class _Step:
    """A move that can be undone: from the head `left` to the head `reached`."""

    left: str
    reached: str


class History:
    """Moves the head of one session between the messages of its tree.

    Methods raise ChatError if there is nowhere to go or the store fails; those that move the head also while
    a turn runs or another process has the session open. The session's cost does not change; plan, summary and
    pins follow the branch. Those that move the head can run in a thread, after `make_way`.
    """

    def __init__(self, runtime: Runtime, state: SessionState, gate: TurnGate, summaries: Summaries) -> None:
        self._runtime = runtime
        self._state = state
        self._gate = gate
        self._summaries = summaries
        self._back: list[_Step] = []

    def before_newest_turn(self) -> str:
        """Return the id of the message to which /undo would go; empty for before the first."""
        turns = self.turns()
        if not turns:
            raise ChatError("There is nothing to undo: this branch has no message of yours.")
        return self.before(turns[-1].message.id)

    def before(self, message_id: str) -> str:
        """Return the id of the message before another one on this branch; empty for the first."""
        ids = ["", *(message.id for message in self._messages)]
        if message_id not in ids[1:]:
            raise ChatError(
                "That message is not on this branch; /branches lists the branches that were left."
            )
        return ids[ids.index(message_id) - 1]

    def end_of(self, message_id: str) -> str:
        """Return the id of the last message of the branch that contains a message."""
        with in_words():
            return self._runtime.store.end_of_branch(self._state.info.id, message_id)

    def redo_target(self) -> str | None:
        """Return the id of the message to which /redo would go; None if there is nothing to redo."""
        here = self._head
        step = next((step for step in reversed(self._back) if step.reached == here), None)
        return step.left if step is not None else None

    def turns(self) -> list[SaidTurn]:
        """Return the turns of this branch by their user messages, oldest first."""
        said = (message for message in self._messages if message.role == "user")
        return [SaidTurn(number, message) for number, message in enumerate(said, 1)]

    def undo(self) -> Message:
        """Go back to before the newest user message, and return that message."""
        self.make_way()
        turns = self.turns()
        if not turns:
            raise ChatError("There is nothing to undo: this branch has no message of yours.")
        return self.rewind(turns[-1].message.id)

    def redo(self) -> None:
        """Undo the last move of the head."""
        self.make_way()
        here = self._head
        # moves that a new message has turned into another branch cannot be redone
        while self._back and self._back[-1].reached != here:
            self._back.pop()
        if not self._back:
            raise ChatError("There is nothing to redo; /branches lists the branches that were left.")
        self._go(self._back.pop().left)

    def rewind(self, message_id: str) -> Message:
        """Go back to before a message on this branch, and return that message."""
        self.make_way()
        before = ""
        for message in self._messages:
            if message.id == message_id:
                self._step(before)
                return message
            before = message.id
        raise ChatError("That message is not on this branch; /branches lists the branches that were left.")

    def retake(self) -> Message:
        """Go back to the newest user message, so that it can be answered again, and return it."""
        self.make_way()
        turns = self.turns()
        if not turns:
            raise ChatError("There is nothing to answer again: this branch has no message of yours.")
        asked = turns[-1].message
        if asked.id != self._head:
            self._step(asked.id)
        return asked

    def branches(self) -> Sequence[LeftBranch]:
        """Return the branches that the head was moved away from, the last written first."""
        with in_words():
            return self._runtime.store.left_branches(self._state.info.id)

    def go_to(self, message_id: str) -> bool:
        """Go to the end of the branch that contains `message_id`; return False if that is this one."""
        self.make_way()
        if any(message.id == message_id for message in self._messages):
            return False
        self._step(self.end_of(message_id))
        return True

    @property
    def _messages(self) -> Sequence[Message]:
        with in_words():
            return self._state.conversation.messages

    @property
    def _head(self) -> str:
        return self._messages[-1].id if self._messages else ""

    def make_way(self) -> None:
        """Cancel any summary of the branch. Raises ChatError while a turn runs."""
        self._gate.require_idle()
        self._summaries.cancel()

    def _step(self, head: str) -> None:
        self._state.make_ours()
        left = self._head
        self._go(head)
        self._back.append(_Step(left, self._head))

    def _go(self, head: str) -> None:
        state = self._state
        state.make_ours()
        with in_words():
            plan = self._runtime.store.move_head(state.info.id, head, state.planner.setup.model)
            state.conversation.move_to(head)
            state.planner.plan_state.load_plan(plan)
            # close what a process left open in the middle of a turn on this branch
            state.repair()
        state.read_info()
