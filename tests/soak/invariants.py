"""What must hold of the store and of the processes when an episode is over."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.messages import Message
from rolling_chat.sessions.ids import unpacked
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import SessionInfo, StoreError
from rolling_chat.sessions.store import SessionStore
from tests.soak.servers import MARK
from tests.support.sessions import faults_of

_REBUILT = 12  # requests an episode


_TIPS = """
    SELECT id FROM message
    WHERE number NOT IN (SELECT parent FROM message WHERE parent IS NOT NULL)
"""


def broken_store(database: Path, marks: Collection[str], rng: random.Random) -> list[str]:
    """Everything wrong with the store: what SQLite finds, what cannot be reached, what was lost.

    `marks` are texts that a server saw or a screen showed, and that must be in some message.
    """
    problems = faults_of(database)
    if problems:
        return problems
    kept: set[str] = set()
    with closing(open_store(database)) as store:
        for info in _sessions(store):
            for head in (None, *(branch.head for branch in store.left_branches(info.id))):
                branch = store.branch(info.id, head)
                problems += _unreachable(info.id, branch)
                kept |= _marks_in(branch)
        problems += _not_rebuilt(store, rng)
    kept |= _everywhere(database) if (lost := set(marks) - kept) else set()
    lost = set(marks) - kept
    return [*problems, *([f"lost: {sorted(lost)[:10]}"] if lost else [])]


def _sessions(store: SessionStore) -> Iterator[SessionInfo]:
    """All sessions, each with its tasks."""
    for info in store.sessions():
        yield info
        yield from store.tasks(info.id)


def _marks_in(branch: Collection[Message]) -> set[str]:
    # a line break is a letter in what `str` makes of a message: the marks of its text are looked for there
    texts = (text for message in branch for text in (message.text, str(message)))
    return {mark for text in texts for mark in MARK.findall(text)}


def _unreachable(session: str, branch: list[Message]) -> Iterator[str]:
    if any(not message.id for message in branch):
        yield f"a message of session {session} has no id"
    if len({message.id for message in branch}) < len(branch):
        yield f"a message of session {session} is there twice"


def _not_rebuilt(store: SessionStore, rng: random.Random) -> list[str]:
    """`inspect --verify` of some requests."""
    records = [record for info in _sessions(store) for record in store.requests(info.id)]
    problems = []
    for record in rng.sample(records, min(_REBUILT, len(records))):
        try:
            if not rebuild_request(store, record).is_same:
                problems.append(f"request {record.id} is not what was sent")
        except StoreError as error:
            problems.append(f"request {record.id}: {error}")
    return problems


def _everywhere(database: Path) -> set[str]:
    """The marks of messages on no branch that can be gone to: a branch within a branch that was left."""
    with closing(sqlite3.connect(database)) as connection:
        tips = [unpacked(row[0]) for row in connection.execute(_TIPS)]
    found: set[str] = set()
    with closing(open_store(database)) as store:
        sessions = store.sessions()
        for tip in tips if sessions else ():
            branch = store.branch(sessions[0].id, tip)
            found |= _marks_in(branch)
    return found
