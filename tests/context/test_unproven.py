"""The first request to a model with an unknown tokenizer, before anything was measured."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    FinalPrompt,
    Measurements,
    build_final_prompt,
    confirm_count,
)
from tests.support.conversations import assistant, user
from tests.support.tokenizers import Tokenizer, six_tokenizers

MODEL = "local/unknown"
WINDOW, RESERVE = 16_000, 4_096
SYSTEM = {"role": "system", "content": "You are a careful assistant. " * 20}
CODE = "    if self._values[name] is None: raise ValueError(f'{name!r}: no value (see {self.path})')\n"


def build(
    messages: list[dict[str, Any]],
    learned: Measurements | None = None,
    *,
    share: float = 1.0,
    model: str = MODEL,
    window: int = WINDOW,
    enabled: bool = False,
) -> FinalPrompt:
    config = ContextConfig(
        enabled=enabled,
        max_context_tokens=window,
        reserved_output_tokens=min(RESERVE, window // 3),
        max_history_tokens=0,
        unproven_share=share,
        calibration=(learned or Measurements()).calibration,
    )
    return build_final_prompt(messages, config, model=model)


def long_message(lines: int) -> list[dict[str, Any]]:
    return [SYSTEM, user(CODE * lines)]


def just_fitting(tokenizer: Tokenizer, window: int, share: float) -> list[dict[str, Any]]:
    """A first request that fills a share of W - R by the server's count."""
    lines, room = 1, (window - min(RESERVE, window // 3)) * share
    each = tokenizer.count(CODE)
    lines = int((room - tokenizer.report(long_message(0))) / each)
    while tokenizer.report(long_message(lines)) > room:
        lines -= 1
    return long_message(lines)


def test_a_request_is_sent_if_its_estimate_fits_and_the_report_says_so() -> None:
    messages = long_message(370)
    with pytest.raises(ContextOverflowError):
        build(messages, share=0.0)
    report = build(messages).report
    assert report.within_budget
    assert report.bound > report.room >= report.tested == report.unproven
    assert report.totals()["unproven"] == report.unproven
    assert abs(report.unproven - report.token_count) <= len(messages) + 1


def test_the_estimate_before_the_first_reply_is_near_the_counts_of_other_models() -> None:
    (gpt,) = (one for one in six_tokenizers() if one.model == "gpt-4")
    messages = [SYSTEM, user("Please explain how the parser handles nested quotations. " * 60)]
    count = build(messages).token_count
    assert 0.95 * gpt.report(messages) <= count <= 1.3 * gpt.report(messages)


@pytest.mark.parametrize("tokenizer", six_tokenizers(), ids=lambda one: one.model)
@pytest.mark.parametrize("window", [8_192, 32_768, 131_072])
def test_nothing_that_fits_by_the_servers_count_is_refused(tokenizer: Tokenizer, window: int) -> None:
    build(just_fitting(tokenizer, window, 0.9), window=window)


def test_the_hard_rule_applies_once_a_reply_or_a_refusal_is_known() -> None:
    messages = long_message(370)
    for learned in (Measurements().add(None), Measurements().tried()):
        with pytest.raises(ContextOverflowError):
            build(messages, learned)


def test_the_hard_rule_applies_to_a_known_model() -> None:
    messages = [SYSTEM, user("The rain in Spain. " * 3_700)]
    assert build(messages, model="gpt-4o", window=64_000).report.unproven == 0
    with pytest.raises(ContextOverflowError):
        build(messages, model="claude-sonnet-4-5", window=30_000)


def test_with_rolling_on_a_prompt_that_fits_by_its_estimate_is_not_trimmed() -> None:
    messages = [SYSTEM]
    for number in range(9):
        messages += [user(f"{number}: " + CODE * 14), assistant(CODE * 14)]
    messages.append(user("And now?"))
    assert build(messages, share=0.0, enabled=True).report.trimmed
    report = build(messages, enabled=True).report
    assert not report.trimmed
    assert report.bound > report.room
    # and what does not fit by the estimate is trimmed to it
    longer = [SYSTEM, *(messages[1:-1] * 3), user("And now?")]
    report = build(longer, enabled=True).report
    assert report.trimmed
    assert report.tested <= report.room


def test_a_request_that_is_far_too_long_is_refused_with_its_estimate() -> None:
    with pytest.raises(ContextOverflowError) as refused:
        build(long_message(2_000))
    assert refused.value.current == refused.value.report.tested


def test_a_try_is_kept() -> None:
    learned = Measurements().tried()
    assert Measurements.from_json(json.loads(json.dumps(learned.to_json()))) == learned
    assert not learned.calibration.knows_nothing
    assert Measurements().calibration.knows_nothing


@pytest.mark.parametrize("tokenizer", six_tokenizers(), ids=lambda one: one.model)
def test_a_server_refuses_once_at_most(tokenizer: Tokenizer) -> None:
    window, refused, learned = 8_192, 0, Measurements()
    room = window - min(RESERVE, window // 3)
    for share in (1.3, 0.6, 1.2, 0.8, 1.05, 0.95):
        messages = just_fitting(tokenizer, window, share)
        try:
            prompt = build(messages, learned, window=window, model="local/unknown")
        except ContextOverflowError:
            continue
        reported = tokenizer.report(prompt.messages)
        if reported > room + RESERVE:
            refused += 1
            learned = learned.tried()
        learned = learned.add(confirm_count(prompt.plan, reported, is_certain=True).group)
    assert refused <= 1
