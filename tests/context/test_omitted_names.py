"""The notice lists names found only in omitted messages: within its limit, and never a secret."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    FinalPrompt,
    Pins,
    build_final_prompt,
)
from rolling_chat.context.notice_contents import NAMES_HEAD, OmittedName
from rolling_chat.context.omitted_names import rank_names
from rolling_chat.context.tokens import bounding_estimator
from rolling_chat.messages import Message
from tests.support.conversations import MODELS, context_settings, wild_conversations
from tests.support.soundness import TOOLS, assert_fits

_CONFIG = ContextConfig(
    max_context_tokens=3_000, reserved_output_tokens=300, recall=True, prompt_cache=True, omitted_names=0.05
)


def talk(turns: int) -> list[dict[str, Any]]:
    """Each turn is about a file of its own, which is said by its name once."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are careful."}]
    for turn in range(turns):
        messages.append(
            {"role": "user", "content": f"What is in src/part_{turn}.py? {'so many words ' * 40}"}
        )
        messages.append({"role": "assistant", "content": f"Handler{turn}.run_it raises ValueError{turn}."})
    messages.append({"role": "user", "content": "and now?"})
    return messages


def names_of(prompt: FinalPrompt) -> dict[str, str]:
    """The names that the notice lists, each with the id behind it."""
    text = prompt.messages[0]["content"].partition(NAMES_HEAD)[2].partition("\n\n")[0]
    lines = [line.rpartition(" [recall: ") for line in text.strip().splitlines()]
    return {name: rest.rstrip("]") for names, mark, rest in lines if mark for name in names.split(", ")}


def build(messages: list[dict[str, Any]], config: ContextConfig = _CONFIG, **more: Any) -> FinalPrompt:
    return build_final_prompt(messages, config, model="gpt-4o", **more)


def said(messages: list[dict[str, Any]]) -> str:
    return "\n".join(str(message["content"]) for message in messages)


def test_what_left_is_named_with_the_id_that_reads_it() -> None:
    messages = talk(30)
    prompt = build(messages)
    names = names_of(prompt)
    assert len(names) > 5
    for name, piece in names.items():
        assert name in messages[int(piece.removeprefix("r"))]["content"]
        assert name not in said(prompt.messages[1:])
    assert prompt.report.names > 20
    assert prompt.report.names < prompt.report.system


def test_nothing_is_named_by_default_while_nothing_left_and_with_rolling_off() -> None:
    assert not names_of(build(talk(30), replace(_CONFIG, omitted_names=0.0)))
    assert ContextConfig().omitted_names == 0.0
    assert not names_of(build(talk(3)))
    assert not names_of(build(talk(3), replace(_CONFIG, enabled=False)))


def test_the_list_stands_still_between_trims_and_keeps_what_is_still_missing() -> None:
    messages, plan, before, trims = talk(60), None, None, 0
    for end in range(2, len(messages) + 1, 2):
        prompt = build(messages[:end], plan=plan)
        plan = ContextPlan.from_json(json.loads(json.dumps(prompt.plan.to_json())))
        if before is not None and not prompt.report.trimmed:
            assert prompt.messages[: len(before)] == before
        trims += prompt.report.trimmed
        before = prompt.messages
    assert trims > 3
    assert names_of(prompt)


def test_a_name_that_is_said_again_is_no_longer_listed() -> None:
    messages = talk(30)
    first = build(messages)
    name = next(iter(names_of(first)))
    more = [
        {"role": "assistant", "content": "some more words " * 300},
        {"role": "user", "content": f"then {name}? {'some more words ' * 150}"},
    ]
    second = build([*messages, *more], plan=first.plan)
    assert second.report.trimmed
    assert names_of(second)
    assert name not in names_of(second)


def test_what_the_user_excludes_is_not_named() -> None:
    messages = talk(30)
    prompt = build(messages)
    index = int(next(iter(names_of(prompt).values())).removeprefix("r"))
    for plan in (prompt.plan, None):
        without = build(messages, plan=plan, pins=Pins(excluded=frozenset({index})))
        assert f"r{index}" not in names_of(without).values()


@pytest.mark.parametrize(
    "secret",
    [
        "DB_PASSWORD=hunter_2",
        'api_key: "abc_1234567890"',
        "token ghp_abcdefghijklmnop1234",
        "-H 'Authorization: Bearer some_thing.else_1'",
        "https://ann:pass_word1@host.example.com/db_1",
    ],
)
def test_a_secret_is_not_named(secret: str) -> None:
    messages = talk(30)
    for message in messages[1:-1]:
        message["content"] += f"\n{secret}\n"
    names = " ".join(names_of(build(messages, replace(_CONFIG, omitted_names=0.3))))
    for part in ("hunter_2", "abc_1234567890", "ghp_abcdefghijklmnop1234", "some_thing", "pass_word1"):
        assert part not in names


def test_names_of_the_work_at_hand_come_first() -> None:
    left = [
        (1, Message("tool", "other_thing_a, other_thing_b")),
        (2, Message("tool", "the_lexer uses next_token and token_kind")),
    ]
    sent = [Message("system", ""), Message("user", "fix the_lexer")]
    ranked = [name.name for name in rank_names(left, sent, (), 3)]
    assert set(ranked[:2]) == {"next_token", "token_kind"}
    assert "the_lexer" not in ranked


def test_what_was_listed_before_goes_on_without_being_read_again() -> None:
    known = [OmittedName(1, "old_name", 200), OmittedName(2, "said_again", 200)]
    ranked = rank_names([(5, Message("user", "new_name"))], [Message("user", "said_again")], known, 6)
    assert {name.name for name in ranked} == {"old_name", "new_name"}


@given(wild_conversations(), context_settings(), st.floats(0.01, 0.5), MODELS)
def test_names_take_no_more_than_their_share_and_no_prompt_is_over(
    messages: list[dict[str, Any]], keys: dict[str, Any], share: float, model: str | None
) -> None:
    config = ContextConfig(**{**keys, "omitted_names": share, "recall": True})
    try:
        prompt = build_final_prompt(messages, config, tools=TOOLS, model=model)
    except ContextOverflowError:
        with pytest.raises(ContextOverflowError):  # nothing is refused for the names' sake
            build_final_prompt(messages, replace(config, omitted_names=0.0), tools=TOOLS, model=model)
        return
    assert_fits(prompt, config, model)
    notice = prompt.plan.decisions.notice
    if notice.names:
        block = notice.names_block(recall=True)
        taken = bounding_estimator(model).bound_text(block)
        assert taken <= share * (prompt.report.window - prompt.report.reserve) + 8
        again = build_final_prompt(messages, config, tools=TOOLS, model=model, plan=prompt.plan)
        assert (again.messages, again.plan) == (prompt.messages, prompt.plan)
