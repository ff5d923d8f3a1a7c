"""Every reply teaches how the model counts, for this process and the next."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from rolling_chat.agent import Chat
from rolling_chat.agent.request.counting import SessionCounts
from rolling_chat.agent.request.model_limits import margin_for
from rolling_chat.agent.request.planner import Planner
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.agent.request.setup import RequestSetup
from rolling_chat.context import Calibration
from rolling_chat.events import Outcome, TurnEnded
from rolling_chat.messages import Message, Usage
from rolling_chat.providers.protocol import Delta, Finished, Request, Retrying
from rolling_chat.sessions.records import Learned
from rolling_chat.settings.schema import AgentSettings, ContextSettings, Settings
from tests.support.agent import MODEL, ScriptedProvider, collect, make_runtime, says

SETTINGS = Settings(agent=AgentSettings(tools="none"), context=ContextSettings(reserved_output_tokens=200))
WINDOW = 4_096


class ByteProvider(ScriptedProvider):
    """Counts a token a byte, and ten around a message."""

    retries = False

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        counted = sum(len(str(one["content"]).encode()) + 10 for one in self.wire_form(request))
        assert counted + 200 <= request.window, "the model would have refused this"
        if self.retries:
            yield Retrying(1, 2, 0.0, "busy")
        async for delta in super().stream(request):
            yield replace(delta, usage=Usage(counted, 5)) if isinstance(delta, Finished) else delta


@pytest.mark.parametrize("rolling", [True, False])
async def test_after_the_first_reply_the_gauge_is_the_models_own_count(tmp_path: Path, rolling: bool) -> None:
    provider = ByteProvider(says("So it is."))
    runtime = make_runtime(tmp_path, provider, settings=SETTINGS, window=WINDOW)
    chat = Chat.open(runtime, rolling=rolling)
    assert not chat.session.preview.report().exact
    await collect(chat.send("What of this? " * 20))
    reported = chat.usage.input_tokens
    assert chat.session.preview.report().exact
    assert reported < chat.session.preview.report().token_count < reported + 60
    runtime.store.close()


async def test_the_window_is_used_to_the_full_and_every_request_can_be_proved(tmp_path: Path) -> None:
    provider = ByteProvider(says("So it is, and no other way. " * 5))
    runtime = make_runtime(tmp_path, provider, settings=SETTINGS, window=WINDOW)
    chat = Chat.open(runtime, rolling=True)
    for number in range(40):
        end = (await collect(chat.send(f"Question {number}: what of this? " * 3)))[-1]
        assert isinstance(end, TurnEnded)
        assert end.outcome is Outcome.DONE
    records = runtime.store.requests(chat.session.info.id)
    assert max(record.usage.input_tokens for record in records) > 0.9 * (WINDOW - 200)
    assert all(record.usage.input_tokens <= record.bound for record in records[2:])
    assert all(rebuild_request(runtime.store, record).is_same for record in records)
    assert all(rebuild_request(runtime.store, one).report.token_count == one.estimated for one in records)
    assert chat.session.preview.report().window == WINDOW
    assert chat.session.preview.report().margin == int(WINDOW * 0.02)
    runtime.store.close()


async def test_the_next_process_starts_with_what_was_learned(tmp_path: Path) -> None:
    first = make_runtime(tmp_path, ByteProvider(says("Yes.")), settings=SETTINGS, window=WINDOW)
    chat = Chat.open(first, rolling=True)
    unlearned = chat.session.preview.report()
    await collect(chat.send("What of this? " * 20))
    first.store.close()
    again = Chat.open(
        make_runtime(tmp_path, ByteProvider(says("Yes.")), settings=SETTINGS, window=WINDOW), rolling=True
    )
    assert again.session.preview.report().token_count > 2 * unlearned.token_count
    assert again.session.preview.report().bound > 2 * unlearned.bound
    again.session.set_model("openai/gpt-4o")
    assert again.session.preview.report().bound < 2 * unlearned.bound


async def test_a_reply_that_came_after_a_retry_teaches_nothing(tmp_path: Path) -> None:
    provider = ByteProvider(says("Yes."))
    provider.retries = True
    runtime = make_runtime(tmp_path, provider, settings=SETTINGS, window=WINDOW)
    chat = Chat.open(runtime)
    await collect(chat.send("What of this? " * 20))
    assert not chat.session.preview.report().exact
    assert runtime.store.models.measured(MODEL, "") is None
    runtime.store.close()


def test_a_limit_below_a_request_that_was_answered_was_none(tmp_path: Path) -> None:
    runtime = make_runtime(tmp_path, ByteProvider(), settings=SETTINGS, window=WINDOW)
    runtime.store.models.keep_learned(MODEL, "", Learned(1_000))
    setup = RequestSetup(runtime, started_at=0.0, model=MODEL, address=None, rolling=True, tools=())
    planner = Planner(runtime, setup, "s", SessionCounts())
    assert planner.setup.window == 1_000
    reply = Message("assistant", "Yes.", id="m2")
    planner.feedback.learn_answer(Usage(1_001), reply, [Message("user", "So?", id="m1"), reply])
    assert planner.setup.window == WINDOW
    planner.setup.keep_knowledge()
    assert runtime.store.models.learned(MODEL, "") == Learned()
    runtime.store.close()


async def test_what_the_provider_calls_a_sum_of_several_requests_teaches_nothing(tmp_path: Path) -> None:
    provider = ScriptedProvider([Finished(Message("assistant", "Yes."), Usage(3_000, 20, is_sum=True))])
    runtime = make_runtime(tmp_path, provider, settings=SETTINGS, window=16_384)
    chat = Chat.open(runtime)
    await collect(chat.send("What of this? " * 300))
    learned = chat.session.setup.measurements
    assert (learned.groups, learned.wholes, learned.replies) == ((), (), 0)
    assert not chat.session.preview.report().exact
    assert chat.usage.input_tokens == 3_000
    runtime.store.close()


async def test_a_sum_of_several_requests_takes_no_limit_back(tmp_path: Path) -> None:
    class SummingProvider(ByteProvider):
        times = 1

        async def stream(self, request: Request) -> AsyncGenerator[Delta]:
            async for delta in super().stream(request):
                if isinstance(delta, Finished):
                    yield replace(delta, usage=Usage(delta.usage.input_tokens * self.times))
                else:
                    yield delta

    provider = SummingProvider(says("Yes."))
    runtime = make_runtime(tmp_path, provider, settings=SETTINGS, window=16_384)
    runtime.store.models.keep_learned(MODEL, "", Learned(12_000))
    chat = Chat.open(runtime)
    await collect(chat.send("What of this? " * 400))
    provider.times, before = 3, chat.usage.input_tokens
    await collect(chat.send("And now?"))
    assert chat.usage.input_tokens - before > 12_000
    assert chat.session.setup.window == 12_000
    runtime.store.close()


def test_the_margin_shrinks_after_three_replies_unless_somebody_set_it() -> None:
    measured = Calibration(replies=3)
    assert margin_for(Settings(), Calibration(replies=2)) == 0.10
    assert margin_for(Settings(), measured) == 0.02
    assert margin_for(Settings(context=ContextSettings(safety_margin=0.2)), measured) == 0.2
    assert margin_for(Settings(context=ContextSettings(safety_margin=0.0)), measured) == 0.0
    set_to_it = Settings(origins=MappingProxyType({"context.safety_margin": "config.toml"}))
    assert margin_for(set_to_it, measured) == 0.10
