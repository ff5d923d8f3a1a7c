"""Undo, redo, rewind, retake and branches: the head moves, and nothing is lost by it."""

from __future__ import annotations

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
    return [message.text for message in chat.session.messages]


async def test_undo_takes_back_a_turn_with_all_that_was_done_in_it(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"), calls(call("list_files")), says("two"))
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    assert len(chat.session.messages) == 6
    assert chat.session.history.undo().text == "second"
    assert texts(chat) == ["first", "one"]
    assert chat.session.history.undo().text == "first"
    assert texts(chat) == []
    with pytest.raises(ChatError, match="nothing to undo"):
        chat.session.history.undo()
    assert_well_formed(chat, runtime)


async def test_redo_goes_forward_until_something_is_said(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"), says("two"), says("three"))
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    whole = list(chat.session.messages)
    chat.session.history.undo()
    chat.session.history.undo()
    chat.session.history.redo()
    assert texts(chat) == ["first", "one"]
    chat.session.history.redo()
    assert list(chat.session.messages) == whole
    with pytest.raises(ChatError, match=r"nothing to redo; /branches"):
        chat.session.history.redo()
    chat.session.history.undo()
    await collect(chat.send("another second"))
    with pytest.raises(ChatError, match="nothing to redo"):
        chat.session.history.redo()
    assert texts(chat) == ["first", "one", "another second", "three"]
    assert_well_formed(chat, runtime)


async def test_an_earlier_message_is_edited_and_both_branches_stay(opened: Opened) -> None:
    chat, runtime, provider = opened(says("one"), says("two"), says("other"))
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    whole = list(chat.session.messages)
    assert chat.session.history.rewind(whole[2].id) == whole[2]
    await collect(chat.send("second, edited"))
    assert [message.text for message in provider.requests[-1].messages[1:]] == [
        "first", "one", "second, edited",
    ]  # fmt: skip
    (left,) = chat.session.history.branches()
    assert (left.head, left.messages, left.own, left.begins) == (whole[-1].id, 4, 2, "second")
    edited = list(chat.session.messages)
    assert chat.session.history.go_to(left.head)
    assert list(chat.session.messages) == whole
    assert [branch.head for branch in chat.session.history.branches()] == [edited[-1].id]
    chat.session.history.redo()
    assert list(chat.session.messages) == edited
    assert_well_formed(chat, runtime)


async def test_a_message_is_answered_again_by_the_same_request(opened: Opened) -> None:
    chat, runtime, provider = opened(says("bad"), says("good"))
    await collect(chat.send("question"))
    assert chat.session.history.retake().text == "question"
    assert texts(chat) == ["question"]
    assert (await collect(chat.carry_on()))[-1].outcome is Outcome.DONE
    assert texts(chat) == ["question", "good"]
    assert provider.requests[0].messages == provider.requests[1].messages
    first, second = runtime.store.requests(chat.session.info.id)
    assert first.wire_hash == second.wire_hash
    assert [branch.begins for branch in chat.session.history.branches()] == ["bad"]
    assert_well_formed(chat, runtime)


async def test_what_was_spent_stays_spent(opened: Opened) -> None:
    reply = [Finished(Message("assistant", "dear"), Usage(100, 20, cost=0.5))]
    chat, runtime, _ = opened(reply)
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    chat.session.history.undo()
    chat.session.history.undo()
    assert chat.usage.cost == 1.0
    chat.close()
    again = Chat.open(runtime, session=runtime.store.session(chat.session.info.id))
    assert again.usage.cost == 1.0


async def test_the_plan_is_that_of_the_nearest_request_above(opened: Opened) -> None:
    chat, runtime, provider = opened(says("word " * 300), window=4_000)
    chat.session.overrides.set_rolling(True)
    chat.session.overrides.set("max_history_tokens", "900")
    chat.session.overrides.set("summarize", "off")
    for number in range(6):
        await collect(chat.send(f"question {number}"))
    log = runtime.store.requests(chat.session.info.id)
    fourth = next(turn.message for turn in chat.session.history.turns() if turn.number == 4)
    chat.session.history.rewind(fourth.id)
    assert runtime.store.state(chat.session.info.id).plan == log[2].plan
    chat.session.history.redo()
    chat.session.history.retake()
    assert runtime.store.state(chat.session.info.id).plan == log[5].plan
    await collect(chat.carry_on())
    assert provider.requests[-1].messages == provider.requests[-2].messages
    while chat.session.history.turns():
        chat.session.history.undo()
    assert runtime.store.state(chat.session.info.id).plan is None


async def test_a_plan_of_another_model_is_not_gone_by(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"))
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    chat.session.set_model("demo/offline")
    chat.session.history.undo()
    assert runtime.store.state(chat.session.info.id).plan is None


async def test_a_session_with_everything_taken_back_is_kept(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"))
    await collect(chat.send("first"))
    here = chat.session.info.id
    chat.session.history.undo()
    chat.start_new()
    assert [info.id for info in chat.saved.all()] == [here]
    assert runtime.store.newest(str(runtime.folder)).id == here
    chat.resume(here)
    (left,) = chat.session.history.branches()
    chat.session.history.go_to(left.head)
    assert texts(chat) == ["first", "one"]


async def test_a_fork_shares_its_messages_and_goes_back_behind_the_fork(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"), says("two"), says("three"))
    chat.session.overrides.set_rolling(True)
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    chat.session.rename("the title")
    origin, whole = chat.session.info, list(chat.session.messages)
    plan = runtime.store.state(origin.id).plan
    chat.fork()
    assert chat.session.info.id != origin.id
    assert (chat.session.info.title, chat.session.info.model, chat.session.rolling) == (
        "the title",
        origin.model,
        True,
    )
    assert runtime.store.state(chat.session.info.id).plan == plan
    assert [message.id for message in chat.session.messages] == [message.id for message in whole]
    chat.session.history.undo()
    assert runtime.store.state(chat.session.info.id).plan == runtime.store.requests(origin.id)[0].plan
    await collect(chat.send("another"))
    assert texts(chat) == ["first", "one", "another", "three"]
    assert [branch.head for branch in chat.session.history.branches()] == [whole[-1].id]
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
    for move in (
        chat.session.history.undo,
        chat.session.history.redo,
        chat.session.history.retake,
        lambda: chat.session.history.rewind(chat.session.messages[0].id),
    ):
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
    follower = Chat.open(other, session=other.store.session(chat.session.info.id))
    for move in (follower.session.history.undo, follower.session.history.retake):
        with pytest.raises(ChatError, match=r"open in another terminal .*/fork"):
            move()
    chat.session.history.undo()
    assert follower.session.refresh()
    assert texts(follower) == ["first", "one"]
    assert not follower.session.history.go_to(follower.session.messages[0].id)
    follower.close()
    other.store.close()


async def test_what_was_undone_in_one_session_is_not_redone_in_the_next(opened: Opened) -> None:
    chat, *_ = opened(says("one"))
    await collect(chat.send("first"))
    chat.session.history.undo()
    chat.start_new()
    with pytest.raises(ChatError, match="nothing to redo"):
        chat.session.history.redo()


async def test_a_message_of_another_session_is_nowhere_to_go(opened: Opened) -> None:
    chat, *_ = opened(says("one"))
    await collect(chat.send("first"))
    foreign = chat.session.messages[0]
    chat.start_new()
    await collect(chat.send("second"))
    with pytest.raises(ChatError, match="not on this branch"):
        chat.session.history.rewind(foreign.id)
    with pytest.raises(ChatError, match="not of this session"):
        chat.session.history.go_to(foreign.id)
    assert texts(chat) == ["second", "one"]


async def test_a_branch_left_in_the_middle_of_a_turn_is_mended_when_it_is_gone_to(opened: Opened) -> None:
    chat, runtime, _ = opened(says("one"))
    await collect(chat.send("first"))
    store, here = runtime.store, chat.session.info.id
    store.append(here, Message("user", "go"))
    dead = store.append(here, Message("assistant", "", tool_calls=(call("list_files"),)))
    store.move_head(here, chat.session.messages[-1].id, chat.session.model)
    chat.session.history.go_to(dead.id)
    assert texts(chat)[-1].startswith("[cancelled")
    assert_well_formed(chat, runtime)
    assert chat.session.messages[-2] == dead
