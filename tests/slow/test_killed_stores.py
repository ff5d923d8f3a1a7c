"""`kill -9` a thousand times, at any moment: the file is whole, and nothing acknowledged is lost."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.messages import Message
from rolling_chat.sessions.ids import unpacked
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.sqlite.migrations import VERSION
from tests.support.killing import Executioner
from tests.support.sessions import faults_of, old_store

pytestmark = pytest.mark.slow

ROUNDS, KILLS, LONGEST = 40, 20, 0.12  # seconds
MIGRATION_KILLS = 200


@dataclass
class Acknowledged:
    """What the store has said that it has, by all the processes that were killed."""

    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    grown: dict[str, str] = field(default_factory=dict)
    heads: dict[str, str] = field(default_factory=dict)
    summaries: set[tuple[str, int, str, str]] = field(default_factory=set)
    requests: set[str] = field(default_factory=set)

    def take(self, acks: list[dict[str, Any]]) -> None:
        for ack in acks:
            match ack["op"]:
                case "said":
                    self.said[ack["id"]] = ack
                    self.heads[ack["session"]] = ack["id"]
                case "grown":
                    self.grown[ack["id"]] = ack["text"]
                    self.heads[ack["session"]] = ack["id"]
                case "moved":
                    self.heads[ack["session"]] = ack["id"]
                case "logged":
                    self.requests.add(ack["id"])
                case "summed":
                    self.summaries.add((ack["session"], ack["n"], ack["text"], ack["id"]))
                case "failed":
                    raise AssertionError(ack["text"])

    def check(self, database: Path) -> None:
        """All of it is there; what was in flight, one thing at most, may be there or not."""
        store = open_store(database)
        with closing(sqlite3.connect(database)) as connection:
            rows = connection.execute(
                "SELECT message.id, above.id FROM message LEFT JOIN message AS above"
                " ON above.number = message.parent"
            ).fetchall()
            parents = {unpacked(one): unpacked(above) if above else "" for one, above in rows}
            # of every session: one whose first message was stored but never acknowledged goes on as well
            logged = {unpacked(name) for (name,) in connection.execute("SELECT id FROM request")}
        ahead = 0
        for session, head in self.heads.items():
            store.claim(session)
            ahead += store.session(session).head != head
            self.heads[session] = store.session(session).head
            summaries = store.summaries(session)
            kept = {(session, one.generation, one.text, one.through) for one in summaries}
            assert {known for known in self.summaries if known[0] == session} <= kept
            assert [one.generation for one in summaries] == [*range(1, len(summaries) + 1)]
            ahead += len(kept - self.summaries)
            self.summaries |= kept
            ends = [store.session(session).head, *(left.head for left in store.left_branches(session))]
            there = {message.id: message for end in ends if end for message in store.branch(session, end)}
            for name, ack in self.said.items():
                if ack["session"] == session:
                    assert there[name].text == ack["text"]
                    assert parents[name] == ack["parent"]
            self.grown = {name: text for name, text in self.grown.items() if name not in self.said}
            for name in set(self.grown) & set(there):
                assert there[name].text.startswith(self.grown[name])
            for message in store.branch(session):
                assert message.role == "assistant" or message.text
        assert ahead <= 1
        assert set(self.grown) <= set(parents)
        assert self.requests <= logged
        store.close()
        assert faults_of(database) == []


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_killed_writer_loses_nothing_that_was_acknowledged(tmp_path: Path, round_: int) -> None:
    rng = random.Random(round_)
    database, known = tmp_path / "sessions.db", Acknowledged()
    with Executioner() as executioner:
        for kill in range(KILLS):
            after = rng.uniform(0, LONGEST)
            known.take(executioner.kill(database, tmp_path / "acks", 1000 * round_ + kill, after=after))
            known.check(database)
    assert known.said


def test_a_killed_migration_is_done_or_not_done(tmp_path: Path) -> None:
    rng = random.Random(1)
    with Executioner() as executioner:
        for kill in range(MIGRATION_KILLS):
            database = tmp_path / f"{kill}.db"
            old_store(database, rng.randrange(1, VERSION))
            acks = executioner.kill(
                database, tmp_path / "acks", kill, after=rng.uniform(0, 0.02), only_open=True
            )
            assert all(ack["op"] == "opened" for ack in acks)
            with closing(sqlite3.connect(database)) as connection:
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                assert 1 <= version <= VERSION
            store = open_store(database)
            session = store.session("abcdef0123").id
            assert [message.text for message in store.branch(session)] == ["old"]
            store.append(session, Message("user", "new"))
            assert len(store.search("old")) == len(store.search("new")) == 1
            store.close()
            assert faults_of(database) == []
            database.unlink()
