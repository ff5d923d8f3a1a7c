"""How many turns are left, estimated from the pace of the newest turns."""

from __future__ import annotations

from typing import Any

from rolling_chat.context import ContextConfig, PromptReport, build_final_prompt
from tests.support.conversations import assistant, tool, user
from tests.support.replay import SYSTEM, long_conversation


def _report(messages: list[dict[str, Any]], **config: Any) -> PromptReport:
    return build_final_prompt(messages, ContextConfig(**config), model="gpt-4o").report


def _turn(words: int) -> list[dict[str, Any]]:
    return [user("Go on?"), assistant("word " * words)]


def test_before_a_turn_is_over_nobody_knows() -> None:
    for messages in (
        [SYSTEM],
        [SYSTEM, user("hi")],
        [SYSTEM, user("hi"), assistant("", ("a", "f")), tool("a", "x")],
    ):
        report = _report(messages)
        assert (report.pace, report.turns_left) == (0, None)


def test_the_pace_is_the_mean_of_the_newest_five() -> None:
    small, large = _report([SYSTEM, *_turn(10)]).pace, _report([SYSTEM, *_turn(500)]).pace
    many = [SYSTEM, *(message for _ in range(20) for message in _turn(10))]
    assert _report(many).pace == small
    mixed = _report([*many, *_turn(500)])
    assert mixed.pace == -(-(4 * small + large) // 5)
    for _ in range(4):
        many += _turn(500)
    assert _report([*many, *_turn(500), user("now?")]).pace == large


def test_with_rolling_off_the_turns_end_where_the_request_is_refused() -> None:
    messages = [SYSTEM]
    while True:
        messages += _turn(100)
        report = _report([*messages, user("Go on?")], enabled=False, max_context_tokens=20_000)
        left = report.turns_left
        assert left is not None
        if left == 0:
            break
    assert report.within_budget
    assert report.bound + 2 * 1.05 * report.pace > report.room  # unmeasured, it is refused for its bound


def test_with_rolling_on_they_end_at_the_next_trim_and_begin_anew_after_it() -> None:
    messages, plan, seen = [SYSTEM], None, []
    config = ContextConfig(max_context_tokens=100_000, max_history_tokens=3000)
    for _ in range(60):
        messages += _turn(100)
        prompt = build_final_prompt(messages, config, model="gpt-4o", plan=plan)
        plan = prompt.plan
        seen.append((prompt.report.turns_left, prompt.report.trimmed))
    trims = [position for position, (_, trimmed) in enumerate(seen) if trimmed]
    assert len(trims) > 2
    for position in trims:
        left, _ = seen[position]
        assert left is not None
        assert left > 5
        following = next((one for one in trims if one > position), None)
        if following is not None:
            assert following - position == left + 1


def test_what_was_masked_counts_for_the_pace_as_it_came_in() -> None:
    whole = _report(long_conversation(turns=6), max_history_tokens=0)
    masked = _report(long_conversation(turns=6), max_history_tokens=5000, preserve_recent_turns=0)
    assert masked.trimmed
    assert masked.history < whole.history
    assert masked.pace == whole.pace


def test_a_turn_cut_down_to_its_request_and_answer_is_no_measure() -> None:
    whole = _report(long_conversation(turns=6), max_history_tokens=0)
    cut = _report(long_conversation(turns=6), max_history_tokens=900, preserve_recent_turns=1)
    assert cut.pace in {0, whole.pace}
