"""A provider that refuses a request as too long teaches its limit, and the turn goes on."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import MappingProxyType

import pytest
import pytest_asyncio

from rolling_chat.agent import Chat, Runtime
from rolling_chat.agent.request.builder import PlannedRequest
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.agent.turn.overflow import read_refusal
from rolling_chat.context import ContextPlan
from rolling_chat.context.report import PromptReport
from rolling_chat.events import Event, Noticed, Outcome, PromptPlanned, TurnEnded
from rolling_chat.messages import MadeBy, Message
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import ErrorKind, ProviderError, Request, TextDelta
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import Learned, RequestRecord
from rolling_chat.settings.catalog import load_catalog
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import AgentSettings, ContextSettings, ModelSettings, Settings
from tests.support.agent import ScriptedProvider, assert_well_formed, collect, make_runtime, of_kind, says
from tests.support.llama_server import LlamaServer, llama_server
from tests.support.servers import Fail, OpenAIServer, Reply

MODEL = "openai/gpt-4o"

OpenRuntime = Callable[..., Runtime]


@pytest_asyncio.fixture
async def open_runtime(tmp_path: Path) -> AsyncIterator[OpenRuntime]:
    """Opens what a process has around its chats; each call is a process of its own on the same store."""
    folder = tmp_path / "work"
    folder.mkdir()
    environ = {"ROLLING_CHAT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    opened: list[Runtime] = []

    def open_it(api_base: str, *, model: str = MODEL, window: int = 8_192, most_out: int = 0) -> Runtime:
        paths, catalog = find_paths(environ), load_catalog()
        limits = ModelSettings(api_base=api_base, max_input_tokens=window, max_output_tokens=most_out)
        runtime = Runtime(
            settings=Settings(
                model=model,
                models=MappingProxyType({model: limits}),
                agent=AgentSettings(tools="none"),
                context=ContextSettings(reserved_output_tokens=500),
            ),
            paths=paths,
            catalog=catalog,
            store=open_store(paths.database),
            provider=ModelProvider(environ=environ, catalog=catalog),
            folder=folder,
            environ=environ,
        )
        opened.append(runtime)
        return runtime

    yield open_it
    for runtime in opened:
        await runtime.provider.close()
        runtime.store.close()


async def test_a_refusal_teaches_the_limit_and_the_conversation_goes_on(open_runtime: OpenRuntime) -> None:
    async with OpenAIServer([Reply("It is so. " * 20)], window=4_096) as server:
        runtime = open_runtime(server.api_base)
        chat = Chat.open(runtime, rolling=True)
        turns = [await collect(chat.send("What of this? " * 60)) for _ in range(40)]

    assert {_end(events).outcome for events in turns} == {Outcome.DONE}
    lines = [line for events in turns for line in _lines(events)]
    assert lines == ["The model refused: its window is 4,096 tokens, not 8,192; planned again."]
    assert len([request for request in server.requests if request.refused]) == 1
    assert chat.session.preview.report().window == 4_096
    records = runtime.store.requests(chat.session.info.id)
    assert len([record for record in records if record.purpose == "answer"]) == 41
    assert len([record for record in records if record.error]) == 1
    assert all(rebuild_request(runtime.store, record).is_same for record in records)
    assert_well_formed(chat, runtime)


async def test_the_next_process_knows_the_limit(open_runtime: OpenRuntime) -> None:
    async with OpenAIServer([Reply("Yes.")], window=4_096) as server:
        first = open_runtime(server.api_base)
        chat = Chat.open(first, rolling=True)
        await collect(chat.send("short"))
        await _fill(chat, server)
        assert chat.session.preview.report().window == 4_096
        assert Chat.open(open_runtime(server.api_base)).session.preview.report().window == 4_096
        # another address is another server
        assert Chat.open(open_runtime("http://127.0.0.1:9/v1")).session.preview.report().window == 8_192


async def test_with_rolling_off_the_limit_is_learned_and_the_turn_asks(open_runtime: OpenRuntime) -> None:
    async with OpenAIServer([Reply("Yes.")], window=4_096) as server:
        runtime = open_runtime(server.api_base)
        chat = Chat.open(runtime)
        end = await _fill(chat, server)
        assert end.outcome is Outcome.FULL
        assert "4,096" in end.error
        assert len(server.requests) == len([r for r in server.requests if not r.refused]) + 1
        assert not chat.session.preview.report().within_budget
        # what the question offers
        chat.session.overrides.set_rolling(True)
        assert _end(await collect(chat.carry_on())).outcome is Outcome.DONE
    assert server.requests[-1].refused == ""


async def test_where_only_the_answer_asks_for_too_much_it_shrinks_even_with_rolling_off(
    open_runtime: OpenRuntime,
) -> None:
    async with OpenAIServer([Reply("Yes.")], window=4_096) as server:
        runtime = open_runtime(server.api_base, most_out=6_000)
        chat = Chat.open(runtime)
        events = await collect(chat.send("hello"))

    assert _end(events).outcome is Outcome.DONE
    first, second = server.requests
    assert first.refused
    assert first.messages == second.messages
    assert first.body["max_tokens"] > 4_096 > second.body["max_tokens"] > 3_000
    assert len(_lines(events)) == 1


async def test_what_is_refused_again_and_again_is_sent_three_times_and_no_more(
    open_runtime: OpenRuntime,
) -> None:
    too_long = Fail(400, {"error": {"message": "prompt is too long", "code": "context_length_exceeded"}})
    async with OpenAIServer([*[Reply("Yes.")] * 8, *[too_long] * 3]) as server:
        runtime = open_runtime(server.api_base, window=6_000)
        chat = Chat.open(runtime, rolling=True)
        for _ in range(8):
            await collect(chat.send("What of this? " * 60))
        events = await collect(chat.send("And now?"))

    assert _end(events).outcome is Outcome.FULL
    assert len(server.requests) == 8 + 3
    bounds = [planned.report.bound for planned in of_kind(events, PromptPlanned)]
    assert bounds[1] <= bounds[0] * 0.75
    assert bounds[2] <= bounds[1] * 0.75
    assert len(_lines(events)) == 2
    for record in runtime.store.requests(chat.session.info.id):
        assert rebuild_request(runtime.store, record).is_same
    assert chat.session.preview.report().window == 6_000  # without numbers nothing is learned


async def test_a_bare_400_near_the_limit_counts_as_a_refusal_once(tmp_path: Path) -> None:
    bare = ProviderError(ErrorKind.BAD_REQUEST, "the server refused the request: bad request")
    settings = Settings(context=ContextSettings(trim_to=1.0), agent=AgentSettings(tools="none"))
    provider = ScriptedProvider(says("yes"))
    runtime = make_runtime(tmp_path, provider, settings=settings, window=4_000)
    chat = Chat.open(runtime, rolling=True)
    far = await _refused_with(bare, chat, provider)
    assert (far.outcome, len(provider.requests)) == (Outcome.FAILED, 2)  # one to begin with
    while (report := chat.session.preview.report()).bound < 0.95 * (
        report.window - report.reserve - report.margin
    ):
        provider.scripts = [says("yes")]
        await collect(chat.send("word " * 40))
    provider.requests.clear()
    provider.scripts = [[bare], [bare]]
    end = _end(await collect(chat.send("more")))
    assert (end.outcome, len(provider.requests)) == (Outcome.FAILED, 2)
    assert end.error == str(bare)
    runtime.store.close()


async def test_nothing_is_sent_again_once_a_part_of_the_answer_has_come(tmp_path: Path) -> None:
    too_long = ProviderError(ErrorKind.TOO_LONG, "too long", limit=2_000, requested=2_500)
    provider = ScriptedProvider([TextDelta("So far"), too_long])
    runtime = make_runtime(tmp_path, provider, window=4_000)
    chat = Chat.open(runtime, rolling=True)
    end = _end(await collect(chat.send("hi")))
    assert (end.outcome, len(provider.requests)) == (Outcome.FULL, 1)
    assert chat.session.messages[-1].text == "So far"
    assert_well_formed(chat, runtime)
    runtime.store.close()


@pytest.mark.parametrize(
    ("limit", "requested", "learned"),
    [
        (4_096, 5_000, Learned(4_096)),  # a smaller window
        (4_096, None, Learned(4_096)),
        (8_192, 15_000, Learned(8_192)),  # our count was too low
        (4_096, 15_000, Learned(4_096)),
        (4_096, 6_900, Learned(4_096)),  # with 2,000 for the answer
        (5_100, 6_900, Learned(5_100)),  # only the answer asks for too much
        (None, None, None),
        (None, 9_000, None),
        (9_000, None, None),  # the request cannot have passed it
        (6_000, 5_000, None),
        (5_000, 5_000, None),
        (100, 5_000, None),  # no window is so small
        (4_096, 400_000, None),  # bytes, or somebody else's count
        (300, 400, None),
    ],
)
def test_numbers_that_contradict_the_request_are_not_learned(
    limit: int | None, requested: int | None, learned: Learned | None
) -> None:
    error = ProviderError(ErrorKind.TOO_LONG, "too long", limit=limit, requested=requested)
    lesson = read_refusal(error, _planned(bound=5_000, window=8_192, max_tokens=2_000))
    assert lesson.learned == learned
    assert lesson.input_limit == (0 if learned else 3_750)
    assert "\n" not in lesson.line


def test_the_prompts_part_is_taken_as_it_was_named() -> None:
    planned = _planned(bound=5_000, window=8_192, max_tokens=2_500)
    named = ProviderError(ErrorKind.TOO_LONG, "too long", limit=4_096, requested=6_000, prompt=3_500)
    guessed = ProviderError(ErrorKind.TOO_LONG, "too long", limit=4_096, requested=6_000)
    assert read_refusal(named, planned).counted == 3_500
    assert read_refusal(guessed, planned).counted == 6_000  # nearer to what was estimated


async def test_where_three_quarters_cannot_be_planned_the_least_is_tried(tmp_path: Path) -> None:
    """Three quarters of what was refused are less than the least that can be sent, which is less too."""
    too_long = ProviderError(ErrorKind.TOO_LONG, "too long")
    provider = ScriptedProvider(says("Yes. " * 40))
    context = ContextSettings(summarize="off", preserve_recent_turns=1, reserved_output_tokens=500)
    settings = Settings(context=context, agent=AgentSettings(tools="none"))
    runtime = make_runtime(tmp_path, provider, settings=settings, window=16_000)
    chat = Chat.open(runtime, rolling=True)
    for _ in range(4):
        await collect(chat.send("Before. " * 200))
    provider.requests.clear()
    provider.scripts = [[too_long], says("at last")]
    events = await collect(chat.send("The task. " * 3_000))

    assert _end(events).outcome is Outcome.DONE
    first, second = (planned.report.bound for planned in of_kind(events, PromptPlanned))
    assert first * 0.75 < second < first
    runtime.store.close()


async def test_where_nothing_less_can_be_sent_the_refusal_stands(tmp_path: Path) -> None:
    too_long = ProviderError(ErrorKind.TOO_LONG, "too long")
    provider = ScriptedProvider([too_long])
    runtime = make_runtime(
        tmp_path, provider, settings=Settings(agent=AgentSettings(tools="none")), window=16_000
    )
    events = await collect(Chat.open(runtime, rolling=True).send("The task. " * 3_000))
    assert (_end(events).outcome, _end(events).error) == (Outcome.FULL, "too long")
    assert (len(provider.requests), _lines(events)) == (1, [])
    runtime.store.close()


class TestLlamaServer:
    """A real llama.cpp server whose tokens are bytes: our count is several times too low."""

    pytestmark = pytest.mark.xdist_group("llama")

    @pytest.fixture(scope="class")
    def server(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
        pytest.importorskip("xllamacpp")
        with llama_server(tmp_path_factory.mktemp("llama"), window=4_096) as running:
            yield running

    @pytest.mark.slow
    async def test_a_long_conversation_is_refused_once_at_most(
        self, open_runtime: OpenRuntime, server: LlamaServer
    ) -> None:
        runtime = open_runtime(server.api_base, model=server.model, window=4_096, most_out=24)
        chat = Chat.open(runtime, rolling=True)
        for number in range(40):
            text = f"Question {number}: how does the lexer treat tabs at the end of a line? " * (
                1 + number % 4
            )
            assert _end(await collect(chat.send(text))).outcome in {Outcome.DONE, Outcome.CUT}, number

        records = runtime.store.requests(chat.session.info.id)
        assert len([record for record in records if record.error]) <= 1
        assert all(record.usage.input_tokens <= 4_096 for record in records)
        assert_well_formed(chat, runtime)


async def _fill(chat: Chat, server: OpenAIServer) -> TurnEnded:
    """Talk until the server has refused something."""
    while True:
        end = _end(await collect(chat.send("What of this? " * 60)))
        if any(request.refused for request in server.requests):
            return end


async def _refused_with(error: Exception, chat: Chat, provider: ScriptedProvider) -> TurnEnded:
    await collect(chat.send("hello"))
    provider.scripts = [says("yes"), [error]]
    return _end(await collect(chat.send("again")))


def _planned(*, bound: int, window: int, max_tokens: int) -> PlannedRequest:
    report = PromptReport(
        model=MODEL, rolling=True, window=window, reserve=500, margin=800, system=100, tools=0, summary=0,
        history=bound - 300, current=100, bound=bound, within_budget=True, history_budget=6_000,
        trim_at=6_000, floor=200,
    )  # fmt: skip
    request = Request(MODEL, (Message("user", "hi"),), max_tokens=max_tokens, window=window)
    record = RequestRecord("", "s", "m1", MODEL, None, "d", 1, "h", bound, bound)
    return PlannedRequest(
        request, report, MadeBy("openai", MODEL), record, {}, window - 1_300, 500, ContextPlan()
    )


def _lines(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Noticed)]


def _end(events: list[Event]) -> TurnEnded:
    assert isinstance(events[-1], TurnEnded)
    return events[-1]
