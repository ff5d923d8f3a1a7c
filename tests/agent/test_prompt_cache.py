"""The provider's cache of a session over real HTTP: how long it lives, and why it was missed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from rolling_chat.agent import Chat
from rolling_chat.events import PromptPlanned, TurnEnded
from tests.support.agent import collect, of_kind
from tests.support.caching import Place, opened_place
from tests.support.servers import AnthropicServer, OpenAIServer, Reply
from tests.support.servers.prompt_caches import MarkedCache, PrefixCache

CLAUDE, OTHER_CLAUDE, GPT = "anthropic/claude-sonnet-4-5", "anthropic/claude-haiku-4-5", "openai/gpt-4o"
WORDS = "The quick brown fox jumps over the lazy dog and comes back again. " * 120


@pytest_asyncio.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened_place(tmp_path) as opened:
        yield opened


async def _say(chat: Chat, text: str = WORDS) -> TurnEnded:
    (ended,) = of_kind(await collect(chat.send(text)), TurnEnded)
    assert not ended.error
    return ended


def _stored(chat: Chat) -> list[str]:
    return [one.cache_miss for one in chat._runtime.store.requests(chat.session.info.id)]


async def test_growing_requests_miss_nothing_and_the_time_begins_anew_with_each(place: Place) -> None:
    cache = MarkedCache(clock=place.clock)
    async with AnthropicServer(lambda _: Reply("yes"), cache=cache) as server:
        chat = place.open(server.api_base, CLAUDE)
        assert chat.session.planner.cache.status is None
        for _ in range(4):
            place.clock.now += 200
            assert (await _say(chat)).cache_misses == ()
    assert cache.log == _stored(chat) == [""] * 4
    status = chat.session.planner.cache.status
    assert status is not None
    assert (status.seconds_left, status.tokens) == (300.0, server.requests[-1].tokens)


async def _expire(place: Place, _chat: Chat, _cache: MarkedCache) -> None:
    place.clock.now += 301


async def _switch_model(_place: Place, chat: Chat, _cache: MarkedCache) -> None:
    chat.session.set_model(OTHER_CLAUDE)


async def _change_instructions(place: Place, _chat: Chat, _cache: MarkedCache) -> None:
    (place.folder / "AGENTS.md").write_text("Answer in rhymes.\n")


async def _lose(_place: Place, _chat: Chat, cache: MarkedCache) -> None:
    cache.drop_all()


async def _switch_tools(_place: Place, chat: Chat, _cache: MarkedCache) -> None:
    chat.session.setup.rolling = True  # `recall` is among the tools then


@pytest.mark.parametrize(
    ("do", "cause"),
    [
        (_expire, "expired"),
        (_switch_model, "model"),
        (_change_instructions, "instructions"),
        (_lose, "provider"),
        (_switch_tools, "tools"),
    ],
)
async def test_a_miss_has_the_cause_that_the_server_knows(
    place: Place, do: Callable[..., object], cause: str
) -> None:
    cache = MarkedCache(clock=place.clock)
    async with AnthropicServer(lambda _: Reply("yes"), cache=cache) as server:
        chat = place.open(server.api_base, CLAUDE, OTHER_CLAUDE)
        for _ in range(3):
            await _say(chat)
        await do(place, chat, cache)  # type: ignore[misc]
        ended = await _say(chat)
        assert (await _say(chat)).cache_misses == ()
    assert [name for name, _ in ended.cache_misses] == [cause]
    assert cache.log == _stored(chat) == ["", "", "", cause, ""]
    ((name, requests, tokens),) = chat.session.cache_misses()
    assert (name, requests) == (cause, 1)
    assert tokens > 2_000


@pytest.mark.parametrize("kind", ["claude", "gpt"])
async def test_a_trim_is_a_miss_of_what_was_kept(place: Place, kind: str) -> None:
    cache = MarkedCache(clock=place.clock) if kind == "claude" else PrefixCache(clock=place.clock)
    server = (
        AnthropicServer(lambda _: Reply("yes"), cache=cache)
        if isinstance(cache, MarkedCache)
        else OpenAIServer(lambda _: Reply("yes"))
    )
    if isinstance(server, OpenAIServer) and isinstance(cache, PrefixCache):
        server.cache = cache
    async with server:
        chat = place.open(server.api_base, CLAUDE if kind == "claude" else GPT, max_input_tokens=32_000)
        chat.session.overrides.set_rolling(True)
        while not chat.session.cache_misses():
            await _say(chat)
    assert cache.log == _stored(chat)
    assert cache.log[-1] == "trimmed"
    assert set(cache.log[:-1]) == {""}


async def test_a_miss_after_a_resume_is_found_from_what_was_stored(place: Place) -> None:
    cache = MarkedCache(clock=place.clock)
    async with AnthropicServer(lambda _: Reply("yes"), cache=cache) as server:
        chat = place.open(server.api_base, CLAUDE)
        for _ in range(2):
            await _say(chat)
        chat = place.resume(chat)
        status = chat.session.planner.cache.status
        assert status is not None
        assert (status.seconds_left, status.tokens) == (300.0, server.requests[-1].tokens)
        cache.drop_all()
        assert [name for name, _ in (await _say(chat)).cache_misses] == ["provider"]
        (place.folder / "AGENTS.md").write_text("Answer in rhymes.\n")
        chat = place.resume(chat)
        assert [name for name, _ in (await _say(chat)).cache_misses] == ["instructions"]
        place.clock.now += 301
        chat = place.resume(chat)
        assert [name for name, _ in (await _say(chat)).cache_misses] == ["expired"]
    assert cache.log == _stored(chat) == ["", "", "provider", "instructions", "expired"]
    assert {name for name, _, _ in chat.session.cache_misses()} == {"provider", "instructions", "expired"}


async def test_going_back_in_the_conversation_misses_nothing(place: Place) -> None:
    async with AnthropicServer(lambda _: Reply("yes"), cache=MarkedCache(clock=place.clock)) as server:
        chat = place.open(server.api_base, CLAUDE)
        for _ in range(3):
            await _say(chat)
        chat.session.history.undo()
        assert (await _say(chat, f"Or rather: {WORDS}")).cache_misses == ()


@pytest.mark.parametrize(("model", "trims"), [("openai/gpt-4o", True), ("openai/gpt-4.1", False)])
async def test_a_trim_for_nothing_waits_for_as_long_as_the_provider_keeps_the_prompt(
    place: Place, model: str, trims: bool
) -> None:
    async with OpenAIServer(lambda _: Reply("yes")) as server:
        chat = place.open(server.api_base, model, max_input_tokens=32_000)
        chat.session.overrides.set_rolling(True)
        while chat.session.preview.report().history < 0.82 * chat.session.preview.report().history_budget:
            await _say(chat)
        place.clock.now += 3_600
        (planned,) = of_kind(await collect(chat.send("and?")), PromptPlanned)
    assert planned.report.trimmed is trims


async def test_an_hours_marks_outlive_five_minutes_and_have_their_own_price(place: Place) -> None:
    cache = MarkedCache(clock=place.clock)
    async with AnthropicServer(lambda _: Reply("yes"), cache=cache) as server:
        chat = place.open(server.api_base, CLAUDE)
        chat.session.overrides.set("cache_ttl", "1h")
        await _say(chat)
        place.clock.now += 3_000
        status = chat.session.planner.cache.status
        assert (await _say(chat)).cache_misses == ()
    assert status is not None
    assert status.seconds_left == 600.0
    assert cache.log == ["", ""]
    assert [request.refused for request in server.requests] == ["", ""]
    first = place.store.requests(chat.session.info.id)[0].usage
    info = place.catalog.lookup(CLAUDE)
    assert info is not None
    assert info.prices.input is not None
    assert info.prices.output is not None
    assert first.cached_write_tokens == first.input_tokens
    written, said = first.input_tokens * 2 * info.prices.input, first.output_tokens * info.prices.output
    assert first.cost == pytest.approx(written + said)
