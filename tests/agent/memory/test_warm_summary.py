"""A summary goes on from the chat's own prompt where the provider's cache makes that cheaper."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from rolling_chat.agent import Chat, ChatError
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.settings.catalog import ModelCatalog
from rolling_chat.settings.schema import ContextSettings
from tests.support.agent import collect
from tests.support.caching import Place, opened_place
from tests.support.servers import AnthropicServer, Call, OpenAIServer, Reply
from tests.support.servers.prompt_caches import MarkedCache, PrefixCache

CLAUDE, GPT = "anthropic/claude-sonnet-4-5", "openai/gpt-5.1"
PAGE = "It is so with the lexer and the parser, and has been for as long as anybody can remember. " * 60
ROLLING = ContextSettings(enabled=True, max_history_tokens=14_000, summarize="model")
WARM, COLD = "Leave the task for a moment", "Summarise a conversation"


class Script:
    """Answers at length, and questions for a summary with `summary`; keeps those."""

    def __init__(self, summary: Reply | None = None) -> None:
        self.summary = summary or Reply("They talked of the lexer and the parser.")
        self.asked: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> Reply:
        if WARM in str(body["messages"][-1]) or COLD in str(body["messages"][-1]):
            self.asked.append(body)
            return self.summary if WARM in str(body["messages"][-1]) else Reply("They talked of the lexer.")
        return Reply(PAGE, words=100)


@pytest_asyncio.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened_place(tmp_path) as opened:
        yield opened


async def _talk(chat: Chat, script: Script, questions: int) -> None:
    while len(script.asked) < questions:
        await collect(chat.send("Why is the lexer so?"))
        await chat.session.summaries.settled()


def _kind(body: dict[str, Any]) -> str:
    return WARM if WARM in str(body["messages"][-1]) else COLD


async def test_claude_reads_the_conversation_from_its_cache(place: Place) -> None:
    script = Script()
    async with AnthropicServer(script, cache=MarkedCache(clock=place.clock)) as server:
        chat = place.open(server.api_base, CLAUDE, context=ROLLING)
        await _talk(chat, script, 1)
        records = place.store.requests(chat.session.info.id)
        answer, summary = records[-2:]
        before = server.requests[-2].body
    (asked,) = script.asked
    assert chat.session.summaries.current is not None
    assert (asked["tools"], asked["tool_choice"]) == (before["tools"], before["tool_choice"])
    assert WARM in asked["messages"][-1]["content"][-1]["text"]
    assert (answer.purpose, summary.purpose) == ("answer", "summary")
    assert summary.usage.cached_read_tokens == answer.usage.input_tokens
    assert summary.usage.cached_read_tokens > 0.8 * summary.usage.input_tokens
    rebuilt = [rebuild_request(place.store, record) for record in records]
    assert all(one.is_same for one in rebuilt)
    assert chat.session.usage_by_purpose()["summary"][0] == 1
    assert chat.session.cache_misses() == []


async def test_elsewhere_no_tool_can_be_called(place: Place) -> None:
    script, server = Script(), OpenAIServer()
    server._script, server.cache = script, PrefixCache(clock=place.clock, ttl=3_600.0)
    async with server:
        chat = place.open(server.api_base, GPT, context=ROLLING)
        await _talk(chat, script, 1)
        summary = place.store.requests(chat.session.info.id)[-1]
    (asked,) = script.asked
    assert (_kind(asked), asked["tool_choice"], len(asked["tools"])) == (WARM, "none", 2)
    assert summary.usage.cached_read_tokens > 0.8 * summary.usage.input_tokens


async def test_a_tool_call_is_a_failed_pass_and_the_next_has_a_prompt_of_its_own(place: Place) -> None:
    script = Script(Reply("", (Call("read_file", '{"path": "a.txt"}'),)))
    async with AnthropicServer(script) as server:
        chat = place.open(server.api_base, CLAUDE, context=ROLLING)
        await _talk(chat, script, 1)
        assert chat.session.summaries.current is None
        await _talk(chat, script, 2)
    assert [_kind(body) for body in script.asked[:2]] == [WARM, COLD]
    assert chat.session.summaries.current is not None
    first = next(one for one in place.store.requests(chat.session.info.id) if one.purpose == "summary")
    assert "called a tool" in first.error


@pytest.mark.parametrize("why", ["cold", "no price", "another model"])
async def test_a_prompt_of_its_own_is_taken_where_the_cache_saves_nothing(place: Place, why: str) -> None:
    script = Script()
    async with AnthropicServer(script) as server:
        if why == "no price":
            entry = {"mode": "chat", "litellm_provider": "anthropic", "max_input_tokens": 200_000}
            place.catalog = ModelCatalog({"claude-sonnet-4-5": entry})
        other = "anthropic/claude-haiku-4-5" if why == "another model" else ""
        context = replace(ROLLING, summary_model=other, summarize="off" if why == "cold" else "model")
        chat = place.open(server.api_base, CLAUDE, "anthropic/claude-haiku-4-5", context=context)
        if why == "cold":
            for _ in range(5):
                await collect(chat.send("Why is the lexer so?"))
            chat.session.overrides.set("summarize", "model")
            place.clock.now += 299
            await chat.session.summaries.propose()
        else:
            await _talk(chat, script, 1)
    assert _kind(script.asked[0]) == COLD


async def test_a_summary_is_no_question_to_another_model(place: Place) -> None:
    """The second question of a pass would stand behind what another model is sent by then."""
    script = Script(Reply("Barnaby Quux sold 4,711 zeppelins in Ulan Bator."))
    other = "anthropic/claude-haiku-4-5"

    def answer(body: dict[str, Any]) -> Reply:
        reply = script(body)
        if script.asked and chat.session.model == CLAUDE:
            chat.session.set_model(other)
        return reply

    async with AnthropicServer(answer) as server:
        chat = place.open(server.api_base, CLAUDE, other, context=ROLLING)
        await _talk(chat, script, 1)
        status = chat.session.planner.cache.status
    assert chat.session.model == other
    assert [one["model"] for one in script.asked] == ["claude-sonnet-4-5"]
    assert status is None  # the other model has been sent nothing


async def test_no_summary_is_paid_for_beyond_a_limit_of_cost(place: Place) -> None:
    script = Script()
    async with AnthropicServer(script) as server:
        chat = place.open(server.api_base, CLAUDE, context=replace(ROLLING, summarize="off"))
        for _ in range(5):
            await collect(chat.send("Why is the lexer so?"))
        chat.session.overrides.set("summarize", "model")
        agent = replace(chat._runtime.settings.agent, max_cost_session=0.01)
        chat._runtime.settings = replace(chat._runtime.settings, agent=agent)
        with pytest.raises(ChatError, match=r"its cost might pass agent\.max_cost_session"):
            await chat.session.summaries.propose()
    assert script.asked == []
