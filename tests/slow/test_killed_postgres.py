"""Clients killed and servers crashed, again and again: nothing that PostgreSQL acknowledged is lost."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from rolling_chat.messages import Ending, Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore
from tests.support.postgres import own_server, shared_server
from tests.support.sessions import new_session, start_writer
from tests.support.stores import PostgresPlace
from tests.support.unsteady_network import unsteady_network

pytestmark = pytest.mark.slow

KILLS, AT_ONCE = 200, 4
CRASHES, CUTS = 20, 200
BETWEEN = 40  # lines of a writer


class Watched:
    """A writer, and what it has said that the store has taken."""

    def __init__(self, address: str, session: str) -> None:
        self.session = session
        self._process = start_writer(address, session)
        self._lines: list[str] = []
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait_for(self, lines: int) -> None:
        """Wait until so many more lines have come."""
        with self._more:
            wanted = len(self._lines) + lines
            assert self._more.wait_for(lambda: len(self._lines) >= wanted, timeout=120.0), self._lines[-3:]

    def kill(self) -> list[str]:
        """Kill it at once; return what it had acknowledged."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        return self._lines

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith("\n"):
                    with self._more:
                        self._lines.append(line)
                        self._more.notify()


def check(store: SessionStore, session: str, acknowledged: list[str]) -> None:
    """All of it is there, in order and once, and the session goes on."""
    assert store.claim(session) is None
    messages = store.branch(session)
    for what, turn, *piece in map(str.split, acknowledged):
        reply = messages[2 * int(turn) + (what != "user")]
        match what:
            case "user":
                assert reply.text == f"question {turn}"
            case "piece":
                assert reply.text.startswith("".join(f"<{turn}.{n}>" for n in range(int(piece[0]) + 1)))
            case _:
                assert reply.ending is Ending.COMPLETE
                assert reply.text == "".join(f"<{turn}.{n}>" for n in range(20))
    store.append(session, Message("user", "go on"))
    assert store.branch(session)[:-1] == messages
    store.release(session)


def test_killed_clients_lose_nothing_and_leave_no_session_torn(tmp_path: Path) -> None:
    place = PostgresPlace(tmp_path)
    store = place.open()
    chance = random.Random(7)
    for _ in range(KILLS // AT_ONCE):
        writers = [Watched(place.address, new_session(store).id) for _ in range(AT_ONCE)]
        for writer in writers:
            writer.wait_for(chance.randrange(1, BETWEEN))
            acknowledged = writer.kill()
            check(store, writer.session, acknowledged)
    store.close()
    assert place.faults() == []


def test_a_server_that_crashes_is_waited_for_and_has_kept_all() -> None:
    with own_server() as server:
        server.sql("CREATE DATABASE sessions")
        store = open_store(server.url("sessions"))
        writer = Watched(server.url("sessions"), new_session(store).id)
        for _ in range(CRASHES):
            writer.wait_for(BETWEEN)
            server.crash()
            server.start()
        writer.wait_for(BETWEEN)
        check(store, writer.session, writer.kill())
        store.close()


def test_a_network_that_is_slow_and_cut_loses_and_doubles_nothing(tmp_path: Path) -> None:
    place = PostgresPlace(tmp_path)
    database = place.address.split("/")[3].split("?")[0]
    with unsteady_network(shared_server().socket) as network:
        store = place.open()
        session = new_session(store).id
        writer = Watched(f"postgresql://postgres@127.0.0.1:{network.port}/{database}", session)
        chance = random.Random(11)
        for _ in range(CUTS):
            writer.wait_for(chance.randrange(1, 6))
            network.delay = chance.choice([0.0, 0.001, 0.005])
            chance.choice([network.cut, network.lose_next_answer])()
        check(store, session, writer.kill())
        store.close()
    assert place.faults() == []


def test_two_machines_write_one_session_in_order(tmp_path: Path) -> None:
    place = PostgresPlace(tmp_path)
    first, second = place.open(), place.open()
    session = new_session(first).id
    said = []
    for turn in range(50):
        store = (first, second)[turn % 2]
        assert store.claim(session) is None
        said.append(store.append(session, Message("user", f"{turn}")))
        store.release(session)
    assert first.branch(session) == second.branch(session) == said
    first.close()
    second.close()
