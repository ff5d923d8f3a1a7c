"""200 growing requests of the program under the cache rules of two providers, over real HTTP.

The share of the input that came from the cache; whether each miss has the cause that the server knows; what
the input of each summary cost, as a share of the conversation read afresh.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rolling_chat.agent import Chat
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.sessions.records import RequestRecord
from rolling_chat.settings.catalog import Prices
from rolling_chat.settings.schema import ContextSettings
from tests.benchmarks.workloads import sentence
from tests.support.agent import collect
from tests.support.caching import Place, opened_place
from tests.support.servers import AnthropicServer, Call, OpenAIServer, Reply
from tests.support.servers.prompt_caches import MarkedCache, PrefixCache

REQUESTS = 200
_WARM, _COLD = "Leave the task for a moment", "Summarise a conversation"
_DAY = 86_400.0
_WORDS = 90  # of a question and of an answer

Act: TypeAlias = Callable[[Place, Chat, MarkedCache | PrefixCache], None]


@dataclass(frozen=True)
class Provider:
    """A kind of server, the model that is asked, another one of it, and how long its cache lives."""

    name: str
    model: str
    other: str
    ttl: float


PROVIDERS = (
    Provider("Anthropic's rules", "anthropic/claude-sonnet-4-5", "anthropic/claude-haiku-4-5", 300.0),
    Provider("OpenAI's rules", "openai/gpt-5.1", "openai/gpt-4.1", _DAY),
)


class Script:
    """Answers a question with a call or a page, and a question for a summary with words of the chat."""

    def __init__(self) -> None:
        self.rng = random.Random(7)
        self.said: list[str] = []

    def __call__(self, body: dict[str, Any]) -> Reply:
        if is_aside(body):
            return Reply(" ".join(self.said[-8:])[:1_500])
        text = sentence(self.rng, _WORDS)
        self.said.append(text)
        if "tool" in body["messages"][-1]["role"] or "tool_result" in str(body["messages"][-1]):
            return Reply(text)
        return Reply(text, (Call("read_file", '{"path": "notes.txt"}', f"c{len(self.said)}"),))


def is_aside(body: dict[str, Any]) -> bool:
    """Whether a request asks for a summary."""
    last = str(body["messages"][-1])
    return _WARM in last or _COLD in last


def _expire(place: Place, _chat: Chat, cache: MarkedCache | PrefixCache) -> None:
    place.clock.now += _DAY + 1 if isinstance(cache, PrefixCache) else 301


def _lose(_place: Place, _chat: Chat, cache: MarkedCache | PrefixCache) -> None:
    cache.drop_all()


def _instruct(place: Place, _chat: Chat, _cache: MarkedCache | PrefixCache) -> None:
    (place.folder / "AGENTS.md").write_text("Answer in short sentences.\n")


def _take_tools(_place: Place, chat: Chat, _cache: MarkedCache | PrefixCache) -> None:
    setup = chat.session.setup
    setup._all_tools = tuple(tool for tool in setup._all_tools if tool.name != "recall")
    setup.revision += 1


def run() -> Iterator[str]:
    """Three lines a provider: what came from the cache, the misses, the summaries."""
    for provider in PROVIDERS:
        yield from asyncio.run(_lines(provider))


async def _lines(provider: Provider) -> Sequence[str]:
    with tempfile.TemporaryDirectory() as home:
        async with opened_place(Path(home)) as place:
            return await _measure(place, provider)


async def _measure(place: Place, provider: Provider) -> Sequence[str]:
    script = Script()
    cache: MarkedCache | PrefixCache
    server: AnthropicServer | OpenAIServer
    if provider.model.startswith("anthropic"):
        cache = MarkedCache(clock=place.clock, least=1_024, aside=is_aside)
        server = AnthropicServer(script, cache=cache)
    else:
        cache = PrefixCache(clock=place.clock, ttl=provider.ttl, aside=is_aside)
        server = OpenAIServer(script)
        server.cache = cache
    (place.folder / "notes.txt").write_text(sentence(script.rng, 2 * _WORDS))
    async with server:
        context = ContextSettings(enabled=True, summarize="model")
        chat = place.open(server.api_base, provider.model, provider.other, context=context)
        await _talk(place, chat, cache, provider)
        records = place.store.requests(chat.session.info.id)
        covered = sum(one.tokens_before for one in place.store.summaries(chat.session.info.id))
    return [*_report(place, provider, records, cache.log), *_summaries(place, records, covered)]


async def _talk(place: Place, chat: Chat, cache: MarkedCache | PrefixCache, provider: Provider) -> None:
    rng = random.Random(11)
    acts: dict[int, Act] = {30: _expire, 45: _instruct, 60: _lose, 75: _take_tools}
    for turn in range(REQUESTS // 2):
        if turn in acts:
            acts[turn](place, chat, cache)
        if turn == 90:
            chat.session.set_model(provider.other)
        if turn == 92:
            chat.session.set_model(provider.model)
        place.clock.now += 20
        await collect(chat.send(sentence(rng, _WORDS)))
        await chat.session.summaries.settled()


def _report(
    place: Place, provider: Provider, records: Sequence[RequestRecord], log: Sequence[str]
) -> Iterator[str]:
    answers = [record for record in records if record.purpose == "answer"]
    given = sum(record.usage.input_tokens for record in answers)
    read = sum(record.usage.cached_read_tokens for record in answers)
    ours = [record.cache_miss for record in answers]
    alike = sum(mine == theirs for mine, theirs in zip(ours, log, strict=True))
    same = sum(rebuild_request(place.store, record).is_same for record in records)
    mean = given / len(answers)
    yield f"{provider.name}, {provider.model}: {len(answers)} requests of {mean:,.0f} tokens on average"
    yield f"  {100 * read / given:.1f} % of the input from the cache"
    counted = ", ".join(f"{count} {cause}" for cause, count in Counter(filter(None, log)).most_common())
    yield f"  misses by the server's log: {counted}; {alike} of {len(log)} requests judged alike"
    yield from (
        f"    request {index}: the program says {mine or 'no miss'}, the server {theirs or 'no miss'}"
        for index, (mine, theirs) in enumerate(zip(ours, log, strict=True))
        if mine != theirs
    )
    yield f"  {same} of {len(records)} requests built again with the same hash"


def _summaries(place: Place, records: Sequence[RequestRecord], covered: int) -> Iterator[str]:
    """What the input of the summaries cost, beside the prompt of the chat, and beside what they cover."""
    made = [at for at, record in enumerate(records) if record.purpose == "summary"]
    if not made:
        yield "  no summary was made"
        return
    warm = sum(records[at].plan is not None for at in made)
    paid, price = 0.0, 0.0
    shares = []
    for at in made:
        prices = _prices(place, records[at])
        price = prices.input or 0.0
        chat = next(one for one in reversed(records[:at]) if one.purpose == "answer")
        cost = _input_cost(records[at], prices)
        paid += cost
        shares.append(cost / (chat.usage.input_tokens * price))
    yield (
        f"  {len(made)} requests for summaries, {warm} behind the chat's prompt: their input cost "
        f"{sum(shares) / len(shares):.2f} of the conversation read afresh, {max(shares):.2f} at worst"
    )
    yield f"    and {paid / (covered * price):.2f} of the messages that they cover"


def _prices(place: Place, record: RequestRecord) -> Prices:
    info = place.catalog.lookup(record.model)
    assert info is not None
    return info.prices_of(record.usage.input_tokens)


def _input_cost(record: RequestRecord, prices: Prices) -> float:
    """What the input of a request cost, in US dollars."""
    usage = record.usage
    assert prices.input is not None
    assert prices.cache_read is not None
    fresh = usage.input_tokens - usage.cached_read_tokens - usage.cached_write_tokens
    paid = fresh * prices.input + usage.cached_read_tokens * prices.cache_read
    return paid + usage.cached_write_tokens * (prices.write("5m") or 0.0)
