"""The gateway in a real LiteLLM proxy, behind unmodified clients.

Two workers, each a process of its own, share a real Redis; one of them is killed on the way and started
again. The models behind them count by six tokenizers, and refuse what does not fit.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.gateway import Worker
from tests.support.litellm_proxy import MASTER_KEY, LiteLLMProxy, proxy_folder, redis_server
from tests.support.program import program_environment
from tests.support.servers import AnthropicServer, OpenAIServer, Reply
from tests.support.servers.script import Fail
from tests.support.tokenizers import six_tokenizers

if TYPE_CHECKING:
    import openai

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("real-proxy")]

CONVERSATIONS = int(os.environ.get("ROLLING_CHAT_CONVERSATIONS", "500"))
TURNS, AT_ONCE = 10, 12
SYSTEM = {"role": "system", "content": "You are helpful."}
TOKENIZERS = {tokenizer.model.replace("/", "-"): tokenizer for tokenizer in six_tokenizers()}
# so that every conversation is trimmed a few times, however its model counts
WINDOWS = {name: 3_000 if name.startswith(("gpt", "local-framed")) else 9_000 for name in TOKENIZERS}
REDIS = "coordination_redis"

Body = dict[str, Any]


class CountingServer(OpenAIServer):
    """Counts by the tokenizer of the model that is asked for."""

    def count(self, body: Body) -> int:
        return TOKENIZERS[body["model"]].report(body["messages"], body.get("tools"))

    def refusal(self, body: Body, tokens: int) -> Fail | None:
        self.window = WINDOWS[body["model"]]
        return super().refusal(body, tokens)


def answer_to(body: Body) -> Reply:
    """An answer that only fits its question."""
    question = body["messages"][-1]["content"].split(":")[0]
    return Reply(f"Answer to {question}. " + "So it is. " * 20)


def questions(number: int) -> Iterator[str]:
    """The questions of one conversation, the same in every run."""
    words = random.Random(number)
    for turn in range(TURNS):
        said = " ".join(str(words.choice(["alpha", "Beta", "gamma42", "delta", "αβγ"])) for _ in range(180))
        yield f"conversation {number} question {turn}: {said}"


@pytest.fixture(scope="module")
def programs(request: pytest.FixtureRequest) -> Path:
    return proxy_folder(request.config.cache)


def config(address: str, port: int) -> Body:
    models = [
        {
            "model_name": name,
            "litellm_params": {"model": f"openai/{name}", "api_base": address, "api_key": "any"},
            "model_info": {"max_input_tokens": WINDOWS[name]},
        }
        for name in TOKENIZERS
    ]
    return {
        "model_list": models,
        "litellm_settings": {"callbacks": ["rolling_chat.gateway.handler"], "num_retries": 0},
        "general_settings": {REDIS: {"host": "127.0.0.1", "port": port}},
    }


async def test_clients_of_two_workers_are_never_over_and_keep_their_prefixes(
    programs: Path, tmp_path: Path
) -> None:
    import openai

    server = CountingServer(answer_to)
    with ExitStack() as stack:
        stack.enter_context(server.in_thread())
        port = stack.enter_context(redis_server(tmp_path))
        workers = [LiteLLMProxy(programs, config(server.api_base, port), tmp_path) for _ in range(2)]
        for worker in workers:
            stack.enter_context(worker)
        clients = [
            openai.AsyncOpenAI(base_url=f"{worker.address}/v1", api_key=MASTER_KEY, max_retries=0)
            for worker in workers
        ]
        limit, done, half_done = asyncio.Semaphore(AT_ONCE), 0, asyncio.Event()

        async def restart() -> None:
            await half_done.wait()
            workers[0].kill()
            await asyncio.to_thread(workers[0].start)

        async def talk(number: int) -> None:
            nonlocal done
            model, messages = list(TOKENIZERS)[number % len(TOKENIZERS)], [SYSTEM]
            for turn, question in enumerate(questions(number)):
                messages.append({"role": "user", "content": question})
                async with limit:
                    reply = await ask(clients, (number + turn) % 2, model, messages)
                assert reply == answer_to({"messages": messages}).text
                messages.append({"role": "assistant", "content": reply})
                done += 1
                if done >= CONVERSATIONS * TURNS // 2:
                    half_done.set()

        await asyncio.gather(restart(), *(talk(number) for number in range(CONVERSATIONS)))
        for client in clients:
            await client.close()
    for worker in workers:
        assert "goes on as it came" not in worker.log.read_text()
    seen = by_conversation(server)
    assert sum(map(len, seen.values())) == CONVERSATIONS * TURNS
    assert all(len(bodies[-1]["messages"]) < 2 * TURNS for bodies in seen.values()), "all were trimmed"
    uncached = sum(map(uncached_share, seen.values())) / len(seen)
    alone = [uncached_share([body async for body in planned_alone(number)]) for number in range(36)]
    print(f"uncached/new: {uncached:.3f} by two workers, {sum(alone) / len(alone):.3f} by one process")
    assert uncached <= 1.1 * sum(alone) / len(alone)


async def ask(
    clients: list[openai.AsyncOpenAI], at: int, model: str, messages: list[dict[str, str]]
) -> str | None:
    """Ask one worker, and the other while that one is down. A refusal fails the test."""
    import openai

    while True:
        try:
            answer = await clients[at].chat.completions.create(model=model, messages=messages)  # type: ignore[arg-type]
        except openai.APIConnectionError:
            at = 1 - at
        else:
            return answer.choices[0].message.content


def by_conversation(server: CountingServer) -> dict[str, list[Body]]:
    """What the models were sent, by conversation and in order; of a request sent twice the last."""
    seen: dict[str, dict[str, Body]] = defaultdict(dict)
    for recorded in server.requests:
        name, _, turn = recorded.body["messages"][-1]["content"].split(":")[0].partition(" question ")
        seen[name][turn] = recorded.body
    return {name: list(bodies.values()) for name, bodies in seen.items()}


def uncached_share(bodies: list[Body]) -> float:
    """The characters that no request before began with, over those that were new."""
    uncached = new = 0
    before: list[Any] = []
    for body in bodies:
        messages = body["messages"]
        same = next(
            (at for at, (one, other) in enumerate(zip(before, messages, strict=False)) if one != other),
            min(len(before), len(messages)),
        )
        uncached += len(json.dumps(messages[same:]))
        new += len(json.dumps(messages[-2:] if before else messages))
        before = messages
    return uncached / new


async def planned_alone(number: int) -> Any:
    """What one process makes of a conversation, with nobody else's."""
    name = list(TOKENIZERS)[number % len(TOKENIZERS)]
    worker, messages = Worker(WINDOWS[name], name=f"openai/{name}"), [SYSTEM]
    for question in questions(number):
        messages.append({"role": "user", "content": question})
        sent = await worker.send({"messages": messages})
        await worker.answer(TOKENIZERS[name].report(sent["messages"]))
        yield sent
        messages.append({"role": "assistant", "content": answer_to({"messages": messages}).text})


def test_a_client_of_anthropic_keeps_its_signed_thinking(programs: Path, tmp_path: Path) -> None:
    import anthropic

    def script(body: Body) -> Reply:
        text = body["messages"][-1]["content"]
        return Reply("Yes. " * 100, reasoning=f"thinking of {len(str(text))} characters " * 20)

    server = AnthropicServer(script, window=8_000)
    with server.in_thread():
        model = {"model": "anthropic/claude-sonnet-4-5", "api_base": server.api_base, "api_key": "any"}
        row = {"model_name": "claude", "litellm_params": model, "model_info": {"max_input_tokens": 8_000}}
        settings = {"callbacks": ["rolling_chat.gateway.handler"]}
        with LiteLLMProxy(programs, {"model_list": [row], "litellm_settings": settings}, tmp_path) as proxy:
            client = anthropic.Anthropic(base_url=proxy.address, api_key=MASTER_KEY, max_retries=0)
            messages: list[Any] = []
            omitted = 0
            for turn in range(24):
                messages.append({"role": "user", "content": f"Question {turn}. " + "word " * 300})
                raw = client.messages.with_raw_response.create(
                    model="claude", max_tokens=2_000, system="Be nice.", messages=messages,
                    thinking={"type": "enabled", "budget_tokens": 1_024},
                )  # fmt: skip
                omitted = int(raw.headers["x-rolling-omitted"])
                messages.append({"role": "assistant", "content": raw.parse().model_dump()["content"]})
            assert omitted > 0
            with client.messages.stream(model="claude", max_tokens=500, messages=messages[:1]) as stream:
                assert stream.get_final_text() == "Yes. " * 100
            with pytest.raises(anthropic.BadRequestError, match="prompt is too long") as refused:
                client.messages.create(
                    model="claude", max_tokens=100, messages=[{"role": "user", "content": "word " * 9_000}]
                )
            assert refused.value.response.headers["x-rolling-outcome"] == "refused"
            client.close()
        assert "goes on as it came" not in proxy.log.read_text()
    assert len(server.requests) == 25


def test_the_program_itself_is_a_client(programs: Path, tmp_path: Path) -> None:
    server = OpenAIServer(lambda _body: Reply("Yes. " * 40), window=9_000)
    with server.in_thread():
        model = {"model": "openai/gpt-4o", "api_base": server.api_base, "api_key": "any"}
        row = {"model_name": "gpt-4o", "litellm_params": model, "model_info": {"max_input_tokens": 9_000}}
        settings = {"callbacks": ["rolling_chat.gateway.handler"]}
        with LiteLLMProxy(programs, {"model_list": [row], "litellm_settings": settings}, tmp_path) as proxy:
            environment = program_environment(tmp_path, OPENAI_API_KEY=MASTER_KEY)
            for turn in range(10):
                command = [sys.executable, "-m", "rolling_chat", "-p", f"Question {turn}. " + "word " * 900]
                command += ["--model", "openai/gpt-4o", "--api-base", f"{proxy.address}/v1"]
                command += ["--tools", "none", *(["--continue"] if turn else [])]
                ran = subprocess.run(
                    command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
                )
                assert (ran.returncode, ran.stdout.strip()) == (0, ("Yes. " * 40).strip()), ran.stderr
    last = server.requests[-1].body["messages"]
    assert len(last) < 20
    assert "conversation truncated" in json.dumps(last[0])
