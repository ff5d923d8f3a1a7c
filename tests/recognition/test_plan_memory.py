"""The plans of many conversations in memory."""

from __future__ import annotations

from rolling_chat.context import ContextConfig, build_final_prompt
from rolling_chat.recognition.fingerprints import Branch, Recognizer
from rolling_chat.recognition.plan_memory import PlanMemory
from tests.support.conversations import assistant, user


def branch(number: int) -> Branch:
    return Recognizer().branch([user(f"Hi {number}."), assistant("Yes."), user("Go on.")])


def test_memory_is_bounded() -> None:
    memory = PlanMemory(plans=3, warm=2_500)
    branches = [branch(number) for number in range(10)]
    for one in branches:
        plan = build_final_prompt(one.messages, ContextConfig(max_context_tokens=10_000), model="gpt-4o").plan
        memory.put(one.prefixes[-1], plan)
    assert [memory.longest(one, one.ends()) for one in branches] == [*[0] * 7, *[3] * 3]
    plans = [memory.get(one.prefixes[-1]) for one in branches[7:]]
    assert [plan is not None and plan.index is not None for plan in plans] == [False, False, True]
