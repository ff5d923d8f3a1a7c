"""What always holds of a session's tree, whatever is done to it and in whatever order."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from rolling_chat.messages import Ending, Message
from rolling_chat.sessions.records import RequestRecord
from rolling_chat.sessions.store import SessionStore
from tests.support.sessions import OFFLINE, new_session

MODEL = "demo/offline"
PICK = st.randoms(use_true_random=False)


class Tree(RuleBasedStateMachine):
    """Sessions and their forks, moved about at random; beside them, all that was acknowledged."""

    def __init__(self, store: SessionStore) -> None:
        super().__init__()
        self.store = store

    @initialize()
    def begin(self) -> None:
        self.sessions = [new_session(self.store).id]
        self.said: dict[str, str] = {}  # every message ever acknowledged
        self.parents: dict[str, str] = {}
        self.heads: dict[str, str] = {self.sessions[0]: ""}
        self.had: dict[str, set[str]] = {self.sessions[0]: set()}  # what a session ever had on its branch
        self.owner: dict[str, str] = {}  # the session that a message was said in
        self.requests: list[tuple[str, str, object]] = []  # session, head and plan, in order

    def add(self, session: str, message: Message) -> None:
        self.said[message.id] = message.text
        self.parents[message.id] = self.heads[session]
        self.heads[session] = message.id
        self.had[session].add(message.id)
        self.owner[message.id] = session

    def line(self, head: str) -> list[str]:
        """The way from the root to `head`, as it was when it was written."""
        ids = []
        while head:
            ids.append(head)
            head = self.parents[head]
        return ids[::-1]

    @rule(pick=PICK, text=st.text(max_size=20))
    def ask_and_answer(self, pick, text: str) -> None:
        session = pick.choice(self.sessions)
        self.add(session, self.store.append(session, Message("user", text)))
        self.answer(session, text)

    def answer(self, session: str, text: str) -> None:
        head, plan = self.heads[session], {"plan": len(self.said)}
        self.store.log_request(RequestRecord("", session, head, MODEL, plan, "d", 1, "h", 1, 1))
        self.requests.append((session, head, plan))
        reply = self.store.begin_reply(session, OFFLINE)
        self.store.grow_reply(reply, "an answer ")
        self.add(session, self.store.seal_reply(reply, Message("assistant", f"an answer to {text}")))

    @rule(pick=PICK, ending=st.sampled_from([Ending.CANCELLED, Ending.FAILED]))
    def break_off(self, pick, ending: Ending) -> None:
        session = pick.choice(self.sessions)
        reply = self.store.begin_reply(session, OFFLINE)
        self.store.drop_reply(reply)
        self.add(session, self.store.append(session, Message("user", "again", ending=ending)))

    @rule(pick=PICK)
    def rewind(self, pick) -> None:
        """Undo and rewind: to before a message of the branch; retry: to a message of it."""
        session = pick.choice(self.sessions)
        self.move(session, pick.choice(["", *self.line(self.heads[session])]))

    @rule(pick=PICK)
    def retry(self, pick) -> None:
        session = pick.choice(self.sessions)
        asked = [at for at in self.line(self.heads[session]) if not self.said[at].startswith("an answer")]
        if asked:
            self.move(session, asked[-1])
            self.answer(session, "the same")

    @rule(pick=PICK)
    def switch(self, pick) -> None:
        session = pick.choice(self.sessions)
        left = self.store.left_branches(session)
        if left:
            self.move(session, pick.choice(left).head)

    @rule(pick=PICK)
    def fork(self, pick) -> None:
        session = pick.choice(self.sessions)
        if self.heads[session] and len(self.sessions) < 4:
            fork = self.store.fork(session)
            self.sessions.append(fork.id)
            self.heads[fork.id] = fork.head
            self.had[fork.id] = set(self.line(fork.head))

    def move(self, session: str, head: str) -> None:
        plan = self.store.move_head(session, head, MODEL)
        self.heads[session] = head
        nearest = self.nearest_plan(session, self.line(head))
        assert plan == nearest == self.store.state(session).plan

    def nearest_plan(self, session: str, line: list[str]) -> object:
        """Of the last request at the message nearest to the end of `line`, by whoever shares messages."""
        sharers = {session, *(self.owner[at] for at in line)}
        asked = [(line.index(at), plan) for who, at, plan in self.requests if at in line and who in sharers]
        return max(enumerate(asked), key=lambda pair: (pair[1][0], pair[0]))[1][1] if asked else None

    @invariant()
    def every_branch_is_a_way_from_the_root(self) -> None:
        for session in getattr(self, "sessions", ()):
            branch = self.store.branch(session)
            assert [message.id for message in branch] == self.line(self.heads[session])
            assert [message.text for message in branch] == [self.said[message.id] for message in branch]
            assert self.store.session(session).messages == len(branch)

    @invariant()
    def everything_acknowledged_can_be_reached_from_its_session(self) -> None:
        for session in getattr(self, "sessions", ()):
            ends = [self.heads[session], *(left.head for left in self.store.left_branches(session))]
            branches = [self.store.branch(session, end) for end in ends if end]
            assert {message.id for branch in branches for message in branch} == self.had[session]


def test_the_tree_is_what_was_done_to_it(store: SessionStore) -> None:
    run_state_machine_as_test(
        lambda: Tree(store),
        settings=settings(
            max_examples=20,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
