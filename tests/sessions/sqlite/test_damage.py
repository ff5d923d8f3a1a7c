"""A file with broken pages: what is whole opens, what is not is named, and the rest goes on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import StoreDamaged, StoreError
from tests.support.sessions import faults_of, new_session

PAGE = 4096


def filled(database: Path) -> list[str]:
    """Three sessions, one after the other in the file."""
    store = open_store(database)
    sessions = []
    for name in ("one", "two", "three"):
        sessions.append(new_session(store, title=name).id)
        store.append_all(sessions[-1], [Message("user", f"{name} {n} " + "word " * 100) for n in range(60)])
    store.close()
    return sessions


def break_page(database: Path, table: str, number: int) -> None:
    """Overwrite a page of `table` with nonsense."""
    with closing(sqlite3.connect(database)) as connection:
        try:
            rows = connection.execute("SELECT pageno FROM dbstat WHERE name = ?", (table,)).fetchall()
        except sqlite3.OperationalError:
            pytest.skip("this SQLite does not say which page is whose")
    at = (rows[number][0] - 1) * PAGE
    data = bytearray(database.read_bytes())
    data[at : at + PAGE] = b"\xaa" * PAGE
    database.write_bytes(data)


def test_a_session_on_a_broken_page_is_named_and_the_others_open(database: Path) -> None:
    one, two, three = filled(database)
    break_page(database, "message", 4)
    before = database.read_bytes()
    store = open_store(database)
    assert [info.title for info in store.sessions()] == ["three", "two", "one"]
    with pytest.raises(StoreDamaged, match=f"session {one} cannot be read") as caught:
        store.branch(one)
    assert "\n" not in str(caught.value)
    assert str(database) in str(caught.value)
    assert len(store.branch(two)) == len(store.branch(three)) == 60
    assert database.read_bytes() == before
    store.append(three, Message("user", "still here"))
    assert store.branch(three)[-1].text == "still here"
    store.close()


def test_sessions_are_listed_where_their_last_message_cannot_be_read(database: Path) -> None:
    *_, three = filled(database)
    break_page(database, "message", -1)
    store = open_store(database)
    assert [info.title for info in store.sessions()] == ["three", "two", "one"]
    with pytest.raises(StoreDamaged, match=f"session {three} cannot be read"):
        store.branch(three)
    store.close()


def test_a_text_index_that_is_wrong_in_itself_is_made_again(database: Path) -> None:
    one, *_ = filled(database)
    with closing(sqlite3.connect(database)) as connection:
        # its leaves: https://sqlite.org/fts5.html#the_fts5_data_structure
        connection.execute("UPDATE message_text_data SET block = zeroblob(50) WHERE id > 10")
        connection.commit()
    store = open_store(database)
    assert store.search("word")

    def write_on() -> None:
        for number in range(1_000):  # it is noticed when leaves are merged
            store.append(one, Message("user", f"needle {number}"))

    with pytest.raises(StoreError, match="has been made again; try again"):
        write_on()
    found = store.append(one, Message("user", "haystack"))
    assert [hit.message_id for hit in store.search("haystack")] == [found.id]
    assert len(store.search("needle", limit=2_000)) == len(store.branch(one)) - 61
    store.close()
    assert faults_of(database) == []


@pytest.mark.parametrize("table", ["message_text_data", "message_text_idx", "message_text_docsize"])
def test_a_text_index_on_a_broken_page_is_done_without(database: Path, table: str) -> None:
    one, *_ = filled(database)
    break_page(database, table, 0)
    store = open_store(database)
    assert store.search("word")
    with pytest.raises(StoreError, match="kept without it and search is slower; try again"):
        store.append(one, Message("user", "needle"))
    found = store.append(one, Message("user", "needle"))
    assert [hit.message_id for hit in store.search("needle")] == [found.id]
    assert len(store.branch(one)) == 61
    store.close()
    store = open_store(database)
    assert [hit.message_id for hit in store.search("needle")] == [found.id]
    store.close()


def test_the_newest_part_opens_where_an_older_page_is_broken(database: Path) -> None:
    one, *_ = filled(database)
    break_page(database, "message", 2)
    store = open_store(database)
    newest, above, *_ = store.stretch(one, 5)
    assert newest[-1].text.startswith("one 59 ")
    with pytest.raises(StoreDamaged, match=f"session {one} cannot be read"):
        store.stretch(one, 100, above)
    store.close()
