"""The facade: sessions are opened, followed, forked, left; nothing said is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rolling_chat.agent import Chat, ChatError, Runtime
from rolling_chat.events import Outcome
from rolling_chat.messages import Ending, MadeBy, Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import StoreDamaged, Stretch
from rolling_chat.sessions.sqlite.store import SqliteStore
from tests.support.agent import (
    MODEL,
    Opened,
    ScriptedProvider,
    assert_well_formed,
    call,
    calls,
    collect,
    make_runtime,
    says,
)


async def test_a_session_is_continued_where_it_was_left(opened: Opened) -> None:
    chat, runtime, provider = opened(says("one"), says("two"))
    await collect(chat.send("first"))
    chat.session.overrides.set_rolling(True)
    chat.session.rename("  my \n title ")
    chat.close()
    again = Chat.open(runtime, session=runtime.store.newest(str(runtime.folder)))
    assert [m.text for m in again.session.messages] == ["first", "one"]
    assert (again.session.rolling, again.session.info.title, again.session.model) == (True, "my title", MODEL)
    assert "from this session" in again.session.model_line
    assert again.usage == chat.usage
    assert again.session.resume_command == f"rolling-chat --resume {again.session.info.short}"
    await collect(again.send("second"))
    assert [m.text for m in provider.requests[-1].messages[1:]] == ["first", "one", "second"]
    assert_well_formed(again, runtime)


async def test_what_a_dead_process_left_open_is_mended_when_its_session_is_opened(opened: Opened) -> None:
    chat, runtime, _ = opened(says("ok"))
    store, here = runtime.store, chat.session.info.id
    store.append(here, Message("user", "go"))
    store.append(here, Message("assistant", "", tool_calls=(call("list_files"), call("read_file", id="c2"))))
    store.append(here, Message("tool", "a.txt", tool_call_id="c1"))
    again = Chat.open(runtime, session=store.session(here))
    assert [(m.role, m.ending) for m in again.session.messages[2:]] == [
        ("tool", Ending.COMPLETE), ("tool", Ending.CANCELLED),
    ]  # fmt: skip
    assert_well_formed(again, runtime)
    assert (await collect(again.send("and?")))[-1].outcome is Outcome.DONE


async def test_a_session_in_which_nothing_was_said_leaves_no_trace(opened: Opened) -> None:
    chat, *_ = opened(says("ok"))
    empty = chat.session.info.id
    chat.start_new()
    with pytest.raises(ChatError, match="no session"):
        chat.resume(empty)
    await collect(chat.send("hi"))
    spoken = chat.session.info.id
    chat.start_new()
    assert len(chat.session.messages) == 0
    assert chat.session.preview.report().history == 0
    assert [info.id for info in chat.saved.all()] == [spoken]
    chat.resume(spoken[-8:-2])
    assert "from this session" in chat.session.model_line
    assert [m.text for m in chat.session.messages] == ["hi", "ok"]


@pytest.fixture
def second(tmp_path: Path) -> Callable[..., tuple[Chat, Runtime]]:
    """Another process, as far as the store can tell: a store of its own on the same file."""

    def open_second(first: Chat, *scripts: object) -> tuple[Chat, Runtime]:
        runtime = make_runtime(tmp_path, ScriptedProvider(*scripts or (says("from the second"),)))
        return Chat.open(runtime, session=runtime.store.session(first.session.info.id)), runtime

    return open_second


async def test_a_session_open_elsewhere_can_be_followed_but_not_written(
    opened: Opened, second: Callable[..., tuple[Chat, Runtime]]
) -> None:
    chat, runtime, _ = opened(calls(call("list_files")), says("one"), says("two"))
    await collect(chat.send("first"))
    follower, other = second(chat)
    assert chat.session.holder == ""
    assert follower.session.holder.startswith("open in another terminal (process ")
    assert any("open in another terminal" in notice for notice in follower.session.notices)
    for refused in (lambda: follower.send("me too"), follower.carry_on):
        with pytest.raises(ChatError, match=r"open in another terminal .*/fork"):
            await collect(refused())
    assert not follower.session.refresh()
    await collect(chat.send("second"))
    assert follower.session.refresh()
    assert [m.text for m in follower.session.messages] == [m.text for m in chat.session.messages]
    assert follower.session.preview.report().token_count == chat.session.preview.report().token_count
    follower.close()
    other.store.close()
    assert_well_formed(chat, runtime)


async def test_following_never_writes_to_what_the_other_does_right_now(
    opened: Opened, second: Callable[..., tuple[Chat, Runtime]]
) -> None:
    chat, runtime, _ = opened(says("ok"))
    store, here = runtime.store, chat.session.info.id
    store.append(here, Message("user", "go"))
    store.append(here, Message("assistant", "", tool_calls=(call("list_files"),)))
    reply = None
    follower, other = second(chat)
    assert len(follower.session.messages) == 2
    follower.session.overrides.set_rolling(True)
    with pytest.raises(ChatError):
        await collect(follower.send("x"))
    store.append(here, Message("tool", "a", tool_call_id="c1"))
    reply = store.begin_reply(here, MadeBy("openai", MODEL))
    store.grow_reply(reply, "half")
    assert follower.session.refresh()
    assert follower.session.messages[-1].text == "half"
    store.seal_reply(reply, Message("assistant", "half and half"))
    assert store.session(here).rolling is False
    other.store.close()


async def test_a_fork_of_a_session_open_elsewhere_is_ones_own(
    opened: Opened, second: Callable[..., tuple[Chat, Runtime]]
) -> None:
    chat, runtime, _ = opened(says("one"), says("two"))
    await collect(chat.send("first"))
    follower, other = second(chat)
    follower.fork()
    assert follower.session.holder == ""
    assert follower.session.info.id != chat.session.info.id
    await collect(follower.send("mine"))
    await collect(chat.send("yours"))
    assert [m.text for m in follower.session.messages] == ["first", "one", "mine", "from the second"]
    assert [m.text for m in chat.session.messages] == ["first", "one", "yours", "two"]
    assert_well_formed(chat, runtime)
    assert_well_formed(follower, other)
    other.store.close()


async def test_a_session_is_ours_once_the_other_has_let_go(
    opened: Opened, second: Callable[..., tuple[Chat, Runtime]]
) -> None:
    chat, _, _ = opened(says("one"))
    await collect(chat.send("first"))
    follower, other = second(chat)
    chat.close()
    await collect(follower.send("mine"))
    assert follower.session.holder == ""
    assert [m.text for m in follower.session.messages] == ["first", "one", "mine", "from the second"]
    assert_well_formed(follower, other)
    other.store.close()


async def test_the_model_can_be_changed_in_mid_session(opened: Opened) -> None:
    chat, runtime, provider = opened(says("one"), says("two"))
    await collect(chat.send("first"))
    before = chat.session.preview.report()
    line = chat.session.set_model("demo/offline")
    assert line == chat.session.model_line
    assert "demo/offline" in line
    assert chat.session.preview.report().window == 8_192
    assert before.window == 32_000
    await collect(chat.send("second"))
    request = provider.requests[-1]
    assert (request.model, request.previous_length, request.window) == ("demo/offline", 0, 8_192)
    assert runtime.store.session(chat.session.info.id).model == "demo/offline"


async def test_a_model_that_nobody_serves_is_refused_and_changes_nothing(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"))
    with pytest.raises(ChatError) as caught:
        chat.session.set_model("claud-opus-nine")
    assert "\n" not in str(caught.value)
    assert chat.session.model == MODEL
    with pytest.raises(ChatError):
        Chat.open(runtime, model="claud-opus-nine")


async def test_an_unknown_tool_in_the_settings_is_refused_with_what_there_is(opened: Opened) -> None:
    with pytest.raises(ChatError, match=r"no tool 'fly'\. The tools are"):
        opened(says("x"), tools=("fly",))


async def test_tools_can_be_left_out(opened: Opened) -> None:
    chat, _, provider = opened(says("one"), tools="none")
    await collect(chat.send("hi"))
    assert provider.requests[0].tools == ()
    assert "You have tools" not in provider.requests[0].messages[0].text
    assert chat.session.preview.report().tools == 0


async def test_a_model_without_tools_is_offered_none_and_the_person_told(opened: Opened) -> None:
    _, runtime, provider = opened(says("one"))
    table = {"old": {"mode": "chat", "litellm_provider": "openai", "max_input_tokens": 9_000}}
    runtime.catalog = type(runtime.catalog)(table)
    chat = Chat.open(runtime, model="old")
    assert any("does not support tools" in notice for notice in chat.session.notices)
    await collect(chat.send("hi"))
    assert provider.requests[0].tools == ()


async def test_the_report_is_kept_until_the_conversation_changes(opened: Opened) -> None:
    chat, *_ = opened(says("one"))
    first = chat.session.preview.report()
    assert chat.session.preview.report() is first
    assert first.within_budget
    await collect(chat.send("hello"))
    second = chat.session.preview.report()
    assert second.token_count > first.token_count
    chat.session.overrides.set_rolling(True)
    assert chat.session.preview.report().rolling


async def test_a_draft_is_counted(opened: Opened) -> None:
    chat, *_ = opened(says("one"))
    assert chat.session.state.sizes.of_draft("") == 0
    assert 0 < chat.session.state.sizes.of_draft("word") < chat.session.state.sizes.of_draft("word " * 100)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
async def test_nothing_is_not_sent(text: str, opened: Opened) -> None:
    chat, *_ = opened(says("one"))
    with pytest.raises(ChatError, match="nothing to send"):
        chat.send(text)


async def test_there_must_be_something_to_go_on_with(opened: Opened) -> None:
    chat, *_ = opened(says("one"))
    with pytest.raises(ChatError, match="nothing to go on with"):
        await collect(chat.carry_on())
    await collect(chat.send("hi"))
    with pytest.raises(ChatError, match="nothing to go on with"):
        await collect(chat.carry_on())


async def test_sessions_of_this_folder_come_first(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"))
    await collect(chat.send("here"))
    elsewhere = runtime.store.create_session(folder="/elsewhere", model=MODEL, rolling=False)
    runtime.store.append(elsewhere.id, Message("user", "later, elsewhere"))
    assert [info.folder for info in chat.saved.all()] == [str(runtime.folder), "/elsewhere"]


async def test_reachable_models_are_those_with_a_key(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"))
    assert MODEL in chat.model_names()
    runtime.environ = {**runtime.environ, "OPENAI_API_KEY": ""}
    assert MODEL not in chat.model_names()
    assert "demo/offline" in chat.model_names()


async def test_a_store_that_fails_ends_the_turn_in_one_line(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rolling_chat.sessions.records import StoreError

    chat, runtime, _ = opened(says("one"), says("two"))

    def full(*_: object, **__: object) -> None:
        raise StoreError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "grow_reply", full)
        patch.setattr(SqliteStore, "seal_reply", full)
        ended = (await collect(chat.send("go")))[-1]
    assert (ended.outcome, ended.error) == (Outcome.FAILED, "The disk is full.")
    assert not chat.busy
    ended = (await collect(chat.send("again")))[-1]
    assert ended.outcome is Outcome.DONE
    assert_well_formed(chat, runtime)


async def test_without_saving_there_is_no_command_to_come_back(tmp_path: Path) -> None:
    runtime = make_runtime(tmp_path, ScriptedProvider(says("one")))
    chat = Chat.open(replace(runtime, store=open_store(None), save=False))
    await collect(chat.send("hi"))
    assert chat.session.resume_command == ""
    runtime.store.close()


async def test_warming_up_loads_what_the_first_request_needs(opened: Opened) -> None:
    chat, *_ = opened(says("one"))
    await chat.warm_up()


async def test_who_takes_over_from_a_process_that_died_in_a_tool_mends_what_it_left(
    opened: Opened, second: Callable[..., tuple[Chat, Runtime]]
) -> None:
    chat, runtime, _ = opened(says("ok"))
    runtime.store.append(chat.session.info.id, Message("user", "go"))
    follower, other = second(chat)
    runtime.store.append(chat.session.info.id, Message("assistant", "", tool_calls=(call("list_files"),)))
    runtime.store.release(chat.session.info.id)
    assert follower.session.refresh()
    assert follower.session.holder == ""
    assert follower.session.messages[-1].ending is Ending.CANCELLED
    assert_well_formed(follower, other)
    other.store.close()


async def test_a_session_of_another_folder_says_where_tools_work(opened: Opened) -> None:
    _, runtime, _ = opened(says("one"))
    elsewhere = runtime.store.create_session(folder="/elsewhere", model=MODEL, rolling=False)
    chat = Chat.open(runtime, session=elsewhere)
    assert chat.session.notices == [f"This session was begun in /elsewhere; tools work in {runtime.folder}."]


async def test_closing_twice_is_no_fault(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    chat, *_ = opened(says("one"))
    chat.close()
    chat.close()
    assert not caplog.records


async def test_a_session_that_cannot_be_read_leaves_the_open_one_as_it_is(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, runtime, _ = opened(says("ok"))
    await collect(chat.send("first"))
    broken = chat.session.info.id
    chat.start_new()
    await collect(chat.send("second"))
    read = runtime.store.stretch

    def damaged(session: str, most: int, head: str | None = None) -> Stretch:
        if session == broken:
            raise StoreDamaged(f"session {session} cannot be read")
        return read(session, most, head)

    monkeypatch.setattr(runtime.store, "stretch", damaged)
    with pytest.raises(ChatError, match=f"session {broken} cannot be read"):
        chat.resume(broken)
    assert chat.session.info.id != broken
    await collect(chat.send("third"))
    assert [m.text for m in chat.session.messages] == ["second", "ok", "third", "ok"]
