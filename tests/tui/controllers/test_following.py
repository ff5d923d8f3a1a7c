"""A long session on the screen: its end first, what is above it later."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from rolling_chat.agent import Chat, conversation
from rolling_chat.agent.request import planner as planning
from rolling_chat.agent.request.forecast import Forecast, Preview
from rolling_chat.context import branch_parts
from rolling_chat.messages import Message, pack_contents
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import StoreDamaged, Stretch
from rolling_chat.sessions.sqlite.store import SqliteStore
from rolling_chat.sessions.store import SessionStore
from rolling_chat.tui.screens import chat_screen
from rolling_chat.tui.widgets import transcript as transcripts
from rolling_chat.tui.widgets.find import FindBar
from rolling_chat.tui.widgets.transcript import Transcript
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tui import (
    draft,
    idle,
    make_app,
    make_chat,
    reads,
    says,
    screen_of,
    shown,
    tells,
    transcript,
    type_line,
    wait_until,
)

LONG = 90  # messages
SAID = [f"{what} {turn}." for turn in range(LONG // 2) for what in ("question", "answer")]


def items(pilot: Pilot[None]) -> list[str]:
    """What the transcript has, from the top."""
    return [item.text for item in screen_of(pilot).state.items]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Holds back every part of a session but the newest until it is set."""
    monkeypatch.setattr(conversation, "_FIRST", 30)
    monkeypatch.setattr(conversation, "_SLICE", 20)
    read, opened = SqliteStore.stretch, threading.Event()

    def slow(store: SessionStore, session: str, most: int, head: str | None = None) -> Stretch:
        assert head is None or opened.wait(PATIENCE_SECONDS)
        return read(store, session, most, head)

    monkeypatch.setattr(SqliteStore, "stretch", slow)
    return opened


def long_chat(home: Path, more: str = "") -> Chat:
    chat = make_chat(home, says("fine"))
    for turn in range(LONG // 2):
        chat._runtime.store.append(chat.session.info.id, Message("user", f"question {turn}.{more}"))
        chat._runtime.store.append(chat.session.info.id, Message("assistant", f"answer {turn}.{more}"))
    session = chat._runtime.store.session(chat.session.info.id)
    return Chat.open(chat._runtime, session=session)


async def test_the_end_is_shown_and_keys_are_taken_before_the_rest_is_read(
    tmp_path: Path, gate: threading.Event
) -> None:
    chat = long_chat(tmp_path)
    async with make_app(chat, tmp_path).run_test() as pilot:
        await reads(pilot, "answer 44.")
        assert "question 20." not in items(pilot)
        await pilot.press(*"typed")
        assert draft(pilot) == "typed"
        assert not chat.session.conversation.is_whole
        gate.set()
        await reads(pilot, "rolling: off")  # the gauge has its report
        await reads(pilot, "answer 44.")
        assert items(pilot) == SAID


async def test_what_is_sent_or_asked_for_meanwhile_waits_for_the_rest(
    tmp_path: Path, gate: threading.Event
) -> None:
    chat = long_chat(tmp_path)
    async with make_app(chat, tmp_path).run_test() as pilot:
        await reads(pilot, "answer 44.")
        await type_line(pilot, "one more")
        await reads(pilot, "one more")
        assert screen_of(pilot).state.busy
        gate.set()
        await idle(pilot)
        assert chat.session.messages[-1].text == "fine"
        assert len(chat.session.preview.report().rows) == LONG + 3
        assert items(pilot) == [*SAID, "one more", "fine"]


async def test_a_part_that_cannot_be_read_is_a_line_and_the_session_can_be_left(
    tmp_path: Path, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.set()
    chat, read = long_chat(tmp_path), SqliteStore.stretch

    def damaged(store: SessionStore, session: str, most: int, head: str | None = None) -> Stretch:
        if head is not None:
            raise StoreDamaged("a part of it cannot be read")
        return read(store, session, most, head)

    monkeypatch.setattr(SqliteStore, "stretch", damaged)
    async with make_app(chat, tmp_path).run_test() as pilot:
        await reads(pilot, "a part of it cannot be read")
        assert "answer 44." in items(pilot)
        await type_line(pilot, "/new")
        await wait_until(pilot, lambda: not chat.session.conversation.recent)
        await type_line(pilot, "hello")
        await idle(pilot)
        await tells(pilot, "fine")


async def test_keys_are_taken_while_the_report_of_another_branch_is_made(
    tmp_path: Path, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.set()
    monkeypatch.setattr(planning, "_MAX_QUICK", 10)
    chat, preview, made = long_chat(tmp_path), Forecast.preview, threading.Event()

    def slow(forecast: Forecast, branch: Sequence[Message]) -> Preview:
        assert threading.current_thread() is not threading.main_thread()
        assert made.wait(PATIENCE_SECONDS)
        return preview(forecast, branch)

    async with make_app(chat, tmp_path).run_test() as pilot:
        await reads(pilot, "rolling: off")
        monkeypatch.setattr(Forecast, "preview", slow)
        await type_line(pilot, "/undo")
        await reads(pilot, "question 44.", "/redo")
        await pilot.press("ctrl+c", *"typed")
        assert draft(pilot) == "typed"
        await reads(pilot, "rolling: off")  # the figures of before
        assert not chat.session.preview.is_ready
        made.set()
        await wait_until(pilot, lambda: chat.session.preview.is_ready)
        assert len(chat.session.preview.report().rows) == LONG - 2 + 1
        await reads(pilot, "rolling: off")


def in_sight(pilot: Pilot[None]) -> str:
    """The rows of the transcript that are on the screen."""
    return "\n".join(row.line.drawn.rstrip() for row in screen_of(pilot).transcript.viewport.rows)


async def test_a_session_that_cannot_be_followed_for_a_while_is_one_line_and_is_followed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_screen, "_FOLLOW_EVERY", 0.02)
    database, read, fails = tmp_path / "sessions.db", SqliteStore.stretch, [True]
    owner = make_chat(tmp_path, store=open_store(database))
    runtime = replace(owner._runtime, store=open_store(database))
    chat, looked = Chat.open(runtime, session=runtime.store.session(owner.session.info.id)), []

    def stretch(store: SessionStore, session: str, most: int, head: str | None = None) -> Stretch:
        if store is runtime.store and fails[0]:
            looked.append(session)
            raise StoreDamaged("it cannot be read just now")
        return read(store, session, most, head)

    monkeypatch.setattr(SqliteStore, "stretch", stretch)
    async with make_app(chat, tmp_path).run_test() as pilot:
        assert chat.session.holder
        owner._runtime.store.append(owner.session.info.id, Message("user", "from over there"))
        await reads(pilot, "it cannot be read just now")
        seen = len(looked)
        await wait_until(pilot, lambda: len(looked) > seen + 2)
        assert sum("just now" in text for text in items(pilot)) == 1
        fails[0] = False
        await wait_until(pilot, lambda: "from over there" in items(pilot))


async def walk_through(home: Path) -> list[str]:
    """All that is seen of a long session from its top to its end, of a search in it, and after a resize."""
    chat = long_chat(home, f" {'🙂 and *so* on' * 20}\n\n- one\n- two")
    async with make_app(chat, home).run_test(size=(80, 24)) as pilot:
        await wait_until(pilot, lambda: chat.session.preview.is_ready and "rolling: off" in shown(pilot))
        await pilot.press("ctrl+home")
        await wait_until(pilot, lambda: "question 0." in in_sight(pilot))
        seen = [in_sight(pilot)]
        while "answer 44." not in seen[-1]:
            await pilot.press("pagedown")
            await wait_until(pilot, lambda: in_sight(pilot) != seen[-1])
            seen.append(in_sight(pilot))
        assert len(seen) > 10
        await pilot.press("ctrl+f", *"question 7.")
        await reads(pilot, "1 of 1")
        await wait_until(pilot, lambda: "question 7." in in_sight(pilot))
        seen.append(in_sight(pilot))
        await pilot.resize_terminal(50, 20)
        await wait_until(pilot, lambda: in_sight(pilot) != seen[-1])
        return [*seen, transcript(pilot), *items(pilot)]


@pytest.mark.slow
async def test_what_is_packed_is_shown_and_found_as_what_is_not(
    tmp_path: Path, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.set()
    plain = await walk_through(tmp_path / "plain")
    monkeypatch.setattr(conversation, "_PLAIN", 10)
    packed: list[Message] = []
    monkeypatch.setattr(
        conversation, "pack_contents", lambda part: (packed.extend(part), pack_contents(part))
    )
    assert await walk_through(tmp_path / "packed") == plain
    assert len(packed) == LONG - 30


async def test_of_a_long_session_what_stands_above_is_read_when_the_reader_comes_near(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "_FIRST", 30)
    monkeypatch.setattr(conversation, "_SLICE", 20)
    monkeypatch.setattr(conversation, "_SOON", 10)
    monkeypatch.setattr(transcripts, "_NEAR_TOP", 4)
    chat = long_chat(tmp_path)
    async with make_app(chat, tmp_path).run_test() as pilot:
        await reads(pilot, "answer 44.")
        screen_of(pilot).transcript.move_lines(-1_000)
        await wait_until(pilot, lambda: len(items(pilot)) > 40)
        assert items(pilot) == SAID[-len(items(pilot)) :]
        screen_of(pilot).transcript.scroll_to_start()
        await reads(pilot, "question 0.")
        assert items(pilot) == SAID


async def test_fates_are_not_drawn_for_every_part_of_a_session_that_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "_FIRST", 10)
    monkeypatch.setattr(conversation, "_SLICE", 4)
    monkeypatch.setattr(conversation, "_SOON", 10)
    drawn: list[Transcript] = []
    show = Transcript.show_fates
    monkeypatch.setattr(Transcript, "show_fates", lambda view, fates: (drawn.append(view), show(view, fates)))
    monkeypatch.setattr(branch_parts, "MIN_SKIPPED", 0)
    monkeypatch.setattr(planning, "_MAX_QUICK", 5)
    chat = long_chat(tmp_path, " word" * 200)
    runtime, session = chat._runtime, chat.session.info.id
    context = replace(runtime.settings.context, max_context_tokens=8_000)
    runtime.settings = replace(runtime.settings, context=context)
    runtime.store.update_session(session, rolling=True)
    chat = Chat.open(runtime, session=runtime.store.session(session))
    async with make_app(chat, tmp_path).run_test() as pilot:
        await reads(pilot, "answer 44.")
        await wait_until(pilot, lambda: bool(drawn))
        await idle(pilot)
        assert not chat.session.conversation.is_whole
        before = len(drawn)
        screen_of(pilot).finding.open()
        await wait_until(pilot, lambda: chat.session.conversation.is_whole and len(drawn) > before)
        await idle(pilot)
        assert [item.split(" word")[0] for item in items(pilot)[:LONG]] == SAID
        assert len(drawn) <= before + 3  # of some twenty parts


def test_what_the_find_bar_says_already_lays_out_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    state = Static("3 of 4")
    monkeypatch.setattr(state, "update", said.append)
    bar = FindBar()
    monkeypatch.setattr(bar, "query_one", lambda *_: state)
    bar.say("3 of 4")
    bar.say("4 of 4")
    assert said == ["4 of 4"]
