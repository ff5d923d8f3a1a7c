"""A session takes with it what belongs to it, and leaves nothing of it to the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from rolling_chat.agent import Chat, ChatError, PinChange, Runtime
from rolling_chat.events import Permission, PermissionAnswer, PermissionRequest
from tests.support.agent import Opened, call, calls, collect, says

ECHO = calls(call("run_command", '{"command": "echo a"}'))


async def _always(_: PermissionRequest) -> PermissionAnswer:
    return PermissionAnswer(Permission.SESSION)


async def _in_a_lived_in_session(opened: Opened) -> tuple[Chat, Runtime]:
    """A session with a permission rule, a pin, an override and a move that could be taken back."""
    chat, runtime, _ = opened(ECHO, says("one"), says("two"))
    chat.listener.ask = _always
    await collect(chat.send("go"))
    await collect(chat.send("go on"))
    chat.session.history.undo()
    chat.session.pins.make(PinChange.PIN, "r1")
    chat.session.overrides.set("max_history_tokens", "3000")
    return chat, runtime


@pytest.mark.parametrize("leave", [Chat.start_new, Chat.fork])
async def test_the_next_session_begins_without_what_was_done_in_the_one_before(
    opened: Opened, leave: Callable[[Chat], None]
) -> None:
    chat, _ = await _in_a_lived_in_session(opened)
    before = chat.session
    leave(chat)

    assert chat.session is not before
    assert chat.session.permissions.session == []
    for take_back in (chat.session.history.redo, chat.session.overrides.undo):
        with pytest.raises(ChatError, match="nothing to"):
            take_back()


async def test_a_rule_that_was_kept_allows_in_the_next_session_too(opened: Opened) -> None:
    chat, _ = await _in_a_lived_in_session(opened)
    (rule,) = chat.session.permissions.session
    chat.session.permissions.keep(rule)
    chat.start_new()
    assert rule in chat.session.permissions.allow
    assert chat.session.permissions.session == []


async def test_a_report_that_is_being_made_is_not_stored_in_a_session_that_was_left(opened: Opened) -> None:
    chat, runtime = await _in_a_lived_in_session(opened)
    left = chat.session
    warming = asyncio.create_task(left.preview.warm())
    await asyncio.sleep(0)
    chat.start_new()
    await warming
    assert left.state.is_closed
    assert runtime.store.session(left.info.id).messages
    (system,) = chat.session.preview.report().rows
    assert system.role == "system"
