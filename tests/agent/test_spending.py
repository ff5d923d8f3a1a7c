"""Cost limits: asked about before they are passed, and kept where nobody can be asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from rolling_chat.agent import Chat
from rolling_chat.events import Noticed, Outcome, SpendingQuestion, TurnEnded
from rolling_chat.messages import Message, Usage
from rolling_chat.providers.protocol import Finished
from rolling_chat.settings.catalog import ModelCatalog
from rolling_chat.settings.schema import AgentSettings, Settings
from tests.support.agent import MODEL, ScriptedProvider, collect, make_runtime, of_kind

ENTRY = {"mode": "chat", "litellm_provider": "openai", "max_input_tokens": 32_000}
NOON = datetime(2026, 3, 14, 12).timestamp()  # noqa: DTZ001  # local: a day is the user's
PRICED = ENTRY | {"input_cost_per_token": 1e-5, "output_cost_per_token": 1e-5}


def _chat(folder: Path, *, entry: object = PRICED, **limits: float) -> tuple[Chat, ScriptedProvider]:
    """A chat each of whose answers costs 30 cents."""
    answer = [Finished(Message("assistant", "yes"), Usage(100, 10, cost=0.3))]
    provider = ScriptedProvider(answer)
    runtime = make_runtime(folder, provider, settings=Settings(agent=AgentSettings(**limits)))
    runtime.catalog = ModelCatalog({MODEL: entry})
    runtime.clock = lambda: NOON
    return Chat.open(runtime), provider


def _answering(chat: Chat, answer: bool) -> list[SpendingQuestion]:
    asked: list[SpendingQuestion] = []

    async def ask(question: SpendingQuestion) -> bool:
        asked.append(question)
        return answer

    chat.listener.ask_spending = ask
    return asked


@pytest.mark.parametrize("name", ["max_cost_session", "max_cost_day"])
async def test_the_user_is_asked_before_a_limit_is_passed(tmp_path: Path, name: str) -> None:
    chat, provider = _chat(tmp_path, **{name: 0.6})
    asked = _answering(chat, answer=False)
    for _ in range(2):
        await collect(chat.send("hello"))
    assert asked == []
    ended = of_kind(await collect(chat.send("once more")), TurnEnded)[0]
    assert len(provider.requests) == 2
    assert (asked[0].limit, ended.outcome) == (0.6, Outcome.FAILED)
    assert "has cost $0.60, and the next request may cost $0.0" in ended.error
    assert f"more than $0.60 (agent.{name})." in ended.error


async def test_going_on_asks_again_after_the_same_amount(tmp_path: Path) -> None:
    chat, provider = _chat(tmp_path, max_cost_session=0.6)
    asked = _answering(chat, answer=True)
    for _ in range(5):
        await collect(chat.send("hello"))
    assert (len(asked), len(provider.requests)) == (2, 5)


async def test_where_nobody_can_be_asked_nothing_is_sent(tmp_path: Path) -> None:
    chat, provider = _chat(tmp_path, max_cost_session=0.001)
    ended = of_kind(await collect(chat.send("hello")), TurnEnded)[0]
    assert (provider.requests, ended.outcome) == ([], Outcome.FAILED)
    assert ended.error.startswith("Not sent: this session has cost $0.00, and the next request may cost $0.0")


async def test_a_model_without_a_price_is_said_once_or_not_sent(tmp_path: Path) -> None:
    chat, provider = _chat(tmp_path, entry=ENTRY, max_cost_session=5.0)
    error = of_kind(await collect(chat.send("hello")), TurnEnded)[0].error
    assert (provider.requests, error.startswith("Not sent: the price of")) == ([], True)
    _answering(chat, answer=True)
    lines = [one.text for _ in range(2) for one in of_kind(await collect(chat.send("hi")), Noticed)]
    assert lines == [f"The price of {MODEL} is not known, so agent.max_cost_session cannot be kept."]


async def test_the_days_limit_counts_every_session_of_the_day_and_no_other(tmp_path: Path) -> None:
    chat, _ = _chat(tmp_path, max_cost_day=0.5)
    await collect(chat.send("hello"))
    chat.close()
    runtime = replace(chat._runtime, clock=lambda: NOON + 86_400)
    assert Chat.open(runtime).session.spending.spent("max_cost_day") == 0.0
    assert Chat.open(chat._runtime).session.spending.spent("max_cost_day") == pytest.approx(0.3)
