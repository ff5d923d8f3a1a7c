"""The plan: decisions that stay the same, and an index so that only new messages are read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context import ContextConfig, ContextOverflowError, ContextPlan, build_final_prompt
from rolling_chat.context.index_ranges import IndexRanges
from rolling_chat.context.prompt_items import Decisions, PromptItem, Sizes
from rolling_chat.context.repair import NormalizedMessage
from rolling_chat.messages import Message
from tests.support.conversations import assistant, tool, user
from tests.support.prompt_rules import broken_rules

SYSTEM = {"role": "system", "content": "You are a careful assistant."}


class Watched(list[Any]):
    """A list that remembers which of its indexes were looked at."""

    def __init__(self, items: list[Any]) -> None:
        super().__init__(items)
        self.seen: set[int] = set()

    def __getitem__(self, position: Any) -> Any:
        self.seen.update(
            range(*position.indices(len(self))) if isinstance(position, slice) else [position % len(self)]
        )
        return super().__getitem__(position)

    def __iter__(self) -> Any:
        self.seen.update(range(len(self)))
        return super().__iter__()


def long_chat(turns: int) -> list[dict[str, Any]]:
    return [SYSTEM] + [m for n in range(turns) for m in (user(f"q{n} " + "word " * 50), assistant(f"a{n}"))]


def test_a_warm_plan_reads_only_kept_and_new_messages() -> None:
    config = ContextConfig(max_context_tokens=16_000)
    messages = [*long_chat(2_000), user("now?")]
    first = build_final_prompt(messages, config, model="gpt-4o")
    kept = {item.index for item in first.plan.index.items} if first.plan.index else set()
    watched = Watched([*messages, assistant("yes"), user("and?")])
    build_final_prompt(watched, config, model="gpt-4o", plan=first.plan)
    new = set(range(len(messages) - 1, len(watched)))
    assert watched.seen <= kept | new | {0}
    assert len(kept) < 200


@pytest.mark.parametrize("window", [0, 4_000])
def test_with_rolling_off_a_warm_plan_reads_only_new_messages_even_after_a_refusal(window: int) -> None:
    config = ContextConfig(enabled=False, max_context_tokens=window or 10_000_000)
    messages = [*long_chat(200), user("now?")]
    plan = seen(messages, config, None)
    for _turn in range(2):
        messages += [assistant("yes"), user("and?")]
        counted = Shaped()
        with counted:
            plan = seen(messages, config, plan)
        assert counted.indexes == {len(messages) - 2, len(messages) - 1}


def seen(messages: list[Any], config: ContextConfig, plan: ContextPlan | None) -> ContextPlan | None:
    try:
        return build_final_prompt(messages, config, model="gpt-4o", plan=plan).plan
    except ContextOverflowError as refusal:
        return refusal.plan


class Shaped:
    """The indexes of the messages that items were made of while it was entered."""

    def __init__(self) -> None:
        self.indexes: set[int] = set()
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> None:
        shape = Sizes.shape

        def noted(sizes: Sizes, normalized: NormalizedMessage, decisions: Decisions) -> PromptItem:
            self.indexes.add(normalized.index)
            return shape(sizes, normalized, decisions)

        self._patch.setattr(Sizes, "shape", noted)

    def __exit__(self, *_error: object) -> None:
        self._patch.undo()


def test_a_changed_message_invalidates_the_index() -> None:
    config = ContextConfig(max_context_tokens=16_000)
    messages = [SYSTEM, user("a"), assistant("b"), user("c")]
    plan = build_final_prompt(messages, config, model="gpt-4o").plan
    changed = [SYSTEM, user("A!"), assistant("b"), user("c"), assistant("d"), user("e")]
    assert build_final_prompt(changed, config, model="gpt-4o", plan=plan).messages == changed


def test_a_rewind_invalidates_a_longer_plan() -> None:
    config = ContextConfig(max_context_tokens=8_192)
    messages = [*long_chat(60), user("now?")]
    plan = build_final_prompt(messages, config, model="gpt-4o").plan
    assert build_final_prompt(messages[:4], config, model="gpt-4o", plan=plan).messages == messages[:4]


def test_a_call_without_a_result_is_answered_even_if_the_plan_has_cached_it() -> None:
    config = ContextConfig(max_context_tokens=8_192, prompt_cache=True)
    messages = [*long_chat(100), user("now?"), assistant("", ("1", "x"), ("2", "x")), tool("1", "r")]
    plan = build_final_prompt(messages, config, model="gpt-4o").plan
    assert len(plan.decisions.omitted)
    longer = [*messages, assistant("", ("3", "x")), tool("3", "r")]
    prompt = build_final_prompt(longer, config, model="gpt-4o", plan=plan)
    assert broken_rules(prompt.messages) == []


def test_a_turn_with_only_invented_messages_left_is_dropped() -> None:
    config = ContextConfig(max_context_tokens=8_192, prompt_cache=True, preserve_recent_turns=0)
    torn = [SYSTEM, assistant("", ("1", "x")), tool("1", "word " * 900), *long_chat(60)[1:], user("now?")]
    prompt = build_final_prompt(torn, config, model="gpt-4o")
    assert prompt.plan.decisions.omitted.get(1)
    assert "[no reply was recorded]" not in [message["content"] for message in prompt.messages]
    stored = ContextPlan.from_json(prompt.plan.to_json())
    assert build_final_prompt(torn, config, model="gpt-4o", plan=stored).messages == prompt.messages


def test_a_cold_cache_trims_early_because_it_costs_nothing() -> None:
    config = ContextConfig(max_context_tokens=64_000, max_history_tokens=4_000, prompt_cache=True)
    messages = [*long_chat(58), user("now?")]
    plan = build_final_prompt(messages[:2], config, model="gpt-4o").plan
    warm = build_final_prompt(messages, config, model="gpt-4o", plan=plan)
    cold = build_final_prompt(messages, config, model="gpt-4o", plan=plan.cold())
    assert not warm.report.trimmed
    assert cold.report.trimmed
    assert not cold.plan.is_cold


def test_messages_and_dictionaries_give_the_same_prompt() -> None:
    config = ContextConfig(max_context_tokens=8_192)
    messages = [*long_chat(60), user("now?")]
    as_dicts = build_final_prompt(messages, config, model="gpt-4o").messages
    as_messages = build_final_prompt(
        [Message.from_dict(m) for m in messages], config, model="gpt-4o"
    ).messages
    assert [message.to_dict() for message in as_messages] == as_dicts


def test_ranges_stay_few_however_many_indexes_they_contain() -> None:
    ranges = IndexRanges()
    for index in range(0, 10_000, 10):
        ranges = ranges.add((position, "2") for position in range(index, index + 10))
    assert ranges.parts == ((0, 10_000, "2"),)
    assert len(ranges) == 10_000
    assert ranges.get(9_999) == "2"
    assert 10_000 not in ranges


@given(st.sets(st.integers(0, 200)), st.sets(st.integers(0, 200)))
def test_ranges_contain_exactly_the_added_indexes(first: set[int], second: set[int]) -> None:
    second -= first
    ranges = (
        IndexRanges().add((position, "1") for position in first).add((position, "2") for position in second)
    )
    assert {position: ranges.get(position) for position in range(201) if position in ranges} == {
        **dict.fromkeys(first, "1"),
        **dict.fromkeys(second, "2"),
    }
