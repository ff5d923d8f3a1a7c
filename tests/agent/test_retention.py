"""Old sessions go only when that was asked for, and never one that somebody needs."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.agent import Chat
from rolling_chat.agent.retention import delete_old_sessions
from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.schema import SessionsSettings, Settings
from tests.support.agent import ScriptedProvider, make_runtime, says
from tests.support.sessions import new_session

DAY = 24 * 60 * 60
NO_FILES = Path("/no-such-folder")


class Days:
    """A clock of whole days."""

    day = 0

    def __call__(self) -> float:
        return 1_000_000.0 + self.day * DAY


def aged(path: Path | None, clock: Days, *days: int) -> tuple[SessionStore, list[str]]:
    """A store with a session last written to on each of `days`."""
    store, sessions = open_store(path, clock=clock), []
    for day in days:
        clock.day = day
        sessions.append(new_session(store).id)
        store.append(sessions[-1], Message("user", f"on day {day}"))
    return store, sessions


def test_off_deletes_nothing() -> None:
    clock = Days()
    store, sessions = aged(None, clock, 0)
    assert delete_old_sessions(store, 0, clock() + 10_000 * DAY, NO_FILES) == ""
    assert [info.id for info in store.sessions()] == sessions


def test_what_is_older_goes_and_one_line_says_so() -> None:
    clock = Days()
    store, (_, _, young) = aged(None, clock, 0, 5, 40)
    line = delete_old_sessions(store, 30, clock(), NO_FILES)
    assert line == "Deleted 2 sessions that had not been used for 30 days (sessions.keep_days = 30)."
    assert [info.id for info in store.sessions()] == [young]
    assert delete_old_sessions(store, 30, clock(), NO_FILES) == ""
    assert delete_old_sessions(store, 1_000_000_000, clock(), NO_FILES) == ""


def test_pinned_open_and_wanted_sessions_are_spared(tmp_path: Path) -> None:
    clock = Days()
    store, (pinned, held, wanted, gone) = aged(tmp_path / "s.db", clock, 0, 0, 0, 0)
    store.update_session(pinned, pins=["m1"])
    other = open_store(tmp_path / "s.db", clock=clock)
    other.claim(held)
    line = delete_old_sessions(store, 1, clock() + 2 * DAY, NO_FILES, spare=wanted)
    assert line.startswith("Deleted 1 session ")
    assert {info.id for info in store.sessions()} == {pinned, held, wanted}
    assert gone not in {info.id for info in store.sessions()}
    other.close()
    store.close()


def test_a_chat_says_what_its_start_has_deleted(tmp_path: Path) -> None:
    settings = Settings(sessions=SessionsSettings(keep_days=7))
    runtime = make_runtime(tmp_path, ScriptedProvider(says("ok")), settings=settings)
    old = new_session(runtime.store).id
    runtime.store.append(old, Message("user", "long ago"))
    now = runtime.clock()
    runtime.clock = lambda: now + 8 * DAY
    chat = Chat.open(runtime)
    assert any("Deleted 1 session " in notice for notice in chat.session.notices)
    assert chat.saved.all() == []
    runtime.store.close()
