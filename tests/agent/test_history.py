"""Undo, redo, rewind, retake and branches: the head moves, and nothing is lost by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rolling_chat.agent import Chat, ChatError
from rolling_chat.events import Outcome
from rolling_chat.messages import Message, Usage
from rolling_chat.providers.protocol import Finished
from tests.support.agent import (
    Gate,
    Opened,
    ScriptedProvider,
    assert_well_formed,
    call,
    calls,
    collect,
    make_runtime,
    says,
)


def texts(chat: Chat) -> list[str]:
    return [message.text for message in chat.messages]


async def test_undo_takes_back_a_turn_with_all_that_was_done_in_it(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"), calls(call("list_files")), says("two"))
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    assert len(chat.messages) == 6
    assert chat.undo().text == "second"
    assert texts(chat) == ["first", "one"]
    assert chat.undo().text == "first"
    assert texts(chat) == []
    with pytest.raises(ChatError, match="nothing to undo"):
        chat.undo()
    assert_well_formed(chat, runtime)


async def test_redo_goes_forward_until_something_is_said(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"), says("two"), says("three"))
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    whole = list(chat.messages)
    chat.undo()
    chat.undo()
    chat.redo()
    assert texts(chat) == ["first", "one"]
    chat.redo()
    assert list(chat.messages) == whole
    with pytest.raises(ChatError, match=r"nothing to redo; /branches"):
        chat.redo()
    chat.undo()
    await collect(chat.send("another second"))
    with pytest.raises(ChatError, match="nothing to redo"):
        chat.redo()
    assert texts(chat) == ["first", "one", "another second", "three"]
    assert_well_formed(chat, runtime)


async def test_an_earlier_message_is_edited_and_both_branches_stay(opened: Opened) -> None:
    chat, runtime, provider = opened(says("one"), says("two"), says("other"))
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    whole = list(chat.messages)
    assert chat.rewind(whole[2].id) == whole[2]
    await collect(chat.send("second, edited"))
    assert [message.text for message in provider.requests[-1].messages[1:]] == [
        "first", "one", "second, edited",
    ]  # fmt: skip
    (left,) = chat.branches()
    assert (left.head, left.messages, left.own, left.begins) == (whole[-1].id, 4, 2, "second")
    edited = list(chat.messages)
    assert chat.go_to(left.head)
    assert list(chat.messages) == whole
    assert [branch.head for branch in chat.branches()] == [edited[-1].id]
    chat.redo()
    assert list(chat.messages) == edited
    assert_well_formed(chat, runtime)


async def test_a_message_is_answered_again_by_the_same_request(opened: Opened) -> None:
    chat, runtime, provider = opened(says("bad"), says("good"))
    await collect(chat.send("question"))
    assert chat.retake().text == "question"
    assert texts(chat) == ["question"]
    assert (await collect(chat.carry_on()))[-1].outcome is Outcome.DONE
    assert texts(chat) == ["question", "good"]
    assert provider.requests[0].messages == provider.requests[1].messages
    first, second = runtime.store.requests(chat.info.id)
    assert first.wire_hash == second.wire_hash
    assert [branch.begins for branch in chat.branches()] == ["bad"]
    assert_well_formed(chat, runtime)


async def test_what_was_spent_stays_spent(opened: Opened) -> None:
    reply = [Finished(Message("assistant", "dear"), Usage(100, 20, cost=0.5))]
    chat, runtime, _ = opened(reply)
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    chat.undo()
    chat.undo()
    assert chat.usage.cost == 1.0
    chat.close()
    again = Chat.open(runtime, session=runtime.store.session(chat.info.id))
    assert again.usage.cost == 1.0


async def test_the_plan_is_that_of_the_nearest_request_above(opened: Opened) -> None:
    chat, runtime, provider = opened(says("word " * 300), window=4_000)
    chat.set_rolling(True)
    chat.set_context("max_history_tokens", "900")
    chat.set_context("summarize", "off")
    for number in range(6):
        await collect(chat.send(f"question {number}"))
    log = runtime.store.requests(chat.info.id)
    fourth = next(turn.message for turn in chat.turns() if turn.number == 4)
    chat.rewind(fourth.id)
    assert runtime.store.state(chat.info.id).plan == log[2].plan
    chat.redo()
    chat.retake()
    assert runtime.store.state(chat.info.id).plan == log[5].plan
    await collect(chat.carry_on())
    assert provider.requests[-1].messages == provider.requests[-2].messages
    while chat.turns():
        chat.undo()
    assert runtime.store.state(chat.info.id).plan is None


async def test_a_plan_of_another_model_is_not_gone_by(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"))
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    chat.set_model("demo/offline")
    chat.undo()
    assert runtime.store.state(chat.info.id).plan is None


async def test_a_session_with_everything_taken_back_is_kept(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"))
    await collect(chat.send("first"))
    here = chat.info.id
    chat.undo()
    chat.start_new()
    assert [info.id for info in chat.sessions()] == [here]
    assert runtime.store.newest(str(runtime.folder)).id == here
    chat.resume(here)
    (left,) = chat.branches()
    chat.go_to(left.head)
    assert texts(chat) == ["first", "one"]


async def test_a_fork_shares_its_messages_and_goes_back_behind_the_fork(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"), says("two"), says("three"))
    chat.set_rolling(True)
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    chat.rename("the title")
    origin, whole = chat.info, list(chat.messages)
    plan = runtime.store.state(origin.id).plan
    chat.fork()
    assert chat.info.id != origin.id
    assert (chat.info.title, chat.info.model, chat.rolling) == ("the title", origin.model, True)
    assert runtime.store.state(chat.info.id).plan == plan
    assert [message.id for message in chat.messages] == [message.id for message in whole]
    chat.undo()
    assert runtime.store.state(chat.info.id).plan == runtime.store.requests(origin.id)[0].plan
    await collect(chat.send("another"))
    assert texts(chat) == ["first", "one", "another", "three"]
    assert [branch.head for branch in chat.branches()] == [whole[-1].id]
    assert runtime.store.branch(origin.id) == whole
    assert runtime.store.left_branches(origin.id) == []
    assert_well_formed(chat, runtime)


async def test_while_the_model_answers_nothing_moves(opened: Opened) -> None:
    gate = Gate()
    chat, _, _ = opened(says("one"), [gate, *says("two")])
    await collect(chat.send("first"))
    events = chat.send("second")
    await anext(events)
    await gate.reached.wait()
    for move in (chat.undo, chat.redo, chat.retake, lambda: chat.rewind(chat.messages[0].id)):
        with pytest.raises(ChatError, match="still answering"):
            move()
    gate.opened.set()
    await collect(events)
    assert texts(chat) == ["first", "one", "second", "two"]


async def test_a_session_open_elsewhere_is_not_moved_and_sees_the_others_moves(
    opened: Opened, tmp_path: object
) -> None:
    chat, _, _ = opened(says("one"))
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    other = make_runtime(tmp_path, ScriptedProvider(says("x")))
    follower = Chat.open(other, session=other.store.session(chat.info.id))
    for move in (follower.undo, follower.retake):
        with pytest.raises(ChatError, match=r"open in another terminal .*/fork"):
            move()
    chat.undo()
    assert follower.refresh()
    assert texts(follower) == ["first", "one"]
    assert not follower.go_to(follower.messages[0].id)
    follower.close()
    other.close()


async def test_what_was_undone_in_one_session_is_not_redone_in_the_next(opened: Opened) -> None:
    chat, *_ = opened(says("one"))
    await collect(chat.send("first"))
    chat.undo()
    chat.start_new()
    with pytest.raises(ChatError, match="nothing to redo"):
        chat.redo()


async def test_a_message_of_another_session_is_nowhere_to_go(opened: Opened) -> None:
    chat, *_ = opened(says("one"))
    await collect(chat.send("first"))
    foreign = chat.messages[0]
    chat.start_new()
    await collect(chat.send("second"))
    with pytest.raises(ChatError, match="not on this branch"):
        chat.rewind(foreign.id)
    with pytest.raises(ChatError, match="not of this session"):
        chat.go_to(foreign.id)
    assert texts(chat) == ["second", "one"]


async def test_a_branch_left_in_the_middle_of_a_turn_is_mended_when_it_is_gone_to(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"))
    await collect(chat.send("first"))
    store, here = runtime.store, chat.info.id
    store.append(here, Message("user", "go"))
    dead = store.append(here, Message("assistant", "", tool_calls=(call("list_files"),)))
    store.move_head(here, chat.messages[-1].id, chat.model)
    chat.go_to(dead.id)
    assert texts(chat)[-1].startswith("[cancelled")
    assert_well_formed(chat, runtime)
    assert replace(chat.messages[-2], counts={}) == dead
