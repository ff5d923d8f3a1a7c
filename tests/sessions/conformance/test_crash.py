"""`kill -9` at any moment: what was acknowledged is there, and the session goes on."""

from __future__ import annotations

import random
import time

import pytest

from rolling_chat.messages import Ending, Message
from rolling_chat.sessions.records import StoreError
from tests.support.sessions import new_session, start_python, start_writer
from tests.support.stores import Place


@pytest.mark.parametrize("seed", range(12))
def test_a_killed_writer_loses_nothing_that_it_acknowledged(place: Place, seed: int) -> None:
    store = place.open()
    session = new_session(store).id
    store.close()

    writer = start_writer(place.address, session)
    assert writer.stdout is not None
    said = [writer.stdout.readline() for _ in range(random.Random(seed).randrange(1, 90))]
    writer.kill()
    said += writer.stdout.readlines()
    writer.wait()
    writer.stdout.close()
    acknowledged = [line.split() for line in said if line.endswith("\n")]
    assert acknowledged

    store = place.open()
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
    assert place.faults() == []


@pytest.mark.parametrize("seed", range(6))
def test_a_store_whose_maker_was_killed_can_be_made_again(place: Place, seed: int) -> None:
    code = """
import sys
from rolling_chat.sessions.opening import open_store
print("now", flush=True)
open_store(sys.argv[1])
sys.stdin.read()
"""
    maker = start_python(code, place.address)
    assert maker.stdout is not None
    maker.stdout.readline()
    # at any step of it: making takes some milliseconds
    until = time.perf_counter() + random.Random(seed).uniform(0, 0.01)
    while time.perf_counter() < until:
        pass
    maker.kill()
    maker.communicate()

    store = place.open()
    store.append(new_session(store).id, Message("user", "hi"))
    store.close()
    assert place.faults() == []
