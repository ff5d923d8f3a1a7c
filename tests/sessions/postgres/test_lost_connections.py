"""A network that is slow, cut or gone: one line says so, and nothing is lost or stored twice."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.postgres import database as databases
from rolling_chat.sessions.records import StoreError
from rolling_chat.sessions.store import SessionStore
from tests.support.patience import wait_for
from tests.support.sessions import OFFLINE, new_session
from tests.support.unsteady_network import UnsteadyNetwork


def test_a_cut_connection_is_made_again_unnoticed(store: SessionStore, network: UnsteadyNetwork) -> None:
    session = new_session(store).id
    for n in range(5):
        network.cut()
        store.append(session, Message("user", f"{n}"))
    assert [message.text for message in store.branch(session)] == ["0", "1", "2", "3", "4"]


def test_what_was_stored_without_the_client_knowing_is_not_stored_again(
    store: SessionStore, steady: SessionStore, network: UnsteadyNetwork
) -> None:
    session = new_session(store).id
    network.lose_next_answer()
    asked = store.append(session, Message("user", "once"))
    network.lose_next_answer()
    reply = store.begin_reply(session, OFFLINE)
    for piece in ("a ", "b ", "c"):
        network.lose_next_answer()
        store.grow_reply(reply, piece)
    assert steady.branch(session)[-1].text == "a b c"
    network.lose_next_answer()
    sealed = store.seal_reply(reply, Message("assistant", "a b c"))
    network.lose_next_answer()
    empty = store.begin_reply(session, OFFLINE)
    network.lose_next_answer()
    store.drop_reply(empty)
    network.lose_next_answer()
    store.delete(new_session(store).id)
    assert steady.branch(session) == store.branch(session) == [asked, sealed]


def test_a_database_out_of_reach_is_one_line_and_comes_back(
    store: SessionStore, steady: SessionStore, network: UnsteadyNetwork
) -> None:
    session = new_session(store).id
    kept = store.append(session, Message("user", "kept"))
    network.is_down = True
    network.cut()

    async def on_screen() -> None:
        store.append(session, Message("user", "not stored"))

    for _ in range(2):
        with pytest.raises(StoreError, match="out of reach: nothing that was stored is lost") as caught:
            asyncio.run(on_screen())
        assert "\n" not in str(caught.value)
    network.is_down = False
    again = store.append(session, Message("user", "again"))
    assert steady.branch(session) == [kept, again]


def test_a_loss_is_told_while_others_wait_until_they_are_hurried(
    store: SessionStore, network: UnsteadyNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "_BLINK", 0.0)
    session = new_session(store).id
    assert store.trouble == ""
    network.is_down = True
    network.cut()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(store.append, session, Message("user", "not stored"))
        wait_for(lambda: store.trouble)
        assert "out of reach and is tried again" in store.trouble
        store.hurry()
        with pytest.raises(StoreError, match="out of reach"):
            waiting.result()
    network.is_down = False
    store.append(session, Message("user", "stored"))
    assert store.trouble == ""
    assert [message.text for message in store.branch(session)] == ["stored"]


def test_a_write_waits_for_one_way_there_and_back(store: SessionStore, network: UnsteadyNetwork) -> None:
    session = new_session(store).id
    reply = store.begin_reply(session, OFFLINE)
    before = network.statements
    store.grow_reply(reply, "x" * 50)
    store.seal_reply(reply, Message("assistant", "x" * 50))
    store.append(session, Message("user", "go on"))
    assert network.statements - before == 3


def test_a_copy_takes_a_few_ways_however_long_it_is(store: SessionStore, network: UnsteadyNetwork) -> None:
    here = open_store(None)
    session = new_session(here).id
    here.append_all(session, [Message("user", f"{n}") for n in range(300)])
    copy = here.copy_of(session)
    before = network.statements
    assert len(store.missing(here.ids_in(session))) == 300
    store.adopt(copy)
    assert network.statements - before <= 12
    before = network.statements
    assert store.copy_of(session) == copy
    assert network.statements - before <= 12


def test_a_copy_whose_answer_is_lost_is_there_once(
    store: SessionStore, steady: SessionStore, network: UnsteadyNetwork
) -> None:
    here = open_store(None)
    session = new_session(here).id
    for text in ("a", "b"):
        here.append(session, Message("user", text))
        for _ in range(3):
            network.lose_next_answer()
        store.adopt(here.copy_of(session))
        assert steady.copy_of(session) == here.copy_of(session)


def test_a_session_that_is_followed_has_news_when_something_is_written(
    store: SessionStore, steady: SessionStore
) -> None:
    session = new_session(steady).id
    assert steady.claim(session) is None
    assert store.claim(session) is not None
    wait_for_news(store, session)  # it was never looked at
    while store.has_news(session):  # and once more, since the thread began to listen after that
        pass
    steady.append(session, Message("user", "news"))
    wait_for_news(store, session)
    assert store.branch(session)[0].text == "news"
    steady.release(session)
    wait_for_news(store, session)
    assert store.claim(session) is None


def wait_for_news(store: SessionStore, session: str) -> None:
    wait_for(lambda: store.has_news(session))  # as the screen looks again and again
