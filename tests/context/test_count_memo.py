"""The memo of counts saves work, drops collected messages, and never changes a plan."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rolling_chat.context
from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    CountMemo,
    FinalPrompt,
    build_final_prompt,
    confirm_count,
)
from rolling_chat.context.text_memo import TextMemo
from rolling_chat.context.tokens import FamilyEstimator, bounding_estimator
from rolling_chat.messages import Message
from tests.support.conversations import MODELS, context_settings, requests_of, wild_conversations
from tests.support.soundness import TOOLS

Messages = list[dict[str, Any]]


def plan_all(
    messages: Sequence[Message], config: ContextConfig, model: str | None, memo: CountMemo | None
) -> list[FinalPrompt | tuple[str, Any]]:
    """Every request of a conversation, the plan handed on and every other prompt confirmed."""
    made: list[FinalPrompt | tuple[str, Any]] = []
    plan: ContextPlan | None = None
    for number, end in enumerate(requests_of([message.to_dict() for message in messages], 3)):
        try:
            prompt = build_final_prompt(
                messages[:end], config, tools=TOOLS, model=model, plan=plan, memo=memo
            )
        except ContextOverflowError as error:
            made.append((str(error), error.report))
            continue
        made.append(prompt)
        plan = prompt.plan
        if number % 2:
            plan = confirm_count(plan, prompt.token_count * 9 // 10, memo=memo).plan
    return made


@given(wild_conversations(), wild_conversations(), context_settings(), MODELS)
def test_a_plan_is_the_same_whatever_the_memo_holds(
    given_messages: Messages, others: Messages, keys: dict[str, Any], model: str | None
) -> None:
    config = ContextConfig(**keys)
    messages = list(map(Message.from_dict, given_messages))
    fresh = plan_all(messages, config, model, None)
    memo, used = CountMemo(), CountMemo()
    assert plan_all(messages, config, model, memo) == fresh
    assert plan_all(messages, config, model, memo) == fresh  # warm now
    # warmed by other messages, and by the same texts for another model and in another window
    plan_all(list(map(Message.from_dict, others)), config, model, used)
    copies = [replace(message) for message in messages]
    plan_all(copies, replace(config, max_context_tokens=700), "claude-sonnet-4-5", used)
    del copies
    assert plan_all(messages, config, model, used) == fresh


@given(wild_conversations(), context_settings(), MODELS)
def test_planning_changes_nothing_that_it_was_given(
    given_messages: Messages, keys: dict[str, Any], model: str | None
) -> None:
    config = ContextConfig(**keys)
    messages = list(map(Message.from_dict, given_messages))
    same, before = list(messages), deepcopy(messages)
    plan_all(messages, config, model, None)
    plan_all(messages, config, model, CountMemo())
    assert messages == before
    assert all(now is was for now, was in zip(messages, same, strict=True))


def test_no_module_of_the_pipeline_keeps_a_memo() -> None:
    names = [one.name for one in pkgutil.iter_modules(rolling_chat.context.__path__)]
    modules = [importlib.import_module(f"rolling_chat.context.{name}") for name in names]
    kept = [value for module in modules for value in vars(module).values()]
    assert not any(isinstance(value, CountMemo | TextMemo) for value in kept)


@pytest.mark.parametrize("model", ["gpt-4o", "nobody/knows"])
def test_a_message_and_its_tools_are_counted_once(model: str) -> None:
    counted = []
    plain = bounding_estimator(model)

    def count(text: str) -> int:
        counted.append(text)
        return plain.raw(text)

    estimator = FamilyEstimator(plain.family, "counted", count, count, memo=CountMemo())
    message = Message("user", "hello there")
    results = [Message("tool", "found it"), Message("tool", "found it")]
    assert estimator.count_message(message) == estimator.count_message(message)
    assert len({estimator.count_message(result) for result in results}) == 1
    assert estimator.count_tools(TOOLS) == estimator.count_tools(TOOLS)
    assert counted[:2] == ["hello there", "found it"]
    assert len(counted) == 3


def test_a_copy_has_no_counts_and_a_collected_message_leaves_none() -> None:
    memo = CountMemo()
    messages = [Message("user", f"message {number}", id=f"m{number}") for number in range(50)]
    for number, message in enumerate(messages):
        memo.add(message, "o200k_base", number)
    assert memo.counts_of(replace(messages[0])) == {}
    kept = messages[7]
    messages.clear()
    gone = message = Message("user", "another", id="m50")
    assert memo.counts_of(kept) == {"o200k_base": 7}
    assert memo.counts_of(gone) == memo.counts_of(message) == {}
    assert memo.take_new([kept, message]) == [kept]
    assert memo.take_new([kept, message]) == []


def test_loaded_counts_are_known_but_not_new() -> None:
    memo, message = CountMemo(), Message("user", "hello", id="m1")
    memo.load(message, {"o200k_base": 1, "class": 2})
    assert memo.take_new([message]) == []
    memo.add(message, "chars", 3)
    assert memo.take_new([message]) == [message]
    assert memo.counts_of(message) == {"o200k_base": 1, "class": 2, "chars": 3}


def test_a_message_without_an_id_is_never_new() -> None:
    memo, stand_in = CountMemo(), Message("assistant", "[no reply was recorded]")
    memo.add(stand_in, "o200k_base", 6)
    assert memo.counts_of(stand_in) == {"o200k_base": 6}
    assert memo.take_new([stand_in]) == []


def test_a_memo_is_freed_with_its_last_user() -> None:
    # it may hold megabytes of texts: they must not wait for the garbage collector
    messages = [Message("user", "go"), Message("tool", "a line of output\n" * 4_000, tool_call_id="x")]
    gc.collect()
    gc.disable()
    try:
        memo = CountMemo()
        gone = weakref.ref(memo)
        build_final_prompt(messages, ContextConfig(max_tool_result_tokens=100), model="gpt-4o", memo=memo)
        del memo
        assert gone() is None
    finally:
        gc.enable()


@given(st.integers(2, 4))
def test_threads_may_share_a_memo(threads: int) -> None:
    memo = CountMemo()
    messages = [Message("user", f"message {number} " * 5, id=f"m{number}") for number in range(200)]
    estimators = [bounding_estimator(model, memo=memo) for model in ("gpt-4o", "gpt-4-0613", "nobody/knows")]

    def work(_: int) -> list[int]:
        short_lived = [replace(message) for message in messages]
        return [one.raw_message(message) for one in estimators for message in (*messages, *short_lived)]

    with ThreadPoolExecutor(threads) as pool:
        counted = list(pool.map(work, range(threads)))
    assert all(one == counted[0] for one in counted)
    assert all(len(memo.counts_of(message)) == len({one.name for one in estimators}) for message in messages)
    assert memo.take_new(messages) == messages
