"""`kill -9` at any moment: what was acknowledged is there, and the session goes on."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from rolling_chat.messages import Ending, Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import StoreError
from tests.support.sessions import faults_of, new_session, start_python, start_writer


@pytest.mark.parametrize("seed", range(12))
def test_a_killed_writer_loses_nothing_that_it_acknowledged(database: Path, seed: int) -> None:
    store = open_store(database)
    session = new_session(store).id
    store.close()

    writer = start_writer(database, session)
    assert writer.stdout is not None
    said = [writer.stdout.readline() for _ in range(random.Random(seed).randrange(1, 90))]
    writer.kill()
    said += writer.stdout.readlines()
    writer.wait()
    writer.stdout.close()
    acknowledged = [line.split() for line in said if line.endswith("\n")]
    assert acknowledged

    store = open_store(database)
    assert store.claim(session) is None
    messages = store.branch(session)
    for what, turn, *piece in acknowledged:
        match what:
            case "user":
                assert messages[2 * int(turn)].text == f"question {turn}"
            case "piece":
                reply = messages[2 * int(turn) + 1]
                assert f"<{turn}.{piece[0]}>" in reply.text
                assert f"[{turn}.{piece[0]}]" in (reply.extras or {})["reasoning_content"]
            case _:
                assert messages[2 * int(turn) + 1].ending is Ending.COMPLETE
    # what is cut off says so, and is no longer open
    assert all(message.ending is Ending.COMPLETE for message in messages[:-1])
    with pytest.raises(StoreError):
        store.grow_reply(messages[-1].id, "too late")
    store.append(session, Message("user", "are you there?"))
    assert store.branch(session)[:-1] == messages
    store.close()
    assert faults_of(database) == []


@pytest.mark.parametrize("seed", range(6))
def test_a_store_whose_maker_was_killed_can_be_made_again(database: Path, seed: int) -> None:
    code = """
import sys
from pathlib import Path
from rolling_chat.sessions.opening import open_store
print("now", flush=True)
open_store(Path(sys.argv[1]))
sys.stdin.read()
"""
    maker = start_python(code, str(database))
    assert maker.stdout is not None
    maker.stdout.readline()
    # at any step of it: making takes some milliseconds
    until = time.perf_counter() + random.Random(seed).uniform(0, 0.01)
    while time.perf_counter() < until:
        pass
    maker.kill()
    maker.communicate()

    store = open_store(database)
    store.append(new_session(store).id, Message("user", "hi"))
    store.close()
    assert faults_of(database) == []


def test_a_store_may_be_moved_away_without_the_files_beside_it(database: Path) -> None:
    store = open_store(database)
    session = new_session(store).id
    store.close()
    writer = start_writer(database, session)
    assert writer.stdout is not None
    writer.stdout.readline()
    writer.kill()
    writer.wait()
    writer.stdout.close()
    assert database.with_name("sessions.db-wal").stat().st_size > 0

    database.rename(database.with_name("old.db"))
    store = open_store(database)
    assert store.sessions() == []
    store.append(new_session(store).id, Message("user", "anew"))
    store.close()
    assert faults_of(database) == []
