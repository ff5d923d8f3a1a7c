"""A store of an older version with everything in it that a session can have, opened by this one."""

from __future__ import annotations

import gzip
import json
import sqlite3
import uuid
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore
from tests.support.sessions import faults_of, start_python

HERE = Path(__file__).parent
# what the older version itself said of each session: messages by their place on the branch, from 1
SAID: Mapping[str, Mapping[str, Any]] = json.loads((HERE / "version_16.json").read_text())


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The store of a version whose ids were numbers of rows."""
    path = tmp_path / "sessions.db"
    path.write_bytes(gzip.decompress((HERE / "version_16.db.gz").read_bytes()))
    return path


def as_said(store: SessionStore, id: str) -> dict[str, Any]:
    """What this version says of a session, in the words of SAID."""
    info, branch, state, summary = store.session(id), store.branch(id), store.state(id), store.summary(id)
    at = {message.id: place for place, message in enumerate(branch, 1)}
    notes = {key.partition("/"): text for key, text in state.notes.items()}
    return {
        "title": info.title,
        "parent": store.session(info.parent).short if info.parent else "",
        "task_of": store.session(info.task_of).short if info.task_of else "",
        "messages": [[one.role, one.text[:40], one.created_at] for one in branch],
        "pins": [at[pinned] for pinned in state.pins],
        "excluded": [at[left_out] for left_out in state.excluded],
        "notes": {f"{at[noted]}/{number}": text for (noted, _, number), text in notes.items()},
        "plan": state.plan,
        "summary": None if summary is None else [summary.text, at[summary.through], summary.place],
        "left": [[left.begins, left.messages, left.own] for left in store.left_branches(id)],
        "requests": [
            [one.short, at.get(one.head, 0), one.wire_hash, one.usage.input_tokens]
            for one in store.requests(id)
        ],
        "files": [[use.touch.path, at.get(use.message_id, 0)] for use in store.files(id)],
        "kept": [[change.path, at[change.message_id]] for change in store.kept_files.of_branch(info.head)],
    }


def test_every_session_is_as_it_was(old: Path) -> None:
    store = open_store(old)
    assert {info.short for info in store.sessions()} < set(SAID)
    for name, said in SAID.items():
        assert as_said(store, store.session(name).id) == said
    store.close()
    assert faults_of(old) == []


def test_every_request_is_built_again_to_the_byte(old: Path) -> None:
    store = open_store(old)
    records = [record for name in SAID for record in store.requests(store.session(name).id)]
    assert len(records) > 10
    assert all(rebuild_request(store, record).is_same for record in records)
    store.close()


def test_ids_are_global_and_in_the_order_of_time(old: Path) -> None:
    store = open_store(old)
    for name in SAID:
        info = store.session(name)
        branch = store.branch(info.id)
        for made in (info.id, *(message.id for message in branch)):
            assert uuid.UUID(made).version == 7
        times = [uuid.UUID(message.id).int >> 80 for message in branch]
        assert times == [int(message.created_at * 1000) for message in branch]
        assert sorted(branch, key=lambda message: message.id) == branch
    store.close()


def test_names_that_people_know_go_on_to_name_what_they_named(old: Path) -> None:
    store = open_store(old)
    for name, said in SAID.items():
        info = store.session(name[:4].upper())
        assert (info.short, info.on_disk) == (name, name)
        assert store.session(info.id) == store.session(info.id[-8:]) == info
        for short, *_ in said["requests"]:
            assert store.request(short).session_id == info.id
    new = store.create_session(folder="/w", model="m", rolling=False)
    assert new.short == new.id[-8:]
    assert new.on_disk == new.id
    store.close()


def test_what_is_opened_twice_keeps_its_ids(old: Path) -> None:
    store = open_store(old)
    before = [store.branch(info.id) for info in store.sessions()]
    store.close()
    store = open_store(old)
    assert [store.branch(info.id) for info in store.sessions()] == before
    store.close()


_MIGRATION = """
import sys
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.sqlite import migrations

make, made = migrations.id_of_time, 0

def make_until_it_hangs(*at):
    global made
    made += 1
    if made == int(sys.argv[2]):
        print("hangs", flush=True)
        sys.stdin.read()
    return make(*at)

migrations.id_of_time = make_until_it_hangs
open_store(sys.argv[1])
"""


@pytest.mark.parametrize("made", [1, 4, 20, 45])
def test_a_migration_that_is_killed_leaves_what_was_there(old: Path, made: int) -> None:
    process = start_python(_MIGRATION, str(old), str(made))
    assert process.stdout is not None
    assert process.stdout.readline() == "hangs\n"
    process.kill()
    process.communicate()
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (16,)
    store = open_store(old)
    for name, said in SAID.items():
        assert as_said(store, store.session(name).id) == said
    store.append(store.sessions()[0].id, Message("user", "go on"))
    store.close()
    assert faults_of(old) == []
