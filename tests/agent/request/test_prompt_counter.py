"""What only its upper bound keeps from fitting is counted by the provider, and then sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from rolling_chat.agent import Chat, Runtime
from rolling_chat.events import Outcome, PromptPlanned, TurnEnded
from rolling_chat.messages import Usage
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import Delta, Finished, Request
from rolling_chat.settings.schema import AgentSettings, ContextSettings, ModelSettings, Settings
from tests.support.agent import (
    MODEL,
    Script,
    ScriptedProvider,
    call,
    calls,
    collect,
    make_runtime,
    of_kind,
    says,
)
from tests.support.patience import PATIENCE_SECONDS
from tests.support.servers import AnthropicServer, Reply

CONTEXT = ContextSettings(reserved_output_tokens=200, summarize="off")
SETTINGS = Settings(agent=AgentSettings(tools="none"), context=CONTEXT)
CLAUDE = "anthropic/claude-sonnet-4-5"
WINDOW = 8_192
DENSE = "\u0b95\u0bcd\u0bb7" * 900  # some 6,800 tokens by our rules, 2,700 to the provider below


class CountingProvider(ScriptedProvider):
    """Counts a token for every `characters` of a request, and takes as long as it is told."""

    def __init__(self, *scripts: Script, characters: float = 1.0) -> None:
        super().__init__(*scripts)
        self.characters = characters
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.answers.set()

    def tokens(self, request: Request) -> int:
        said = sum(len(str(one["content"])) + 20 for one in self.wire_form(request))
        return int(said / self.characters)

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        usage = Usage(self.tokens(request) if self.characters else 0, 5)
        async for delta in super().stream(request):
            yield replace(delta, usage=usage) if isinstance(delta, Finished) else delta

    async def count_tokens(self, request: Request, seconds: float) -> int:
        self.counted.append(request)
        self.asked.set()
        await self.answers.wait()
        return self.tokens(request) if self.characters else 0


def _runtime(
    folder: Path, provider: ScriptedProvider, address: str = "https://models.example/v1", **agent: object
) -> Runtime:
    settings = replace(SETTINGS, agent=replace(SETTINGS.agent, **agent))
    runtime = make_runtime(folder, provider, settings=settings, window=WINDOW)
    models = {MODEL: ModelSettings(api_base=address, max_input_tokens=WINDOW)}
    runtime.settings = replace(runtime.settings, models=MappingProxyType(models))
    return runtime


@pytest.fixture
def provider() -> CountingProvider:
    return CountingProvider(says("So it is."))


@pytest.fixture
def runtime(tmp_path: Path, provider: CountingProvider) -> Iterator[Runtime]:
    made = _runtime(tmp_path, provider)
    yield made
    made.store.close()


def test_a_preview_goes_by_what_decides_also_after_a_request_that_failed_on_its_way(
    runtime: Runtime, provider: CountingProvider
) -> None:
    provider.characters = 0
    chat = Chat.open(runtime, rolling=False)
    chat.session.planner.plan_state.wire_tokens = 50  # what its wire form added to the plan
    report = chat.session.preview.report_with((DENSE * 2)[:-100])
    assert report.unproven <= report.room < report.bound
    assert report.within_budget


def _answered(runtime: Runtime) -> Chat:
    """A chat whose model has answered once without a count: nothing goes on the estimate alone any more."""
    chat = Chat.open(runtime, rolling=False)
    chat.session.setup.note_try()
    return chat


async def test_the_first_request_to_a_model_that_nobody_counts_goes_on_the_estimate_and_no_other(
    runtime: Runtime, provider: CountingProvider
) -> None:
    provider.characters = 0
    chat = Chat.open(runtime, rolling=False)
    report = chat.session.preview.report_with(DENSE * 2)
    assert report.within_budget
    assert report.unproven <= report.room < report.bound
    assert _end(await collect(chat.send(DENSE * 2))).outcome is Outcome.DONE
    assert len(provider.requests) == 1
    # it named no count: what is known now is only that one was answered
    assert _end(await collect(chat.send("And now?"))).outcome is Outcome.FULL
    assert len(provider.requests) == 1


async def test_a_message_that_fits_by_the_providers_count_is_sent(
    runtime: Runtime, provider: CountingProvider
) -> None:
    chat = _answered(runtime)
    assert not chat.session.preview.report_with(DENSE * 2).within_budget

    events = await collect(chat.send(DENSE * 2))

    assert _end(events).outcome is Outcome.DONE
    (planned,) = of_kind(events, PromptPlanned)
    assert planned.report.exact
    assert planned.report.token_count == planned.report.bound == provider.tokens(provider.requests[0])
    assert [one.messages for one in provider.counted] == [provider.requests[0].messages]
    assert provider.counted[0].api_base == provider.requests[0].api_base


async def test_what_was_counted_is_known_from_then_on(runtime: Runtime, provider: CountingProvider) -> None:
    chat = Chat.open(runtime, rolling=False)
    await collect(chat.send(DENSE * 2))
    assert _end(await collect(chat.send("And now?"))).outcome is Outcome.DONE
    assert len(provider.counted) == 1


async def test_rolling_drops_nothing_that_fits_by_the_providers_count(
    runtime: Runtime, provider: CountingProvider
) -> None:
    chat = Chat.open(runtime, rolling=True)
    await collect(chat.send("Hello. " * 20))
    text = DENSE + DENSE[:900]
    assert chat.session.preview.report_with(text).trimmed

    events = await collect(chat.send(text))

    assert not of_kind(events, PromptPlanned)[0].report.trimmed
    assert len(provider.counted) == 1
    assert [len(one.messages) for one in provider.requests] == [2, 4]


async def test_a_message_that_is_too_long_by_count_is_refused_by_it(tmp_path: Path) -> None:
    provider = CountingProvider(says("So it is."), characters=0.4)
    runtime = _runtime(tmp_path, provider)
    chat = Chat.open(runtime, rolling=False)
    ended = _end(await collect(chat.send(DENSE[:1_650] * 2)))
    assert ended.outcome is Outcome.FULL
    assert f"Current: {provider.tokens(provider.counted[0])} tokens" in ended.error
    assert len(provider.counted) == 1
    runtime.store.close()


async def test_what_is_too_long_by_count_is_cut_by_it(tmp_path: Path) -> None:
    provider = CountingProvider(says("So it is."), characters=0.4)
    runtime = _runtime(tmp_path, provider)
    chat = Chat.open(runtime, rolling=True)
    for _ in range(3):
        assert _end(await collect(chat.send(DENSE[:1_650]))).outcome is Outcome.DONE
    assert [provider.tokens(request) > WINDOW / 2 for request in provider.requests] == [True] * 3
    assert max(map(provider.tokens, provider.requests)) <= WINDOW - 200
    runtime.store.close()


async def test_without_a_count_all_is_as_it_was(runtime: Runtime, provider: CountingProvider) -> None:
    provider.characters = 0
    chat = _answered(runtime)
    assert _end(await collect(chat.send(DENSE * 2))).outcome is Outcome.FULL
    assert len(provider.counted) == 1
    assert provider.requests == []


async def test_a_count_that_can_be_none_is_not_believed(runtime: Runtime, provider: CountingProvider) -> None:
    provider.characters = 1e6
    chat = _answered(runtime)
    assert _end(await collect(chat.send(DENSE * 2))).outcome is Outcome.FULL
    assert chat.session.setup.measurements.groups == ()


async def test_nobody_is_asked_for_what_fits_anyway(runtime: Runtime, provider: CountingProvider) -> None:
    chat = Chat.open(runtime, rolling=False)
    assert _end(await collect(chat.send("Hello."))).outcome is Outcome.DONE
    assert provider.counted == []


async def test_nobody_is_asked_for_what_is_far_too_long(runtime: Runtime, provider: CountingProvider) -> None:
    chat = Chat.open(runtime, rolling=False)
    assert _end(await collect(chat.send(DENSE * 9))).outcome is Outcome.FULL
    assert provider.counted == []


async def test_a_stop_ends_the_wait_for_a_count(runtime: Runtime, provider: CountingProvider) -> None:
    provider.answers.clear()
    chat = Chat.open(runtime, rolling=False)
    turn = asyncio.create_task(collect(chat.send(DENSE * 2)))
    await asyncio.wait_for(provider.asked.wait(), PATIENCE_SECONDS)
    chat.stop()
    assert _end(await turn).outcome is Outcome.CANCELLED
    assert provider.requests == []
    provider.answers.set()
    assert _end(await collect(chat.carry_on())).outcome is Outcome.DONE


async def test_a_pin_set_while_the_provider_counts_is_counted_too(
    runtime: Runtime, provider: CountingProvider
) -> None:
    chat = Chat.open(runtime, rolling=False)
    await collect(chat.send("Keep this."))
    provider.answers.clear()
    turn = asyncio.create_task(collect(chat.send(DENSE * 2)))
    await asyncio.wait_for(provider.asked.wait(), PATIENCE_SECONDS)
    chat.session.planner.plan_state.read_summary()  # something that the next request may show
    provider.answers.set()
    assert _end(await turn).outcome is Outcome.DONE
    assert len(provider.counted) == 2


async def test_a_server_nearby_counts_whatever_is_much_before_it_is_sent(tmp_path: Path) -> None:
    provider = CountingProvider(calls(call("read_file", '{"path": "a.txt"}')), says("So it is."))
    runtime = _runtime(tmp_path, provider, "http://127.0.0.1:9/v1", tools=("read_file",))
    (runtime.folder / "a.txt").write_text(DENSE[:300] + "\n")
    chat = Chat.open(runtime, rolling=False)
    await chat.session.count_beginning()
    shown = chat.session.preview.report()
    assert shown.exact
    assert shown.token_count == pytest.approx(provider.tokens(provider.counted[0]), rel=0.005)

    first, second = of_kind(await collect(chat.send(f"Read a.txt. {DENSE}")), PromptPlanned)

    assert [first.report.token_count, second.report.token_count] == [
        provider.tokens(request) for request in provider.requests
    ]
    await collect(chat.send("Fine."))
    assert len(provider.counted) == 3  # nothing for a word
    runtime.store.close()


async def test_a_server_nearby_that_does_not_count_is_let_be(tmp_path: Path) -> None:
    provider = CountingProvider(says("So it is."), characters=0)
    runtime = _runtime(tmp_path, provider, "http://127.0.0.1:9/v1")
    chat = Chat.open(runtime, rolling=False)
    for _ in range(3):
        assert _end(await collect(chat.send("Hello. " * 30))).outcome is Outcome.DONE
    assert len(provider.counted) == 1
    runtime.store.close()


async def test_what_is_cold_is_cold_still_once_it_was_counted(tmp_path: Path) -> None:
    provider = CountingProvider(says("So it is."))
    runtime = _runtime(tmp_path, provider, "http://127.0.0.1:9/v1")
    chat = Chat.open(runtime, rolling=True)
    await collect(chat.send("Hello. " * 30))
    planner = chat.session.planner
    assert planner.plan_state.plan is not None
    planner.plan_state.use_plan(replace(planner.plan_state.plan.cold(), sent=None, confirmed=None))
    asked = len(provider.counted)
    await chat.session.count_beginning()
    assert len(provider.counted) > asked
    assert planner.plan_state.plan is not None
    assert planner.plan_state.plan.is_cold
    runtime.store.close()


async def test_claude_is_asked_before_a_message_is_refused(tmp_path: Path) -> None:
    async with AnthropicServer([Reply("So it is.")], window=WINDOW, key="sk-right") as server:
        environ = {"ANTHROPIC_API_KEY": "sk-right"}
        runtime = make_runtime(tmp_path, ScriptedProvider(says("")), settings=SETTINGS)
        provider = ModelProvider(environ=environ, catalog=runtime.catalog)
        limits = ModelSettings(api_base=server.api_base, max_input_tokens=WINDOW, max_output_tokens=200)
        models = MappingProxyType({CLAUDE: limits})
        runtime.settings = replace(runtime.settings, model=CLAUDE, models=models)
        runtime.provider = provider
        chat = Chat.open(runtime, rolling=False)
        text = "the quick brown fox " * 1_150
        before = chat.session.preview.report_with(text)
        assert before.token_count < before.room < before.bound

        events = await collect(chat.send(text))

        assert _end(events).outcome is Outcome.DONE
        (planned,) = of_kind(events, PromptPlanned)
        assert planned.report.token_count == chat.usage.input_tokens
        assert len(server.counted) == len(server.requests) == 1
        assert not any(request.refused for request in server.requests)
        await provider.close()
        runtime.store.close()


def _end(events: list[object]) -> TurnEnded:
    end = events[-1]
    assert isinstance(end, TurnEnded)
    return end
