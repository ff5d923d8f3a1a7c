"""Whole turns over real HTTP on loopback: the chat, its store and litellm, against strict servers."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import pytest_asyncio

from rolling_chat.agent import Chat, Runtime
from rolling_chat.events import Outcome, RetryWaiting, TextAdded, ToolEnded, TurnEnded
from rolling_chat.mentions import marked
from rolling_chat.messages import Ending
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.retries import RetryPolicy
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.catalog import load_catalog
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import AgentSettings, ModelSettings, Settings
from tests.support.agent import assert_well_formed, collect, of_kind
from tests.support.llama_server import LlamaServer, llama_server
from tests.support.pictures import png
from tests.support.servers import AnthropicServer, Break, Call, Fail, Hang, OpenAIServer, Recorded, Reply

OPENAI = "openai/gpt-4o"
CLAUDE = "anthropic/claude-sonnet-4-5"
KEYS = {"OPENAI_API_KEY": "sk-right-key", "ANTHROPIC_API_KEY": "sk-right-key"}
READS = (Call("read_file", '{"path": "a.txt"}', "c1"), Call("read_file", '{"path": "b.txt"}', "c2"))

OpenChat = Callable[..., tuple[Chat, Runtime]]


@pytest_asyncio.fixture
async def open_chat(tmp_path: Path) -> AsyncIterator[OpenChat]:
    """Opens a chat with a model at an address; two files lie in its folder. Waits are written down."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("alpha\n")
    (folder / "b.txt").write_text("beta\n")
    environ = {"ROLLING_CHAT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], **KEYS}
    providers: list[ModelProvider] = []
    runtimes: list[Runtime] = []

    def open_it(
        model: str, api_base: str, waits: list[float] | None = None, **agent: Any
    ) -> tuple[Chat, Runtime]:
        async def wait(seconds: float) -> None:
            (waits if waits is not None else []).append(seconds)

        limits = {"max_input_tokens": 4096, "max_output_tokens": 24} if "tiny" in model else {}
        models = MappingProxyType({model: ModelSettings(api_base=api_base, **limits)})
        paths, catalog = find_paths(environ), load_catalog()
        provider = ModelProvider(
            environ=environ, catalog=catalog, retries=RetryPolicy(base=0.001), sleep=wait
        )
        runtime = Runtime(
            settings=Settings(model=model, models=models, agent=AgentSettings(**agent)),
            paths=paths,
            catalog=catalog,
            store=open_store(paths.database),
            provider=provider,
            folder=folder,
            environ=environ,
        )
        providers.append(provider)
        runtimes.append(runtime)
        return Chat.open(runtime), runtime

    yield open_it
    for provider in providers:
        await provider.close()
    for runtime in runtimes:
        runtime.store.close()


async def test_parallel_calls_are_run_and_their_results_taken_by_openai(open_chat: OpenChat) -> None:
    script = [Reply("I look.", READS), Reply("Alpha and beta.")]
    async with OpenAIServer(script, key="sk-right-key") as server:
        chat, runtime = open_chat(OPENAI, server.api_base)
        events = await collect(chat.send("What is in a.txt and b.txt?"))

    assert _end(events).outcome is Outcome.DONE
    assert [event.message.text for event in of_kind(events, ToolEnded)] == ["alpha\n", "beta\n"]
    assert "".join(event.text for event in of_kind(events, TextAdded)) == "I look.Alpha and beta."
    assert [request.refused for request in server.requests] == ["", ""]
    assert [message["role"] for message in server.requests[1].messages[2:]] == ["assistant", "tool", "tool"]
    _assert_log_has_the_reported_usage(chat, runtime, server.requests)
    assert_well_formed(chat, runtime)


async def test_claude_reads_its_cache_at_the_second_and_the_third_request(open_chat: OpenChat) -> None:
    more = Call("list_files", "{}", "c3")
    script = [Reply("I look.", READS, reasoning="Two files."), Reply("", (more,)), Reply("All seen.")]
    async with AnthropicServer(script, key="sk-right-key") as server:
        chat, runtime = open_chat(CLAUDE, server.api_base)
        events = await collect(chat.send("What is in a.txt and b.txt?"))

    assert _end(events).outcome is Outcome.DONE
    assert [request.refused for request in server.requests] == ["", "", ""]
    for request in server.requests:
        assert _is_marked(request.body["tools"][-1])
        assert _is_marked(request.body["system"][-1])
        assert _is_marked(request.messages[-1]["content"][-1])
        assert str(request.body).count("cache_control") == 3
    first, second, third = runtime.store.requests(chat.session.info.id)
    assert first.usage.cached_read_tokens == 0
    assert second.usage.cached_read_tokens == first.usage.input_tokens == server.requests[0].tokens
    assert third.usage.cached_read_tokens == second.usage.input_tokens == server.requests[1].tokens
    _assert_log_has_the_reported_usage(chat, runtime, server.requests)
    assert_well_formed(chat, runtime)


@pytest.mark.parametrize(("kind", "model"), [(OpenAIServer, OPENAI), (AnthropicServer, CLAUDE)])
async def test_calls_that_all_have_one_id_stay_apart(
    open_chat: OpenChat, kind: type[OpenAIServer | AnthropicServer], model: str
) -> None:
    """Local servers number the calls of every reply anew, and some give all of them one id."""
    calls = tuple(Call("read_file", f'{{"path": "{name}.txt"}}', "call_0") for name in "ab")
    async with kind([Reply("", calls[:1]), Reply("", calls[1:]), Reply("Done."), Reply("Yes.")]) as server:
        chat, _runtime = open_chat(model, server.api_base)
        await collect(chat.send("Read both."))
        assert _end(await collect(chat.send("Sure?"))).outcome is Outcome.DONE

    assert [request.refused for request in server.requests] == [""] * 4
    assert [message.text for message in chat.session.messages if message.role == "tool"] == [
        "alpha\n",
        "beta\n",
    ]


@pytest.mark.parametrize(
    "arguments",
    ["[" * 5_000, '{"a": 1e999}', '{"path": "\\ud800"}', '{"path": NaN}', '{"p'],
    ids=("deep", "infinite", "surrogate", "nan", "cut"),
)
@pytest.mark.parametrize(("kind", "model"), [(OpenAIServer, OPENAI), (AnthropicServer, CLAUDE)])
async def test_no_arguments_of_a_call_break_the_session(
    open_chat: OpenChat, kind: type[OpenAIServer | AnthropicServer], model: str, arguments: str
) -> None:
    async with kind(
        [Reply("", (Call("read_file", arguments, "c1"),)), Reply("Sorry."), Reply("Yes.")]
    ) as server:
        chat, runtime = open_chat(model, server.api_base)
        assert _end(await collect(chat.send("Read."))).error == ""
        assert _end(await collect(chat.send("Still there?"))).outcome is Outcome.DONE

    assert [message.ending for message in chat.session.messages if message.role == "tool"] == [Ending.FAILED]
    assert_well_formed(chat, runtime)


async def test_a_stop_in_mid_stream_closes_the_connection_and_keeps_what_came(open_chat: OpenChat) -> None:
    async with OpenAIServer([Hang(Reply("wait for it")), Reply("Here.")]) as server:
        chat, runtime = open_chat(OPENAI, server.api_base)
        events = []
        async for event in chat.send("go"):
            events.append(event)
            if isinstance(event, TextAdded):
                chat.stop()
        await server.wait_disconnected()
        assert _end(events).outcome is Outcome.CANCELLED
        assert (chat.session.messages[-1].text, chat.session.messages[-1].ending) == (
            "wait ",
            Ending.CANCELLED,
        )
        assert runtime.store.requests(chat.session.info.id)[0].error == "cancelled"
        assert_well_formed(chat, runtime)
        assert _end(await collect(chat.send("and?"))).outcome is Outcome.DONE


async def test_a_throttled_request_waits_as_long_as_it_is_told(open_chat: OpenChat) -> None:
    throttled = Fail(429, {"error": {"message": "Rate limit reached"}}, headers={"retry-after": "7"})
    waits: list[float] = []
    async with OpenAIServer([throttled, Reply("Here.")]) as server:
        chat, runtime = open_chat(OPENAI, server.api_base, waits)
        events = await collect(chat.send("go"))

    (waiting,) = of_kind(events, RetryWaiting)
    assert (waiting.attempt, waiting.delay) == (1, 7.0)
    assert waits == [7.0]
    assert _end(events).outcome is Outcome.DONE
    assert chat.session.messages[-1].text == "Here."
    assert len(runtime.store.requests(chat.session.info.id)) == 1


@pytest.mark.parametrize(("kind", "model"), [(OpenAIServer, OPENAI), (AnthropicServer, CLAUDE)])
async def test_a_refusal_as_too_long_is_one_line(
    open_chat: OpenChat, kind: type[OpenAIServer | AnthropicServer], model: str
) -> None:
    async with kind(window=100) as server:
        chat, runtime = open_chat(model, server.api_base)
        end = _end(await collect(chat.send("word " * 200)))

    assert end.outcome is Outcome.FULL
    assert "100" in end.error
    assert "\n" not in end.error
    assert [message.role for message in chat.session.messages] == ["user"]
    assert runtime.store.requests(chat.session.info.id)[0].error == end.error
    assert_well_formed(chat, runtime)


@pytest.mark.parametrize("in_order", [False, True], ids=["torn", "without an end"])
@pytest.mark.parametrize(("kind", "model"), [(OpenAIServer, OPENAI), (AnthropicServer, CLAUDE)])
async def test_an_answer_that_breaks_off_keeps_what_came_and_can_go_on(
    open_chat: OpenChat, kind: type[OpenAIServer | AnthropicServer], model: str, in_order: bool
) -> None:
    script = [Break(Reply("one two three"), pieces=2, in_order=in_order), Reply("Here.")]
    async with kind(script) as server:
        chat, runtime = open_chat(model, server.api_base)
        end = _end(await collect(chat.send("go")))
        assert end.outcome is Outcome.BROKEN
        assert end.error
        assert "\n" not in end.error
        assert (chat.session.messages[-1].text, chat.session.messages[-1].ending) == (
            "one two ",
            Ending.FAILED,
        )
        assert_well_formed(chat, runtime)
        assert _end(await collect(chat.carry_on())).outcome is Outcome.DONE

    assert server.requests[1].refused == ""


class TestLlamaServer:
    """A real llama.cpp server, which counts for itself."""

    pytestmark = pytest.mark.xdist_group("llama")

    @pytest.fixture(scope="class")
    def server(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
        pytest.importorskip("xllamacpp")
        with llama_server(tmp_path_factory.mktemp("llama"), window=4096) as running:
            yield running

    async def test_its_reported_usage_is_in_the_request_log(
        self, open_chat: OpenChat, server: LlamaServer
    ) -> None:
        chat, runtime = open_chat(server.model, server.api_base, tools="none")
        events = await collect(chat.send("hello"))

        assert _end(events).outcome is Outcome.CUT
        assert "".join(event.text for event in of_kind(events, TextAdded)) == chat.session.messages[-1].text
        (record,) = runtime.store.requests(chat.session.info.id)
        assert record.usage.output_tokens == 24
        # a token is a byte: the system prompt, the question, and the template around them
        assert record.usage.input_tokens > 200
        assert record.usage == _end(events).usage == chat.usage
        assert_well_formed(chat, runtime)


def _end(events: list[Any]) -> TurnEnded:
    assert isinstance(events[-1], TurnEnded)
    return events[-1]


def _is_marked(block: dict[str, Any]) -> bool:
    return block.get("cache_control") == {"type": "ephemeral"}


def _assert_log_has_the_reported_usage(chat: Chat, runtime: Runtime, requests: list[Recorded]) -> None:
    records = runtime.store.requests(chat.session.info.id)
    assert [record.usage.input_tokens for record in records] == [request.tokens for request in requests]
    assert all(record.usage.output_tokens and not record.error for record in records)
    assert all(record.bound >= record.usage.input_tokens for record in records)
    assert chat.usage == sum((record.usage for record in records[1:]), records[0].usage)


@pytest.mark.parametrize(("limit", "budget"), [(8_000, 4_096), (4_096, 2_048), (1_200, None)])
async def test_thoughts_leave_room_for_an_answer_within_a_small_output_limit(
    open_chat: OpenChat, limit: int, budget: int | None
) -> None:
    async with AnthropicServer([Reply("Yes.")], key="sk-right-key") as server:
        chat, runtime = open_chat(CLAUDE, server.api_base)
        small = ModelSettings(api_base=server.api_base, max_output_tokens=limit, reasoning_effort="high")
        runtime.settings = replace(runtime.settings, models=MappingProxyType({CLAUDE: small}))
        assert _end(await collect(chat.send("Hello?"))).outcome is Outcome.DONE
    (request,) = server.requests
    assert request.body.get("thinking", {}).get("budget_tokens") == budget


async def test_openai_is_sent_a_picture_as_an_address_and_claude_as_a_source(
    open_chat: OpenChat, tmp_path: Path
) -> None:
    (tmp_path / "work" / "shot.png").write_bytes(png(30, 20))
    data = base64.b64encode(png(30, 20)).decode()
    async with OpenAIServer([Reply("Gray.")], key="sk-right-key") as server:
        chat, _ = open_chat(OPENAI, server.api_base)
        await collect(chat.send(marked("What is in @shot.png?")))
    text, picture = server.requests[0].messages[-1]["content"]
    assert "Attached picture shot.png (PNG, 30 × 20" in text["text"]
    assert picture == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    async with AnthropicServer([Reply("Gray.")], key="sk-right-key") as server:
        chat, _ = open_chat(CLAUDE, server.api_base)
        await collect(chat.send(marked("What is in @shot.png?")))
    _, picture = server.requests[0].messages[-1]["content"]
    assert picture["type"] == "image"
    assert picture["source"] == {"type": "base64", "media_type": "image/png", "data": data}
