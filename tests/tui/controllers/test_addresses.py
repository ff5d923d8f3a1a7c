"""A session that does not know its server asks for it once, before anything is sent."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.agent import Chat
from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.tui.widgets.question import Question
from tests.support.tui import (
    MODEL,
    Clock,
    ScriptedProvider,
    draft,
    idle,
    listens,
    make_app,
    make_chat,
    reads,
    says,
    type_line,
    wait_until,
)


def _from_before(home: Path) -> tuple[Chat, ScriptedProvider]:
    provider, store = ScriptedProvider([says("Here."), says("Again.")]), open_store(None)
    info = store.create_session(folder="/x", model=MODEL, rolling=False, api_base=None)
    store.append(info.id, Message("user", "of old"))
    store.append(info.id, Message("assistant", "Yes."))
    chat = make_chat(home, provider=provider, store=store)
    chat.resume(info.id)
    return chat, provider


async def test_the_answer_is_kept_and_the_message_sent(tmp_path: Path) -> None:
    clock = Clock()
    chat, provider = _from_before(tmp_path)
    async with make_app(chat, tmp_path, clock=clock).run_test() as pilot:
        await type_line(pilot, "hello")
        await reads(pilot, f"Where is {MODEL}?")
        assert provider.requests == []
        await listens(pilot, clock)
        await reads(pilot, "api.openai.com")
        await pilot.press("1", "enter")
        await reads(pilot, "Here.", f"model: {MODEL} at api.openai.com")
        await idle(pilot)
        assert chat.session.info.api_base == ""
        await type_line(pilot, "more")
        await reads(pilot, "Again.")
        assert not pilot.app.screen.query(Question)
    assert [request.api_base for request in provider.requests] == [None, None]


async def test_esc_sends_nothing_and_gives_the_message_back(tmp_path: Path) -> None:
    chat, provider = _from_before(tmp_path)
    async with make_app(chat, tmp_path).run_test() as pilot:
        await type_line(pilot, "hello")
        await reads(pilot, f"Where is {MODEL}?")
        await pilot.press("escape")
        await wait_until(pilot, lambda: draft(pilot) == "hello")
        await reads(pilot, "Not sent", "/model")
    assert provider.requests == []
    assert chat.session.address is None
