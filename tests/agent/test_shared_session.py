"""A chat in a session that somebody else shares by a database: read, and gone on with in a fork."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rolling_chat.agent import Chat, ChatError, Runtime
from tests.support.agent import MODEL, Script, ScriptedProvider, collect, make_runtime, says
from tests.support.postgres import new_team, shared_server

Opened = Callable[..., tuple[Chat, Runtime]]


@pytest.fixture
def open_as(tmp_path: Path) -> Iterator[Opened]:
    """Opens a chat of a member of a team, in a home of their own."""
    server, runtimes = shared_server(), list[Runtime]()
    team = new_team(server, "ada", "bob")

    def open_chat(login: str, *scripts: Script) -> tuple[Chat, Runtime]:
        home = tmp_path / login
        home.mkdir()
        runtimes.append(make_runtime(home, ScriptedProvider(*scripts), database=server.url(team, login)))
        return Chat.open(runtimes[-1]), runtimes[-1]

    yield open_chat
    for runtime in runtimes:
        runtime.store.close()


async def test_a_fork_of_what_is_shared_for_reading_is_gone_on_with(open_as: Opened) -> None:
    theirs, ada = open_as("ada", says("her answer"))
    await collect(theirs.send("her question"))
    session = theirs.session.info.id
    theirs.session.share("bob", may_write=False)
    theirs.close()
    ada.store.update_session(session, api_base="http://hers.example")
    before = ada.store.copy_of(session)

    chat, bob = open_as("bob", says("my answer"))
    chat.resume(session)
    assert chat.session.holder == "ada's, and shared with you for reading only"
    with pytest.raises(ChatError, match=r"ada's, and shared with you for reading only\. /fork makes a copy"):
        await collect(chat.send("may I?"))
    chat.fork()
    with pytest.raises(ChatError, match=r"Not sent: this session does not know the address .* somebody else"):
        await collect(chat.send("my question"))  # with my key
    chat.session.set_model(MODEL, "default")
    await collect(chat.send("my question"))
    said = [message.text for message in bob.store.branch(chat.session.info.id)]
    assert said == ["her question", "her answer", "my question", "my answer"]
    assert chat.session.info.title == "her question"
    chat.close()
    assert ada.store.copy_of(session) == before
    assert [info.id for info in ada.store.sessions()] == [session]
