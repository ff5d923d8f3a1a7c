"""The window that the adapters share."""

from __future__ import annotations

from typing import Any

from rolling_chat.context import ContextConfig
from rolling_chat.integrations.window import RollingWindow
from tests.integrations.conversations import MODEL, WINDOW, log_of
from tests.support.conversations import assistant, user


def sent(window: RollingWindow, messages: list[Any]) -> list[Any]:
    return [dict(one.message) for one in window.fit("Be brief.", messages).messages]


def test_two_conversations_of_one_agent_keep_their_prefixes() -> None:
    config = ContextConfig(max_context_tokens=WINDOW)
    shared, alone = RollingWindow(MODEL, config), {name: RollingWindow(MODEL, config) for name in "ab"}
    conversations: dict[str, list[Any]] = {name: [user(f"I am {name}.")] for name in "ab"}
    for turn in range(12):
        for name, messages in conversations.items():
            assert sent(shared, messages) == sent(alone[name], messages)
            messages += [assistant("Yes."), user(f"{name} {log_of(turn)}")]


def test_a_later_system_message_stays() -> None:
    rule = {"role": "system", "content": "Answer in French."}
    messages = [user("Hi."), rule]
    for turn in range(12):
        messages += [user(log_of(turn)), assistant("Yes.")]
    window = RollingWindow(MODEL, ContextConfig(max_context_tokens=WINDOW))
    kept = {one.index: one.is_same for one in window.fit("Be brief.", messages).messages}
    assert len(kept) < len(messages)
    assert kept[1]


def test_nothing_is_invented_where_nothing_is_missing() -> None:
    messages = [assistant("Hello."), user("Hi.")]
    assert sent(RollingWindow(MODEL), messages) == messages
