"""Fallback models over real HTTP: who answers in an outage, and when the first is asked again."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import pytest_asyncio

from rolling_chat.agent import Chat, Runtime
from rolling_chat.events import Event, Noticed, Outcome, RetryWaiting, ToolEnded, TurnEnded
from rolling_chat.messages import Ending
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.retries import RetryPolicy
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.catalog import load_catalog
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import AgentSettings, ContextSettings, ModelSettings, Settings
from tests.support.agent import assert_well_formed, collect, of_kind
from tests.support.servers import Break, Call, Fail, OpenAIServer, Reply

FIRST, SECOND, THIRD = "openai/first", "openai/second", "openai/third"
OVERLOADED = Fail(529, {"error": {"message": "Overloaded", "type": "overloaded_error"}})
WINDOW = 32_000


@dataclass
class Waits:
    """A clock that moves with what is waited."""

    now: float = 1_000_000.0
    waited: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds


OpenChat = Callable[..., tuple[Chat, Runtime, Waits]]


@pytest_asyncio.fixture
async def open_chat(tmp_path: Path) -> AsyncIterator[OpenChat]:
    """Opens a chat with the first of some models at their addresses; the others are its fallbacks."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("alpha\n")
    environ = {
        "ROLLING_CHAT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-x"
    }  # fmt: skip
    opened: list[tuple[ModelProvider, Runtime]] = []

    def open_it(
        addresses: Mapping[str, str],
        *,
        windows: Mapping[str, int] = MappingProxyType({}),
        rolling: bool = False,
        fallback: tuple[str, ...] | None = None,
        **agent: Any,
    ) -> tuple[Chat, Runtime, Waits]:
        waits, paths, catalog = Waits(), find_paths(environ), load_catalog()
        models = {
            name: ModelSettings(api_base=address, max_input_tokens=windows.get(name, WINDOW))
            for name, address in addresses.items()
        }
        first, *others = addresses
        provider = ModelProvider(
            environ=environ, catalog=catalog, sleep=waits.sleep, clock=lambda: waits.now,
            retries=RetryPolicy(jitter=lambda: 1.0),
        )  # fmt: skip
        settings = Settings(
            model=first,
            fallback=tuple(others) if fallback is None else fallback,
            models=MappingProxyType(models),
            agent=AgentSettings(**{"tools": ("read_file", "recall"), **agent}),
            context=ContextSettings(enabled=rolling),
        )
        runtime = Runtime(
            settings=settings, paths=paths, catalog=catalog, store=open_store(paths.database),
            provider=provider, folder=folder, environ=environ, clock=lambda: waits.now,
        )  # fmt: skip
        opened.append((provider, runtime))
        return Chat.open(runtime), runtime, waits

    yield open_it
    for provider, runtime in opened:
        await provider.close()
        runtime.store.close()


async def test_the_next_model_answers_while_the_first_is_overloaded(open_chat: OpenChat) -> None:
    async with OpenAIServer(lambda _: OVERLOADED) as first, OpenAIServer([Reply("Here.")]) as second:
        chat, runtime, waits = open_chat({FIRST: first.api_base, SECOND: second.api_base})
        events = await collect(chat.send("Hello?"))

        assert _end(events).outcome is Outcome.DONE
        assert chat.session.messages[-1].text == "Here."
        assert sum(waits.waited) <= 20.0, "the user waits five minutes for nobody"
        assert len(first.requests) > 1, "a server that is busy for a second is no reason to go elsewhere"
        assert chat.session.model == SECOND
        assert "fallback" in chat.session.model_line
        assert chat.session.preview.report().model == SECOND
        (line,) = [line for line in _lines(events) if "answers instead" in line]
        assert "overloaded or broken (529)" in line
        assert f"{SECOND} answers instead: a window of 32,000 tokens, nothing cached." in line
        assert FIRST in line
        records = runtime.store.requests(chat.session.info.id)
        assert [(one.model, bool(one.error)) for one in records] == [(FIRST, True), (SECOND, False)]
        assert runtime.store.session(chat.session.info.id).model == FIRST, "the session stays the first's"
        assert_well_formed(chat, runtime)


async def test_the_first_model_is_asked_again_after_its_pause_and_not_before(open_chat: OpenChat) -> None:
    down = [True]

    def answer(_body: dict[str, Any]) -> Fail | Reply:
        return OVERLOADED if down[0] else Reply("I am back.")

    async with OpenAIServer(answer) as first, OpenAIServer() as second:
        chat, _runtime, waits = open_chat({FIRST: first.api_base, SECOND: second.api_base})
        await collect(chat.send("one"))
        asked = len(first.requests)
        await collect(chat.send("two"))
        assert (len(first.requests), chat.session.model) == (asked, SECOND)

        waits.now += 61
        events = await collect(chat.send("three"))
        assert len(first.requests) == asked + 1, "one try shows whether it is back"
        assert chat.session.model == SECOND
        assert not of_kind(events, RetryWaiting)

        down[0] = False
        waits.now += 61
        events = await collect(chat.send("four"))
        assert chat.session.messages[-1].text == "I am back."
        assert (chat.session.model, chat.session.preview.report().model) == (FIRST, FIRST)
        assert f"{FIRST} answers again." in _lines(events)
        said = [message["content"] for message in first.requests[-1].messages if message["role"] == "user"]
        assert [text.split("\n")[0] for text in said] == ["one", "two", "three", "four"]
        assert not any("answers again" in line for line in _lines(await collect(chat.send("five"))))


async def test_a_rate_limit_that_asks_to_wait_long_is_not_waited_for(open_chat: OpenChat) -> None:
    limited = Fail(429, {"error": {"message": "Rate limit reached"}}, headers={"retry-after": "120"})
    async with OpenAIServer([limited]) as first, OpenAIServer() as second:
        chat, _runtime, waits = open_chat({FIRST: first.api_base, SECOND: second.api_base})
        events = await collect(chat.send("one"))
        assert (_end(events).outcome, chat.session.model) == (Outcome.DONE, SECOND)
        assert sum(waits.waited) == 0.0
        waits.now += 100
        await collect(chat.send("two"))
        assert chat.session.model == SECOND, "the server named two minutes"
        waits.now += 21
        await collect(chat.send("three"))
        assert chat.session.model == FIRST


async def test_a_short_rate_limit_is_waited_for(open_chat: OpenChat) -> None:
    limited = Fail(429, {"error": {"message": "Rate limit reached"}}, headers={"retry-after": "7"})
    async with OpenAIServer([limited]) as first, OpenAIServer() as second:
        chat, _runtime, waits = open_chat({FIRST: first.api_base, SECOND: second.api_base})
        await collect(chat.send("one"))
        assert (chat.session.model, waits.waited) == (FIRST, [7.0])
        assert not second.requests


async def test_a_server_that_refuses_connections_is_replaced(open_chat: OpenChat) -> None:
    async with OpenAIServer() as second:
        chat, _runtime, _waits = open_chat({FIRST: f"{_nobody()}/v1", SECOND: second.api_base})
        events = await collect(chat.send("Hello?"))
    assert _end(events).outcome is Outcome.DONE
    assert chat.session.model == SECOND


async def test_results_of_tools_stay_when_a_model_goes_down_between_two_requests(
    open_chat: OpenChat,
) -> None:
    script = [Reply("I look.", (Call("read_file", '{"path": "a.txt"}', "c1"),)), *[OVERLOADED] * 20]
    async with OpenAIServer(script) as first, OpenAIServer([Reply("Alpha.")]) as second:
        chat, runtime, _waits = open_chat({FIRST: first.api_base, SECOND: second.api_base})
        events = await collect(chat.send("What is in a.txt?"))
    assert len(of_kind(events, ToolEnded)) == 1
    (asked,) = second.requests
    assert [message["role"] for message in asked.messages] == ["system", "user", "assistant", "tool"]
    assert asked.messages[-1]["content"] == "alpha\n"
    assert chat.session.messages[-1].text == "Alpha."
    assert_well_formed(chat, runtime)


async def test_a_smaller_window_is_planned_for_anew_and_what_left_comes_back(open_chat: OpenChat) -> None:
    down = [False]
    async with (
        OpenAIServer(lambda _: OVERLOADED if down[0] else Reply("Yes.")) as first,
        OpenAIServer(window=4_096) as second,
    ):
        chat, runtime, waits = open_chat(
            {FIRST: first.api_base, SECOND: second.api_base}, windows={SECOND: 4_096}, rolling=True
        )
        for number in range(8):
            await collect(chat.send(f"Note {number}: {'lorem ipsum dolor sit amet ' * 120}"))
        whole = first.requests[-1]
        down[0] = True
        events = await collect(chat.send("And now?"))
        assert _end(events).outcome is Outcome.DONE
        assert "a window of 4,096 tokens" in " ".join(_lines(events))
        (small,) = second.requests
        assert small.refused == ""
        assert small.tokens <= 4_096
        assert len(small.messages) < len(whole.messages)
        record = runtime.store.requests(chat.session.info.id)[-1]
        assert record.bound + record.totals["categories"]["margin"] <= 4_096  # type: ignore[index,call-overload]
        assert chat.session.preview.report().window == 4_096

        down[0] = False
        waits.now += 61
        await collect(chat.send("And then?"))
        again = first.requests[-1].messages
        assert again[: len(whole.messages)] == whole.messages, "its cache still has this prefix"
        assert len(again) == len(whole.messages) + 4


async def test_a_fallback_that_cannot_hold_the_conversation_is_passed_over(open_chat: OpenChat) -> None:
    async with (
        OpenAIServer([Reply("Yes."), *[OVERLOADED] * 20]) as first,
        OpenAIServer(window=2_048) as second,
        OpenAIServer() as third,
    ):
        chat, _runtime, _waits = open_chat(
            {FIRST: first.api_base, SECOND: second.api_base, THIRD: third.api_base}, windows={SECOND: 2_048}
        )
        await collect(chat.send("lorem ipsum dolor sit amet " * 500))
        events = await collect(chat.send("And now?"))
    assert (_end(events).outcome, chat.session.model) == (Outcome.DONE, THIRD)
    assert not second.requests
    assert any(f"{SECOND} has a window of 2,048 tokens" in line for line in _lines(events))


async def test_one_line_names_all_models_when_none_answers(open_chat: OpenChat) -> None:
    busy = Fail(503, "busy")
    async with OpenAIServer(lambda _: OVERLOADED) as first, OpenAIServer(lambda _: busy) as second:
        chat, runtime, _waits = open_chat(
            {FIRST: first.api_base, SECOND: second.api_base, THIRD: f"{_nobody()}/v1"}
        )
        end = _end(await collect(chat.send("Hello?")))
        assert end.outcome is Outcome.FAILED
        assert end.error.startswith("No model answers. ")
        assert "\n" not in end.error
        for name in (FIRST, SECOND, THIRD):
            assert f"{name}: " in end.error
        assert chat.session.model == FIRST
        assert [message.role for message in chat.session.messages] == ["user"]
        assert_well_formed(chat, runtime)
        assert len(runtime.store.requests(chat.session.info.id)) == 3


async def test_a_list_that_names_the_model_itself_is_harmless(open_chat: OpenChat) -> None:
    async with OpenAIServer(lambda _: OVERLOADED) as first, OpenAIServer() as second:
        chat, _runtime, _waits = open_chat(
            {FIRST: first.api_base, SECOND: second.api_base}, fallback=(FIRST, SECOND, SECOND, FIRST)
        )
        assert _end(await collect(chat.send("one"))).outcome is Outcome.DONE
        assert (chat.session.model, len(second.requests)) == (SECOND, 1)
        chat.session.set_model(SECOND)
        assert chat.session.chosen == (SECOND, second.api_base)
        second.then(*[OVERLOADED] * 20)
        error = _end(await collect(chat.send("two"))).error
        assert f"{FIRST}: " in error
        assert f"{SECOND}: " in error


async def test_a_list_of_the_model_alone_changes_nothing(open_chat: OpenChat) -> None:
    async with OpenAIServer(lambda _: OVERLOADED) as first:
        chat, _runtime, waits = open_chat({FIRST: first.api_base}, fallback=(FIRST,))
        end = _end(await collect(chat.send("one")))
    assert end.outcome is Outcome.FAILED
    assert "No model answers" not in end.error
    assert sum(waits.waited) > 250, "it is tried as long as ever"


@pytest.mark.parametrize(
    "refusal",
    [
        Fail(401, {"error": {"message": "Incorrect API key provided: sk-x.", "code": "invalid_api_key"}}),
        Fail(400, {"error": {"message": "Invalid 'tools': no such type.", "code": "invalid_value"}}),
        Fail(400, {"error": {"message": "Blocked by the policy.", "code": "content_policy_violation"}}),
        Fail(400, {"error": {"message": "This model's maximum context length is 100 tokens. However, your "
             "messages resulted in 300 tokens.", "code": "context_length_exceeded"}}),
        Fail(413, {"error": {"message": "Request too large for model on tokens per min (TPM): "
             "Limit 6000, Requested 9000, please reduce your message size.", "code": "rate_limit_exceeded"}}),
    ],
    ids=["key", "bad request", "content", "too long", "larger than a minute's tokens"],
)  # fmt: skip
async def test_an_error_about_the_request_goes_nowhere_else(open_chat: OpenChat, refusal: Fail) -> None:
    async with OpenAIServer([refusal] * 3) as first, OpenAIServer() as second:
        chat, _runtime, _waits = open_chat({FIRST: first.api_base, SECOND: second.api_base})
        end = _end(await collect(chat.send("Hello?")))
    assert end.outcome in {Outcome.FAILED, Outcome.FULL}
    assert end.error
    assert not second.requests
    assert chat.session.model == FIRST


async def test_an_answer_that_had_begun_is_kept_and_not_begun_elsewhere(open_chat: OpenChat) -> None:
    async with OpenAIServer([Break(Reply("one two three"), pieces=2)]) as first, OpenAIServer() as second:
        chat, runtime, _waits = open_chat({FIRST: first.api_base, SECOND: second.api_base})
        end = _end(await collect(chat.send("go")))
    assert end.outcome is Outcome.BROKEN
    assert (chat.session.messages[-1].text, chat.session.messages[-1].ending) == ("one two ", Ending.FAILED)
    assert not second.requests
    assert_well_formed(chat, runtime)


async def test_a_fallback_without_a_key_or_unknown_is_said_at_the_start(open_chat: OpenChat) -> None:
    async with OpenAIServer(lambda _: OVERLOADED) as first:
        chat, _runtime, _waits = open_chat(
            {FIRST: first.api_base}, fallback=("anthropic/claude-sonnet-4-5", "no-such-model")
        )
        notices = [line for line in chat.session.notices if line.startswith("fallback: ")]
        assert len(notices) == 2
        assert "set ANTHROPIC_API_KEY" in notices[0]
        assert 'Unknown model "no-such-model"' in notices[1]
        error = _end(await collect(chat.send("one"))).error
    assert "set ANTHROPIC_API_KEY" in error
    assert "no-such-model" in error


async def test_a_new_session_and_another_model_are_not_the_fallbacks(open_chat: OpenChat) -> None:
    async with OpenAIServer(lambda _: OVERLOADED) as first, OpenAIServer() as second:
        chat, _runtime, _waits = open_chat({FIRST: first.api_base, SECOND: second.api_base})
        await collect(chat.send("one"))
        assert chat.session.model == SECOND
        forked = chat.session.info.id
        chat.start_new()
        assert chat.session.chosen == (FIRST, first.api_base)
        chat.resume(forked)
        assert (chat.session.model, chat.session.address) == (FIRST, first.api_base)


def _end(events: list[Event]) -> TurnEnded:
    assert isinstance(events[-1], TurnEnded)
    return events[-1]


def _lines(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Noticed)]


def _nobody() -> str:
    """An address of this machine where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"
