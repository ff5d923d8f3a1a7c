"""What a model has counted of a branch is used again wherever the session comes back to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from rolling_chat.agent import Chat, Runtime
from rolling_chat.context import Calibration, PromptReport
from rolling_chat.messages import Ending, Message, ToolCall, Usage
from rolling_chat.providers.protocol import Delta, Finished, Request
from rolling_chat.settings.schema import AgentSettings, ContextSettings, Settings
from tests.support.agent import MODEL, ScriptedProvider, collect, make_runtime, says

SETTINGS = Settings(agent=AgentSettings(tools="none"), context=ContextSettings(reserved_output_tokens=200))
WINDOW = 32_000
OTHER = "openai/gpt-4o"


class ByteProvider(ScriptedProvider):
    """Counts a token a byte and ten around a message; reports a reply without what is around it."""

    thought = 0

    def __init__(self, *texts: str, reasoning: str = "", ending: Ending = Ending.COMPLETE) -> None:
        super().__init__(*(says(text, reasoning=reasoning, ending=ending) for text in texts))
        self.counted: list[int] = []

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        counted = sum(len(str(one["content"]).encode()) + 10 for one in self.wire_form(request))
        self.counted.append(counted)
        async for delta in super().stream(request):
            if not isinstance(delta, Finished):
                yield delta
                continue
            written = len(delta.message.text.encode()) + self.thought
            yield replace(delta, usage=self.usage_of(counted, written))

    def usage_of(self, counted: int, written: int) -> Usage:
        return Usage(counted, written)


class ReasoningProvider(ByteProvider):
    thought = 500

    def usage_of(self, counted: int, written: int) -> Usage:
        return Usage(counted, written, reasoning_tokens=self.thought)


class HiddenReasoningProvider(ByteProvider):
    thought = 20_000


class SilentProvider(ByteProvider):
    def usage_of(self, counted: int, written: int) -> Usage:
        return Usage(counted)


LONG = "It is so, and no other way; that much is known of it. " * 60


def opened(tmp_path: Path, provider: ScriptedProvider) -> tuple[Chat, Runtime]:
    runtime = make_runtime(tmp_path, provider, settings=SETTINGS, window=WINDOW)
    return Chat.open(runtime), runtime


def report(chat: Chat) -> PromptReport:
    return chat.session.preview.report()


@pytest.mark.parametrize("provider", [ByteProvider(LONG), ReasoningProvider(LONG)])
async def test_a_reply_is_as_large_as_the_provider_said_when_it_wrote_it(
    tmp_path: Path, provider: ByteProvider
) -> None:
    chat, runtime = opened(tmp_path, provider)
    await collect(chat.send("So? " * 30))
    shown = report(chat)
    before = provider.counted[-1]
    assert abs(shown.token_count - (before + len(LONG) + 10)) <= 10
    assert shown.bound >= before + len(LONG) + 10
    runtime.store.close()


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        (HiddenReasoningProvider(LONG), "more than can be in the text"),
        (SilentProvider(LONG), "no report"),
        (ByteProvider(LONG, reasoning="Let me see. " * 40), "reasoning that is not told apart"),
    ],
)
async def test_a_report_that_can_be_no_size_of_the_reply_is_not_used(
    tmp_path: Path, provider: ByteProvider, why: str
) -> None:
    chat, runtime = opened(tmp_path, provider)
    await collect(chat.send("So? " * 30))
    reply = chat.session.messages[-1]
    assert report(chat).rows[-1].tokens_after == chat.session.state.sizes.of(reply), why
    runtime.store.close()


async def test_the_bound_of_a_reply_is_raised_by_its_report_and_never_lowered(tmp_path: Path) -> None:
    class Stingy(ByteProvider):
        def usage_of(self, counted: int, written: int) -> Usage:
            return Usage(counted, written // 4)

    chats = []
    for name, provider in {"a": Stingy(LONG), "b": SilentProvider(LONG)}.items():
        folder = tmp_path / name
        folder.mkdir()
        chat, runtime = opened(folder, provider)
        await collect(chat.send("So? " * 300))
        chats.append(report(chat))
        runtime.store.close()
    stingy, silent = chats
    assert stingy.token_count < silent.token_count
    assert stingy.bound == silent.bound


async def test_a_call_that_was_cut_off_has_no_reported_size(tmp_path: Path) -> None:
    chat, runtime = opened(tmp_path, ByteProvider("Yes."))
    counts = chat.session.state.counts
    call = ToolCall("c1", "read_file", '{"path": "src/lexer.py"}')
    whole = Message("assistant", "I look.", tool_calls=(call,), id="m1")
    cut, usage = replace(whole, ending=Ending.LENGTH), Usage(100, 20)
    assert counts.measure_reply(whole, usage, whole, OTHER, Calibration())
    assert not counts.measure_reply(cut, usage, cut, OTHER, Calibration())
    runtime.store.close()


async def test_after_an_undo_the_prompt_is_as_large_as_it_was_counted(tmp_path: Path) -> None:
    chat, runtime = opened(tmp_path, ByteProvider(*(f"{n} {LONG}" for n in range(4))))
    seen = []
    for number in range(4):
        await collect(chat.send(f"Question {number}: what of this? " * 10))
        seen.append(report(chat))
    for before in reversed(seen[:-1]):
        chat.session.history.undo()
        now = report(chat)
        assert now.exact
        assert abs(now.token_count - before.token_count) <= 0.01 * before.token_count
        assert now.bound == now.token_count  # all of it was counted since
    runtime.store.close()


async def test_a_resumed_session_begins_with_what_was_counted_of_it(tmp_path: Path) -> None:
    chat, runtime = opened(tmp_path, ByteProvider(*(f"{n} {LONG}" for n in range(3))))
    for number in range(3):
        await collect(chat.send(f"Question {number}: what of this? " * 10))
    before = report(chat)
    runtime.store.close()
    again = make_runtime(tmp_path, ByteProvider(LONG), settings=SETTINGS, window=WINDOW)
    resumed = Chat.open(again)
    resumed.resume(chat.session.info.id)
    assert report(resumed).exact
    assert report(resumed).token_count == before.token_count
    assert report(resumed).bound == before.bound
    resumed.session.history.undo()
    assert report(resumed).exact
    again.store.close()


async def test_a_model_that_is_come_back_to_knows_what_it_counted(tmp_path: Path) -> None:
    provider = ByteProvider(*(f"{n} {LONG}" for n in range(5)))
    chat, runtime = opened(tmp_path, provider)
    for number in range(2):
        await collect(chat.send(f"Question {number}: what of this? " * 10))
    before = report(chat)
    chat.session.set_model(OTHER)
    assert not report(chat).exact
    chat.session.set_model(MODEL)
    assert report(chat).exact
    assert report(chat).token_count == before.token_count
    chat.session.set_model(OTHER)
    await collect(chat.send("And this?"))
    chat.session.history.undo()
    chat.session.set_model(MODEL)
    assert report(chat).exact
    assert report(chat).token_count == before.token_count
    runtime.store.close()
