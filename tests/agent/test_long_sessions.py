"""A session longer than what is read when it is opened."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from rolling_chat.agent import Chat, ChatError, Runtime, conversation
from rolling_chat.context import Fate
from rolling_chat.context.pieces import Sizes
from rolling_chat.events import Outcome, PromptPlanned, TurnEnded, TurnStarted
from rolling_chat.messages import _CONTENT, Message, ToolCall
from rolling_chat.packing import Packed
from rolling_chat.sessions.export import FORMATS, export
from rolling_chat.sessions.records import StoreDamaged, Stretch
from rolling_chat.sessions.store import SessionStore
from tests.support.agent import Opened, assert_well_formed, call, calls, collect, says

LONG = 60  # messages


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "_FIRST", 5)
    monkeypatch.setattr(conversation, "_SLICE", 4)


@pytest.fixture
def long(opened: Opened) -> tuple[Chat, Runtime]:
    """A chat that has just been opened on a session of LONG messages."""
    chat, runtime, _ = opened(*[says("fine")] * 3)
    listing = ToolCall("c", "list_files", "{}")
    for turn in range(LONG // 4):
        runtime.store.append(chat.info.id, Message("user", f"question {turn}"))
        runtime.store.append(chat.info.id, Message("assistant", "", tool_calls=(listing,)))
        runtime.store.append(chat.info.id, Message("tool", "none", tool_call_id="c", name="list_files"))
        runtime.store.append(chat.info.id, Message("assistant", f"answer {turn}"))
    return Chat.open(runtime, session=runtime.store.session(chat.info.id)), runtime


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


async def test_it_opens_with_its_newest_messages_and_reads_the_rest_when_asked(
    long: tuple[Chat, Runtime],
) -> None:
    chat, runtime = long
    assert 0 < len(chat.recent) < 10
    assert not chat.is_whole
    older: list[Message] = []
    chat.on_older = lambda part: older.__setitem__(slice(0, 0), part)
    newest = list(chat.recent)
    await chat.ready()
    assert chat.is_whole
    assert [*older, *newest] == list(chat.messages) == runtime.store.branch(chat.info.id)


def test_whoever_asks_for_the_branch_gets_all_of_it(long: tuple[Chat, Runtime]) -> None:
    chat, runtime = long
    assert list(chat.messages) == runtime.store.branch(chat.info.id)
    assert [said.number for said in chat.turns()] == list(range(1, LONG // 4 + 1))


async def test_a_turn_waits_for_the_whole_branch(long: tuple[Chat, Runtime]) -> None:
    chat, runtime = long
    events = await collect(chat.send("and now?"))
    assert isinstance(events[0], TurnStarted)
    assert texts(runtime.provider.requests[-1].messages)[1:3] == ["question 0", ""]  # type: ignore[attr-defined]
    assert len(chat.messages) == LONG + 2
    assert_well_formed(chat, runtime)


async def test_a_turn_that_waits_for_the_report_can_be_stopped(
    long: tuple[Chat, Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, runtime = long
    go, planner = threading.Event(), chat._session.planner
    look = planner.look
    monkeypatch.setattr(planner, "look", lambda messages: (go.wait(30), look(messages))[1])
    await chat.ready()
    warming = asyncio.create_task(chat.warm_report())
    await asyncio.sleep(0)
    events = []
    async for event in chat.send("and now?"):
        events.append(event)
        if isinstance(event, TurnStarted):
            chat.stop()
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].outcome is Outcome.CANCELLED
    assert not runtime.provider.requests  # type: ignore[attr-defined]
    go.set()
    await warming
    assert texts(chat.messages)[-1] == "and now?"
    assert chat.report().rows[-1].id == chat.messages[-1].id


async def test_the_report_that_was_made_meanwhile_is_the_one_that_is_shown(
    long: tuple[Chat, Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, runtime = long
    await chat.warm_report()
    made = chat.report()
    assert len(made.rows) == LONG + 1
    # and what was counted for it is counted for good
    assert all(message.counts for message in runtime.store.branch(chat.info.id))
    monkeypatch.setattr(chat._session.planner, "look", lambda _: pytest.fail("made again"))
    assert chat.report() is made


@pytest.mark.parametrize("most", [0, 300])
async def test_with_rolling_off_only_what_is_new_is_looked_at_also_where_nothing_fits_any_longer(
    long: tuple[Chat, Runtime], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    chat, _ = long
    chat.set_context("max_context_tokens", str(most))
    await chat.warm_report()
    shaped, shape = [], Sizes.shape
    monkeypatch.setattr(Sizes, "shape", lambda *given: (shaped.append(given[1].index), shape(*given))[1])
    for _turn in range(3):
        await collect(chat.send("and now?"))
        chat.report()
    assert min(at for at in shaped if at >= 0) > LONG
    assert chat.report().within_budget == (not most)
    assert chat.report() == chat._session.planner.preview(chat.messages)


@pytest.mark.parametrize("most", [0, 4_000])
async def test_with_rolling_on_a_reopened_session_is_looked_at_once_before_its_first_request(
    long: tuple[Chat, Runtime], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    chat, runtime = long
    settings = replace(runtime.settings, context=replace(runtime.settings.context, max_context_tokens=most))
    runtime = replace(runtime, settings=settings)
    await collect(Chat.open(runtime, session=chat.info, rolling=True).send("and now?"))
    again = Chat.open(runtime, session=runtime.store.session(chat.info.id))
    await again.warm_report()
    foreseen = again.report_with("and then?")
    assert any(row.fate is Fate.OMITTED for row in again.report().rows) == bool(most)
    shaped, shape = [], Sizes.shape
    monkeypatch.setattr(Sizes, "shape", lambda *given: (shaped.append(given[1].index), shape(*given))[1])
    events = await collect(again.send("and then?"))
    assert min(at for at in shaped if at >= 0) > LONG
    (planned,) = [event.report for event in events if isinstance(event, PromptPlanned)]
    assert planned == foreseen


async def test_what_is_read_after_the_session_was_left_is_not_shown_in_the_next(
    long: tuple[Chat, Runtime],
) -> None:
    chat, _ = long
    left, older = chat._session.conversation, []
    chat.on_older = older.append
    chat.start_new()
    await left.read_rest()
    assert left.is_whole
    assert older == []


@pytest.fixture
def second(long: tuple[Chat, Runtime]) -> Callable[[], Chat]:
    """Another process that looks at the same session."""
    chat, runtime = long

    def follow() -> Chat:
        other = replace(runtime, store=SessionStore.open(runtime.paths.database))
        return Chat.open(other, session=other.store.session(chat.info.id))

    return follow


async def test_a_follower_reads_no_more_than_what_is_new(
    long: tuple[Chat, Runtime], second: Callable[[], Chat]
) -> None:
    chat, runtime = long
    follower = second()
    assert follower.holder
    runtime.store.append(chat.info.id, Message("user", "from over there"))
    assert follower.refresh()
    assert not follower.is_whole
    assert texts(follower.recent)[-2:] == ["answer 14", "from over there"]
    assert not follower.refresh()
    await follower.ready()
    assert list(follower.messages) == runtime.store.branch(chat.info.id)
    runtime.store.append(chat.info.id, Message("assistant", "and an answer"))
    assert follower.refresh()
    assert follower.is_whole
    assert list(follower.messages) == runtime.store.branch(chat.info.id)


@pytest.mark.parametrize("read_before", [False, True])
@pytest.mark.parametrize("back_to", [0, 1, 20, 58])
async def test_a_follower_goes_along_where_the_other_goes_back(
    long: tuple[Chat, Runtime], second: Callable[[], Chat], read_before: bool, back_to: int
) -> None:
    chat, runtime = long
    follower = second()
    if read_before:
        await follower.ready()
    branch = runtime.store.branch(chat.info.id)
    head = branch[back_to - 1].id if back_to else ""
    runtime.store.move_head(chat.info.id, head, chat.model)
    assert follower.refresh()
    assert list(follower.messages) == branch[:back_to]
    runtime.store.append(chat.info.id, Message("user", "another way"))
    assert follower.refresh()
    assert list(follower.messages) == runtime.store.branch(chat.info.id)


async def test_a_part_that_cannot_be_read_fails_the_turn_in_words_and_the_chat_can_be_left(
    long: tuple[Chat, Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, runtime = long
    read, broken = runtime.store.stretch, chat.info.id

    def damaged(session: str, most: int, head: str | None = None) -> Stretch:
        if head is not None:
            raise StoreDamaged(f"session {session} cannot be read")
        return read(session, most, head)

    monkeypatch.setattr(runtime.store, "stretch", damaged)
    line = f"session {broken} cannot be read"
    with pytest.raises(ChatError, match=line):
        await chat.warm_report()
    with pytest.raises(ChatError, match=line):
        _ = chat.messages
    ended = (await collect(chat.send("still there?")))[-1]
    assert isinstance(ended, TurnEnded)
    assert (ended.outcome, ended.error) == (Outcome.FAILED, line)
    assert texts(chat.recent)[-1] == "still there?"
    chat.start_new()
    assert (await collect(chat.send("hello")))[-1].outcome is Outcome.DONE


def is_packed(message: Message) -> bool:
    return isinstance(_CONTENT.held(message), Packed)


RECALLS = [call("recall", '{"search": "needle7"}'), call("recall", '{"id": "r7"}')]


@pytest.fixture
def wordy(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> tuple[Chat, Chat, Runtime]:
    """Two chats on the same long texts: one is to be read as the screen does, the other was at once."""
    monkeypatch.setattr(conversation, "_PLAIN", 10)
    chat, runtime, _ = opened(*[*map(calls, RECALLS), says("fine")] * 2, *[says("fine")] * 10)
    listing = ToolCall("c", "list_files", "{}")
    for turn in range(LONG // 4):
        said = f"turn {turn} has a needle{turn} and \ud83d 🙂 " * 20
        runtime.store.append(chat.info.id, Message("user", f"question {said}"))
        runtime.store.append(chat.info.id, Message("assistant", "", tool_calls=(listing,)))
        runtime.store.append(
            chat.info.id, Message("tool", f"a.py {said}", tool_call_id="c", name="list_files")
        )
        runtime.store.append(chat.info.id, Message("assistant", f"answer {said}"))
    sessions = runtime.store.session(chat.info.id), runtime.store.fork(chat.info.id)
    packed, plain = (Chat.open(runtime, session=session) for session in sessions)
    assert len(plain.messages) == LONG
    return packed, plain, runtime


@pytest.mark.parametrize("window", ["0", "16000"])
async def test_what_is_packed_is_planned_exported_and_recalled_as_what_is_not(
    wordy: tuple[Chat, Chat, Runtime], window: str
) -> None:
    packed, plain, runtime = wordy
    await packed.warm_report()
    for chat in (packed, plain):
        chat.set_rolling(True)
        chat.set_context("max_context_tokens", window)
        chat.set_context("summarize", "off")  # in the background, and so among the requests anywhere
    assert sum(map(is_packed, packed.messages)) > LONG // 2
    assert not any(map(is_packed, plain.messages))
    assert list(packed.messages) == list(plain.messages)
    assert packed.report() == plain.report()
    for kind in FORMATS:
        assert export(plain.info, packed.messages, kind) == export(plain.info, plain.messages, kind)
    for chat in (packed, plain):
        await collect(chat.send("and now?"))
    sent = [request.messages for request in runtime.provider.requests]  # type: ignore[attr-defined]
    half = len(RECALLS) + 1
    assert "needle7" in sent[1][-1].text
    assert "needle1" in sent[2][-1].text
    assert [texts(prompt) for prompt in sent[:half]] == [texts(prompt) for prompt in sent[half:]]


async def test_what_a_session_that_grows_leaves_behind_is_packed(wordy: tuple[Chat, Chat, Runtime]) -> None:
    _, chat, runtime = wordy
    for _ in range(12):
        await collect(chat.send("and " * 40))
    assert all(is_packed(message) for message in chat.messages[:-14] if len(message.text) >= 100)
    assert not any(map(is_packed, chat.messages[-10:]))
    assert list(chat.messages) == runtime.store.branch(chat.info.id)
