"""Two people at two machines write one session: in order, and nothing is lost or stored twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.messages import Ending
from tests.support.patience import PATIENCE_SECONDS
from tests.support.program import program_environment
from tests.support.sessions import new_session, start_python
from tests.support.stores import PostgresPlace

TURNS = 10

# opens the session again and again until nobody else has it open, and says the next thing
_PERSON = """
import asyncio, sys
from rolling_chat import ChatError, open_chat

name, session, turns = sys.argv[1], sys.argv[2], int(sys.argv[3])

async def main():
    said = 0
    while said < turns:
        async with open_chat(model="demo/offline", resume=session) as chat:
            try:
                answer = await chat.ask(f"{name} says {said}.")
            except ChatError as error:
                assert "open in another terminal" in str(error), error
                continue
            assert answer.ok, answer.error
        said += 1

asyncio.run(main())
"""


@pytest.mark.slow
def test_two_homes_in_two_processes_write_one_session_in_turn(tmp_path: Path) -> None:
    place = PostgresPlace(tmp_path)
    store = place.open()
    session = new_session(store, folder=str(tmp_path)).id
    names = ("ada", "bob")
    people = []
    for name in names:
        environ = program_environment(tmp_path / name, ROLLING_CHAT_SESSIONS_STORE=place.address)
        people.append(start_python(_PERSON, name, session, str(TURNS), environ=environ))
    for person in people:
        _, errors = person.communicate(timeout=PATIENCE_SECONDS)
        assert person.returncode == 0, errors
    messages = store.branch(session)
    assert [message.role for message in messages] == ["user", "assistant"] * (len(names) * TURNS)
    assert all(message.ending is Ending.COMPLETE for message in messages)
    said = [message.text for message in messages[::2]]
    for name in names:
        assert [text for text in said if text.startswith(name)] == [f"{name} says {n}." for n in range(TURNS)]
    assert store.left_branches(session) == []
    store.close()
    assert place.faults() == []
