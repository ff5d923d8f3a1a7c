"""The file: never overwritten, never half-made, readable by its owner alone."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import Learned, StoreError
from rolling_chat.sessions.sqlite.database import Database
from rolling_chat.sessions.sqlite.migrations import VERSION
from tests.support.empty_stores import make_stores_anew
from tests.support.sessions import faults_of, new_session, old_store, start_writer

JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def _made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    make_stores_anew(monkeypatch)


def filled(database: Path) -> str:
    """A database with one session in it."""
    store = open_store(database)
    session = new_session(store)
    store.append_all(session.id, [Message("user", f"message {n} " * 20) for n in range(200)])
    store.close()
    return session.id


def test_the_file_and_its_folder_are_the_owners_alone(database: Path) -> None:
    old_mask = os.umask(0)
    try:
        store = open_store(database)
        new_session(store)
    finally:
        os.umask(old_mask)
    assert stat.S_IMODE(database.parent.stat().st_mode) == 0o700
    for path in database.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    store.close()


@pytest.mark.parametrize(
    "content",
    [JPEG, b"hello\n", b"SQLite format 3\x00", b"\x00" * 4096, b"SQLite format 3\x00" + b"\x00" * 4080],
    ids=["picture", "text", "torn header", "zeros", "bare header"],
)
def test_a_foreign_file_is_refused_and_left_alone(database: Path, content: bytes) -> None:
    database.parent.mkdir()
    database.write_bytes(content)
    with pytest.raises(StoreError, match="not one of rolling-chat's") as caught:
        open_store(database)
    assert str(database) in str(caught.value)
    assert database.read_bytes() == content
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_another_programs_database_is_refused_and_left_alone(database: Path) -> None:
    database.parent.mkdir()
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE session (id TEXT)")
    connection.commit()
    connection.close()
    before = database.read_bytes()
    with pytest.raises(StoreError, match="not one of rolling-chat's"):
        open_store(database)
    assert database.read_bytes() == before


def test_an_empty_file_becomes_a_store(database: Path) -> None:
    database.parent.mkdir()
    database.touch()
    assert filled(database)
    assert faults_of(database) == []


def test_a_damaged_store_is_refused_and_left_alone(database: Path) -> None:
    filled(database)
    damaged = database.read_bytes()[:100] + JPEG
    database.write_bytes(damaged)
    with pytest.raises(StoreError, match="is damaged and was left as it is"):
        open_store(database)
    assert database.read_bytes() == damaged


def test_damage_further_in_is_one_line_when_it_is_met(database: Path) -> None:
    session = filled(database)
    data = bytearray(database.read_bytes())
    data[4096 * 8 :] = b"\xaa" * (len(data) - 4096 * 8)
    database.write_bytes(data)
    with pytest.raises(StoreError, match="is damaged") as caught:
        open_store(database).branch(session)
    assert "\n" not in str(caught.value)
    assert database.read_bytes() == data


@pytest.mark.parametrize("version", range(1, VERSION))
def test_an_older_store_is_brought_up_to_date_with_all_that_is_in_it(database: Path, version: int) -> None:
    database.parent.mkdir(parents=True, exist_ok=True)
    old_store(database, version)
    store = open_store(database)
    assert store.session("abc").title == "old"
    store.append(store.session("abcdef0123").id, Message("user", "new"))
    store.models.keep_learned("m", "", Learned(4_096))
    store.close()
    assert faults_of(database) == []


@pytest.mark.parametrize("place", ["folder", "under a file", "pipe", "no such device"])
def test_a_place_that_cannot_hold_a_store_is_one_line(tmp_path: Path, place: str) -> None:
    path = tmp_path / "x"
    match place:
        case "folder":
            path.mkdir()
        case "under a file":
            path.write_text("here")
            path = path / "sessions.db"
        case "pipe":
            os.mkfifo(path)
        case _:
            path = Path("/proc/nothing/sessions.db")
    with pytest.raises(StoreError, match=r"^the session store .*") as caught:
        open_store(path)
    assert "\n" not in str(caught.value)


def test_an_odd_name_is_a_name_like_any_other(tmp_path: Path) -> None:
    for name in (":memory:", "file:x?mode=memory", "a'b %20 ü.db"):
        path = tmp_path / name
        filled(path)
        assert path.stat().st_size > 0


def test_a_full_disk_is_one_line_and_loses_nothing_that_was_acknowledged(database: Path) -> None:
    store = open_store(database)
    session = new_session(store)
    kept = store.append(session.id, Message("user", "kept"))
    with store._database.read() as connection:
        connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(StoreError, match="the disk is full"):
        store.append(session.id, Message("tool", "x" * 1_000_000))
    assert store.branch(session.id) == [kept]
    with store._database.read() as connection:
        connection.execute("PRAGMA max_page_count = 1000000")
    store.append(session.id, Message("user", "room again"))
    store.close()
    assert faults_of(database) == []


def test_a_read_only_store_can_be_read_and_says_that_it_cannot_be_written(database: Path) -> None:
    store = open_store(database)
    session = new_session(store)
    kept = store.append(session.id, Message("user", "kept"))
    with store._database.read() as connection:
        connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="is read-only"):
        store.append(session.id, Message("user", "more"))
    assert store.branch(session.id) == [kept]
    store.close()


def test_an_error_in_mid_transaction_leaves_no_part_of_it(database: Path) -> None:
    data = Database.open(database)
    columns = "id, title, title_given, folder, model, rolling, parent, created_at, updated_at"

    def fail_half_way() -> None:
        with data.write() as connection:
            connection.execute(f"INSERT INTO session ({columns}) VALUES ('a', '', 0, '', '', 0, '', 0, 0)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    with data.read() as connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone()[0] == 0
    data.close()


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
