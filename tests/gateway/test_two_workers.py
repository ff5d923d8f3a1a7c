"""The gateway in a LiteLLM proxy with two workers, beside the program itself.

The same growing conversations go through both: by unmodified clients of OpenAI and Anthropic through the
proxy, whose workers share a real Redis and of which one is killed on the way, and through the program's own
chats. The models behind them count by six tokenizers, and refuse what does not fit.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from rolling_chat.agent import Chat
from rolling_chat.settings.schema import AgentSettings, ContextSettings
from tests.support.agent import collect
from tests.support.caching import opened_place
from tests.support.litellm_proxy import MASTER_KEY, LiteLLMProxy, proxy_folder, redis_server
from tests.support.servers import Fail, OpenAIServer, Recorded, Reply
from tests.support.tokenizers import six_tokenizers

if TYPE_CHECKING:
    import anthropic
    import openai

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("real-proxy")]

CONVERSATIONS = int(os.environ.get("ROLLING_CHAT_CONVERSATIONS", "500"))
TURNS, AT_ONCE = 10, 12
TOKENIZERS = {tokenizer.model.replace("/", "-"): tokenizer for tokenizer in six_tokenizers()}
# so that every conversation is trimmed a few times, however its model counts
WINDOWS = {name: 3_000 if name.startswith(("gpt", "local-framed")) else 9_000 for name in TOKENIZERS}

Body = dict[str, Any]


class CountingServer(OpenAIServer):
    """Counts by the tokenizer of the model that is asked for."""

    def count(self, body: Body) -> int:
        return TOKENIZERS[body["model"]].report(plain(body), body.get("tools"))

    def refusal(self, body: Body, tokens: int) -> Fail | None:
        self.window = WINDOWS[body["model"]]
        return super().refusal(body, tokens)


def plain(body: Body) -> list[Body]:
    """The messages of a request with their content as text: as a cache compares them, without its marks."""
    return [{**message, "content": text_of(message["content"])} for message in body["messages"]]


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def answer_to(body: Body) -> Reply:
    """An answer that only fits its question."""
    question = plain(body)[-1]["content"].split(":")[0]
    return Reply(f"Answer to {question}. " + "So it is. " * 20)


def questions(number: int) -> Iterator[str]:
    """The questions of one conversation, the same in every run."""
    words = random.Random(number)
    for turn in range(TURNS):
        said = " ".join(str(words.choice(["alpha", "Beta", "gamma42", "delta", "αβγ"])) for _ in range(180))
        yield f"conversation {number} question {turn}: {said}"


def model_of(number: int) -> str:
    return list(TOKENIZERS)[number % len(TOKENIZERS)]


def config(address: str, port: int) -> Body:
    models = [
        {
            "model_name": name,
            "litellm_params": {"model": f"openai/{name}", "api_base": address, "api_key": "any"},
            "model_info": {"max_input_tokens": WINDOWS[name]},
        }
        for name in TOKENIZERS
    ]
    settings = {
        "callbacks": ["rolling_chat.gateway.handler"],
        "num_retries": 0,
        # Anthropic's requests to a model of OpenAI's go by chat completions, too
        "use_chat_completions_url_for_anthropic_messages": True,
    }
    redis = {"coordination_redis": {"host": "127.0.0.1", "port": port}}
    return {"model_list": models, "litellm_settings": settings, "general_settings": redis}


@dataclass
class Clients:
    """Clients of both APIs; which one a conversation has, and whether it streams, goes by its number."""

    address: str
    openai: openai.AsyncOpenAI = field(init=False)
    anthropic: anthropic.AsyncAnthropic = field(init=False)

    def __post_init__(self) -> None:
        import anthropic
        import openai

        self.openai = openai.AsyncOpenAI(base_url=f"{self.address}/v1", api_key=MASTER_KEY)
        self.anthropic = anthropic.AsyncAnthropic(base_url=self.address, api_key=MASTER_KEY)

    async def ask(self, number: int, system: str, messages: list[Any]) -> str | None:
        """Return the answer."""
        kind, model = number // len(TOKENIZERS) % 4, model_of(number)
        if kind < 2:
            asked: Any = {"model": model, "messages": [{"role": "system", "content": system}, *messages]}
            if kind == 0:
                answer = await self.openai.chat.completions.create(**asked)
                return answer.choices[0].message.content
            stream = await self.openai.chat.completions.create(**asked, stream=True)
            pieces = [chunk.choices[0].delta.content async for chunk in stream if chunk.choices]
            return "".join(filter(None, pieces))
        # as much room for the answer as the program keeps
        asked = {"model": model, "max_tokens": WINDOWS[model] // 3, "system": system, "messages": messages}
        if kind == 2:
            (block,) = (await self.anthropic.messages.create(**asked)).content
            return getattr(block, "text", None)
        async with self.anthropic.messages.stream(**asked) as streamed:
            return await streamed.get_final_text()

    async def close(self) -> None:
        await self.openai.close()
        await self.anthropic.close()


async def test_clients_of_two_workers_fare_as_the_program_does(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    programs = proxy_folder(request.config.cache)
    server = CountingServer(answer_to)
    with ExitStack() as stack:
        stack.enter_context(server.in_thread())
        await talk_by_the_program(server.api_base, tmp_path / "program")
        own = by_conversation(server.requests)
        server.requests.clear()
        system = own["conversation 0"][0][0]["content"]
        port = stack.enter_context(redis_server(tmp_path))
        proxy = LiteLLMProxy(programs, config(server.api_base, port), tmp_path, workers=2)
        stack.enter_context(proxy)
        await talk_by_clients(proxy, system)
    assert "goes on as it came" not in proxy.log.read_text()
    seen = by_conversation(server.requests)
    assert [one.refused for one in server.requests if one.refused] == []
    for found in (own, seen):
        assert sum(map(len, found.values())) == CONVERSATIONS * TURNS
        assert all(len(prompts[-1]) < 2 * TURNS for prompts in found.values()), "all were trimmed"
    print_by_tokenizer(server.requests, seen, own)
    gateway, program = (mean_uncached(found) for found in (seen, own))
    print(f"{CONVERSATIONS} conversations, {len(server.requests)} requests, none over; one worker died")
    print(f"uncached/new: {gateway:.3f} by two workers, {program:.3f} by the program")
    assert gateway <= 1.1 * program


async def answered(clients: Clients, number: int, system: str, messages: list[Any]) -> str | None:
    """Ask, and once more what was torn in mid-answer when its worker died. A refusal fails the test."""
    import anthropic
    import openai

    try:
        return await clients.ask(number, system, messages)
    except (httpx.TransportError, openai.APIConnectionError, anthropic.APIConnectionError):
        return await clients.ask(number, system, messages)


async def talk_by_clients(proxy: LiteLLMProxy, system: str) -> None:
    """Let all conversations take place; half-way, a worker dies."""
    clients = Clients(proxy.address)
    limit, done, half_done = asyncio.Semaphore(AT_ONCE), 0, asyncio.Event()

    async def talk(number: int) -> None:
        nonlocal done
        messages: list[Any] = []
        for question in questions(number):
            messages.append({"role": "user", "content": question})
            async with limit:
                reply = await answered(clients, number, system, messages)
            assert reply == answer_to({"messages": messages}).text
            messages.append({"role": "assistant", "content": reply})
            done += 1
            if done >= CONVERSATIONS * TURNS // 2:
                half_done.set()

    async def kill_one() -> None:
        await half_done.wait()
        await asyncio.to_thread(proxy.kill_worker)

    await asyncio.gather(kill_one(), *map(talk, range(CONVERSATIONS)))
    await clients.close()


async def talk_by_the_program(address: str, home: Path) -> None:
    """Let all conversations take place in chats of the program without tools, with its own defaults."""
    context = ContextSettings(enabled=True, summarize="off")
    async with opened_place(home) as place:
        for number in range(CONVERSATIONS):
            model = model_of(number)
            runtime = place.runtime(
                address, f"openai/{model}", context=context, max_input_tokens=WINDOWS[model]
            )
            settings = replace(runtime.settings, agent=AgentSettings(tools="none"))
            chat = Chat.open(replace(runtime, settings=settings))
            for question in questions(number):
                await collect(chat.send(question))
            chat.close()


def by_conversation(requests: list[Recorded]) -> dict[str, list[list[Body]]]:
    """What the models were sent, by conversation and in order; of a request sent twice the last."""
    seen: dict[str, dict[str, list[Body]]] = defaultdict(dict)
    for recorded in requests:
        if not recorded.refused:
            messages = plain(recorded.body)
            name, _, turn = messages[-1]["content"].split(":")[0].partition(" question ")
            seen[name][turn] = messages
    return {name: list(prompts.values()) for name, prompts in seen.items()}


def print_by_tokenizer(
    requests: list[Recorded], seen: dict[str, list[list[Body]]], own: dict[str, list[list[Body]]]
) -> None:
    """Print a line a tokenizer: how full its window became, and what was not cached of what was sent."""
    for place, name in enumerate(TOKENIZERS):
        sent = [one for one in requests if one.body["model"] == name]
        names = [f"conversation {number}" for number in range(place, CONVERSATIONS, len(TOKENIZERS))]
        if names:
            fullest = max(one.tokens for one in sent) / WINDOWS[name]
            shares = [mean_uncached({one: found[one] for one in names}) for found in (seen, own)]
            print(
                f"{name:16} {len(names):3} conversations, {len(sent):4} requests, at most {fullest:4.0%} of "
                f"the window; uncached/new {shares[0]:.3f}, by the program {shares[1]:.3f}"
            )


def mean_uncached(seen: dict[str, list[list[Body]]]) -> float:
    return sum(map(uncached_share, seen.values())) / len(seen)


def uncached_share(prompts: list[list[Body]]) -> float:
    """The characters that no request before began with, over those that were new."""
    uncached = new = 0
    before: list[Body] = []
    for messages in prompts:
        same = next(
            (at for at, (one, other) in enumerate(zip(before, messages, strict=False)) if one != other),
            min(len(before), len(messages)),
        )
        uncached += len(json.dumps(messages[same:]))
        new += len(json.dumps(messages[-2:] if before else messages))
        before = messages
    return uncached / new
