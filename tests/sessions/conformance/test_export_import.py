"""A session written as JSON and read into another store."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.agent.importing import import_transcript
from rolling_chat.messages import Ending, Message, ToolCall, picture_part
from rolling_chat.replay import read_transcripts
from rolling_chat.sessions.export import export
from rolling_chat.sessions.store import SessionStore
from tests.support.sessions import OFFLINE, new_session
from tests.support.stores import Place

PICTURE = "data:image/png;base64,iVBORw0KGgo="


def say_all(store: SessionStore, session: str) -> None:
    store.append_all(
        session,
        [
            Message("user", ({"type": "text", "text": "look"}, picture_part(PICTURE))),
            Message("assistant", "", tool_calls=(ToolCall("c1", "read_file", "{}"),), made_by=OFFLINE),
            Message("tool", "text", tool_call_id="c1", name="read_file"),
            Message("assistant", "half", ending=Ending.CANCELLED, extras={"reasoning_content": "hm"}),
        ],
    )


def test_what_was_exported_is_imported_once_and_is_the_same(
    store: SessionStore, place: Place, tmp_path: Path
) -> None:
    session = new_session(store, title="mine").id
    say_all(store, session)
    path = tmp_path / "talk.json"
    path.write_text(export(store.session(session), store.branch(session), "json"))
    (talk,) = read_transcripts(path)

    other = place.open()
    imported = import_transcript(other, talk, "/work", rolling=False)
    said = other.branch(imported.info.id)
    assert [one.to_dict() for one in said] == [one.to_dict() for one in store.branch(session)]
    assert imported.info.title == "mine"
    assert imported.info.id == session
    other.append(session, Message("user", "and it went on"))
    again = import_transcript(other, talk, "/work", rolling=False)
    assert (again.is_new, again.info.id, len(other.sessions())) == (False, session, 1)
    other.close()


def test_an_export_that_was_changed_is_another_session(store: SessionStore, tmp_path: Path) -> None:
    session = new_session(store).id
    say_all(store, session)
    path = tmp_path / "talk.json"
    path.write_text(export(store.session(session), store.branch(session), "json").replace("half", "whole"))
    (talk,) = read_transcripts(path)
    imported = import_transcript(store, talk, "/work", rolling=False)
    assert imported.is_new
    assert imported.info.id != session


def test_the_pictures_of_a_message_come_back_and_live_as_long_as_it(store: SessionStore) -> None:
    session = new_session(store).id
    say_all(store, session)
    fork, branch = store.fork(session).id, store.branch(session)
    assert PICTURE in str(branch[0].content)
    store.delete(session)
    assert store.branch(fork) == branch
