"""A session longer than what is read when it is opened."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from rolling_chat.agent import Chat, ChatError, Runtime, conversation
from rolling_chat.context import Fate
from rolling_chat.context.prompt_items import Sizes
from rolling_chat.events import Outcome, PromptPlanned, TurnEnded, TurnStarted
from rolling_chat.messages import _CONTENT, Message, ToolCall
from rolling_chat.sessions.export import EXPORT_FORMATS, export
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import StoreDamaged, Stretch
from rolling_chat.text_compression import Packed
from tests.support.agent import FEW_TOOLS, Opened, assert_well_formed, call, calls, collect, says
from tests.support.patience import PATIENCE_SECONDS

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
        runtime.store.append(chat.session.info.id, Message("user", f"question {turn}"))
        runtime.store.append(chat.session.info.id, Message("assistant", "", tool_calls=(listing,)))
        runtime.store.append(
            chat.session.info.id, Message("tool", "none", tool_call_id="c", name="list_files")
        )
        runtime.store.append(chat.session.info.id, Message("assistant", f"answer {turn}"))
    return Chat.open(runtime, session=runtime.store.session(chat.session.info.id)), runtime


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


async def test_it_opens_with_its_newest_messages_and_reads_the_rest_when_asked(
    long: tuple[Chat, Runtime],
) -> None:
    chat, runtime = long
    assert 0 < len(chat.session.conversation.recent) < 10
    assert not chat.session.conversation.is_whole
    older: list[Message] = []
    chat.listener.on_older = lambda part: older.__setitem__(slice(0, 0), part)
    newest = list(chat.session.conversation.recent)
    await chat.session.preview.ready()
    assert chat.session.conversation.is_whole
    assert [*older, *newest] == list(chat.session.messages) == runtime.store.branch(chat.session.info.id)


def test_whoever_asks_for_the_branch_gets_all_of_it(long: tuple[Chat, Runtime]) -> None:
    chat, runtime = long
    assert list(chat.session.messages) == runtime.store.branch(chat.session.info.id)
    assert [said.number for said in chat.session.history.turns()] == list(range(1, LONG // 4 + 1))


async def test_a_turn_waits_for_the_whole_branch(long: tuple[Chat, Runtime]) -> None:
    chat, runtime = long
    events = await collect(chat.send("and now?"))
    assert isinstance(events[0], TurnStarted)
    assert texts(runtime.provider.requests[-1].messages)[1:3] == ["question 0", ""]  # type: ignore[attr-defined]
    assert len(chat.session.messages) == LONG + 2
    assert_well_formed(chat, runtime)


async def test_a_turn_that_waits_for_the_report_can_be_stopped(
    long: tuple[Chat, Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, runtime = long
    go, planner = threading.Event(), chat.session.planner
    preview = planner.forecast.preview
    monkeypatch.setattr(
        planner.forecast, "preview", lambda branch: (go.wait(PATIENCE_SECONDS), preview(branch))[1]
    )
    await chat.session.preview.ready()
    warming = asyncio.create_task(chat.session.preview.warm())
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
    assert texts(chat.session.messages)[-1] == "and now?"
    assert chat.session.preview.report().rows[-1].id == chat.session.messages[-1].id


async def test_the_report_that_was_made_meanwhile_is_the_one_that_is_shown(
    long: tuple[Chat, Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, runtime = long
    await chat.session.preview.warm()
    made = chat.session.preview.report()
    assert len(made.rows) == LONG + 1
    # and what was counted for it is counted for good
    stored = runtime.store.stretch(chat.session.info.id, None)
    assert all(stored.counts[message.id] for message in stored.messages)
    monkeypatch.setattr(chat.session.planner.forecast, "preview", lambda _: pytest.fail("made again"))
    assert chat.session.preview.report() is made


@pytest.mark.parametrize("most", [0, 300])
async def test_with_rolling_off_only_what_is_new_is_looked_at_also_where_nothing_fits_any_longer(
    long: tuple[Chat, Runtime], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    chat, _ = long
    chat.session.overrides.set("max_context_tokens", str(most))
    await chat.session.preview.warm()
    shaped, shape = [], Sizes.shape
    monkeypatch.setattr(Sizes, "shape", lambda *given: (shaped.append(given[1].index), shape(*given))[1])
    for _turn in range(3):
        await collect(chat.send("and now?"))
        chat.session.preview.report()
    assert min(at for at in shaped if at >= 0) > LONG
    assert chat.session.preview.report().within_budget == (not most)
    assert chat.session.preview.report() == chat.session.planner.forecast.report(chat.session.messages)


@pytest.mark.parametrize("most", [0, 4_000])
async def test_with_rolling_on_a_reopened_session_is_looked_at_once_before_its_first_request(
    long: tuple[Chat, Runtime], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    chat, runtime = long
    context = replace(runtime.settings.context, max_context_tokens=most)
    agent = replace(runtime.settings.agent, tools=FEW_TOOLS)
    runtime = replace(runtime, settings=replace(runtime.settings, context=context, agent=agent))
    first = Chat.open(runtime, session=chat.session.info, rolling=True)
    first.session.setup.note_try()  # from a first answer on more may have to leave
    await collect(first.send("and now?"))
    again = Chat.open(runtime, session=runtime.store.session(chat.session.info.id))
    await again.session.preview.warm()
    foreseen = again.session.preview.report_with("and then?")
    assert any(row.fate is Fate.OMITTED for row in again.session.preview.report().rows) == bool(most)
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
    left, older = chat.session.conversation, []
    chat.listener.on_older = older.append
    chat.start_new()
    await left.read_rest()
    assert left.is_whole
    assert older == []


@pytest.fixture
def second(long: tuple[Chat, Runtime]) -> Callable[[], Chat]:
    """Another process that looks at the same session."""
    chat, runtime = long

    def follow() -> Chat:
        other = replace(runtime, store=open_store(runtime.paths.database))
        return Chat.open(other, session=other.store.session(chat.session.info.id))

    return follow


async def test_a_follower_reads_no_more_than_what_is_new(
    long: tuple[Chat, Runtime], second: Callable[[], Chat]
) -> None:
    chat, runtime = long
    follower = second()
    assert follower.session.holder
    runtime.store.append(chat.session.info.id, Message("user", "from over there"))
    assert follower.session.refresh()
    assert not follower.session.conversation.is_whole
    assert texts(follower.session.conversation.recent)[-2:] == ["answer 14", "from over there"]
    assert not follower.session.refresh()
    await follower.session.preview.ready()
    assert list(follower.session.messages) == runtime.store.branch(chat.session.info.id)
    runtime.store.append(chat.session.info.id, Message("assistant", "and an answer"))
    assert follower.session.refresh()
    assert follower.session.conversation.is_whole
    assert list(follower.session.messages) == runtime.store.branch(chat.session.info.id)


@pytest.mark.parametrize("read_before", [False, True])
@pytest.mark.parametrize("back_to", [0, 1, 20, 58])
async def test_a_follower_goes_along_where_the_other_goes_back(
    long: tuple[Chat, Runtime], second: Callable[[], Chat], read_before: bool, back_to: int
) -> None:
    chat, runtime = long
    follower = second()
    if read_before:
        await follower.session.preview.ready()
    branch = runtime.store.branch(chat.session.info.id)
    head = branch[back_to - 1].id if back_to else ""
    runtime.store.move_head(chat.session.info.id, head, chat.session.model)
    assert follower.session.refresh()
    assert list(follower.session.messages) == branch[:back_to]
    runtime.store.append(chat.session.info.id, Message("user", "another way"))
    assert follower.session.refresh()
    assert list(follower.session.messages) == runtime.store.branch(chat.session.info.id)


async def test_a_part_that_cannot_be_read_fails_the_turn_in_words_and_the_chat_can_be_left(
    long: tuple[Chat, Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, runtime = long
    read, broken = runtime.store.stretch, chat.session.info.id

    def damaged(session: str, most: int, head: str | None = None) -> Stretch:
        if head is not None:
            raise StoreDamaged(f"session {session} cannot be read")
        return read(session, most, head)

    monkeypatch.setattr(runtime.store, "stretch", damaged)
    line = f"session {broken} cannot be read"
    with pytest.raises(ChatError, match=line):
        await chat.session.preview.warm()
    with pytest.raises(ChatError, match=line):
        _ = chat.session.messages
    ended = (await collect(chat.send("still there?")))[-1]
    assert isinstance(ended, TurnEnded)
    assert (ended.outcome, ended.error) == (Outcome.FAILED, line)
    assert texts(chat.session.conversation.recent)[-1] == "still there?"
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
        runtime.store.append(chat.session.info.id, Message("user", f"question {said}"))
        runtime.store.append(chat.session.info.id, Message("assistant", "", tool_calls=(listing,)))
        runtime.store.append(
            chat.session.info.id, Message("tool", f"a.py {said}", tool_call_id="c", name="list_files")
        )
        runtime.store.append(chat.session.info.id, Message("assistant", f"answer {said}"))
    sessions = runtime.store.session(chat.session.info.id), runtime.store.fork(chat.session.info.id)
    packed, plain = (Chat.open(runtime, session=session) for session in sessions)
    assert len(plain.session.messages) == LONG
    return packed, plain, runtime


@pytest.mark.parametrize("window", ["0", "16000"])
async def test_what_is_packed_is_planned_exported_and_recalled_as_what_is_not(
    wordy: tuple[Chat, Chat, Runtime], window: str
) -> None:
    packed, plain, runtime = wordy
    await packed.session.preview.warm()
    for chat in (packed, plain):
        chat.session.overrides.set_rolling(True)
        chat.session.overrides.set("max_context_tokens", window)
        chat.session.overrides.set(
            "summarize", "off"
        )  # in the background, and so among the requests anywhere
    assert sum(map(is_packed, packed.session.messages)) > LONG // 2
    assert not any(map(is_packed, plain.session.messages))
    assert list(packed.session.messages) == list(plain.session.messages)
    assert packed.session.preview.report() == plain.session.preview.report()
    for kind in EXPORT_FORMATS:
        assert export(plain.session.info, packed.session.messages, kind) == export(
            plain.session.info, plain.session.messages, kind
        )
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
    assert all(is_packed(message) for message in chat.session.messages[:-14] if len(message.text) >= 100)
    assert not any(map(is_packed, chat.session.messages[-10:]))
    assert list(chat.session.messages) == runtime.store.branch(chat.session.info.id)
