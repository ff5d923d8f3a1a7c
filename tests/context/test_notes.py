"""The model's notes are in every prompt: in their call, or in the notice once that is omitted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    FinalPrompt,
    Pins,
    build_final_prompt,
)
from rolling_chat.context.notice_contents import NOTES_HEAD
from rolling_chat.context.tokens import bounding_estimator
from rolling_chat.messages import Message
from rolling_chat.notes import NoteKey, max_notes_tokens, notes_on
from tests.support.conversations import MODELS, assistant, context_settings, tool, user, wild_conversations
from tests.support.soundness import TOOLS, assert_fits

_CONFIG = ContextConfig(max_context_tokens=3_000, reserved_output_tokens=300, notes=True, prompt_cache=True)

Messages = list[dict[str, Any]]


def note(number: int, text: str, **more: Any) -> Messages:
    """A call that makes a note, and its result."""
    call = assistant("", (f"n{number}", "note"))
    call["tool_calls"][0]["function"]["arguments"] = json.dumps({"text": text, **more})
    return [call, tool(f"n{number}", "[noted]")]


def filling(number: int) -> Messages:
    return [user(f"question {number}"), assistant(f"words of an answer {number} " * 60)]


def talk(notes: Mapping[int, str], turns: int) -> Messages:
    """Turns of which some end with a note."""
    messages = [{"role": "system", "content": "You are careful."}]
    for turn in range(turns):
        messages += filling(turn)[:1]
        if turn in notes:
            messages += note(turn, notes[turn])
        messages += filling(turn)[1:]
    return [*messages, user("and now?")]


def told(prompt: FinalPrompt) -> str:
    text = str(prompt.messages[0]["content"]) if prompt.messages[0]["role"] == "system" else ""
    return text.partition(NOTES_HEAD)[2].strip().partition("\n\n")[0]


def grown(messages: Messages, config: ContextConfig = _CONFIG, pins: Pins | None = None) -> list[FinalPrompt]:
    """The prompt of every request, each with the plan of the one before, as a store gives it back."""
    plan, prompts = None, []
    for end in range(2, len(messages) + 1):
        if messages[end - 1]["role"] != "assistant":
            prompt = build_final_prompt(messages[:end], config, model="gpt-4o", plan=plan, pins=pins)
            plan = ContextPlan.from_json(json.loads(json.dumps(prompt.plan.to_json())))
            prompts.append(prompt)
    return prompts


def test_every_note_is_in_every_prompt_and_the_prefix_stays_the_same() -> None:
    notes = {1: "Deploy on Fridays only.", 9: "The token lives 15 minutes.", 14: "Ann decides."}
    before: Messages | None = None
    prompts = grown(talk(notes, 24))
    for prompt in prompts:
        said = json.dumps(prompt.messages)
        made = [text for at, text in notes.items() if f"question {at + 1}" in said or prompt is prompts[-1]]
        assert all(text in said for text in made)
        if before is not None and not prompt.report.trimmed:
            assert prompt.messages[: len(before)] == before
        before = prompt.messages
    assert all(text in told(prompts[-1]) for text in (notes[1], notes[9]))
    assert prompts[-1].report.notes > 15


def test_no_note_is_listed_without_the_tool_or_with_rolling_off() -> None:
    messages = talk({1: "Deploy on Fridays only."}, 24)
    assert not told(grown(messages, replace(_CONFIG, notes=False))[-1])
    off = replace(_CONFIG, enabled=False, max_context_tokens=90_000)
    assert not told(grown(messages, off)[-1])


def test_a_note_that_replaces_another_is_listed_instead_of_it() -> None:
    messages = talk({1: "The port is 8080."}, 12)
    messages += [*note(2, "The port is 9090.", replaces="r4"), *filling(99)[1:]]
    messages += talk({}, 24)[1:]
    prompts = grown(messages)
    assert any("8080" in told(prompt) for prompt in prompts)
    assert "9090" in told(prompts[-1])
    assert "8080" not in told(prompts[-1])


def test_a_call_that_failed_makes_no_note() -> None:
    messages = [Message.from_dict(one) for one in (user("go"), *note(1, "kept"), *note(2, "refused"))]
    failed = replace(messages[-1], ending="failed")
    assert [one.text for one in notes_on([*messages[:-1], failed], {})] == ["kept"]
    assert [one.text for one in notes_on(messages[:-1], {})] == ["kept"]  # it has no result yet


def test_the_users_changes_apply_at_once_and_permanently() -> None:
    messages = talk({1: "The port is 8080.", 2: "Ann decides."}, 4)
    changed = Pins(notes={NoteKey(4): "The port is 9090.", NoteKey(8): ""})
    at_once = build_final_prompt(messages, _CONFIG, model="gpt-4o", pins=changed)
    assert told(at_once) == "r4 (changed by the user): The port is 9090.\nr8: removed by the user"
    later = grown(talk({1: "The port is 8080.", 2: "Ann decides."}, 24), pins=changed)[-1]
    assert told(later) == "r4 (changed by the user): The port is 9090."
    assert "Ann decides" not in json.dumps(later.messages)


def test_no_call_replaces_the_users_changes() -> None:
    messages = [user("go"), *note(1, "The port is 8080."), *note(2, "The port is 1.", replaces="r2")]
    branch = [Message.from_dict(one) for one in messages]
    kept = notes_on(branch, {NoteKey(2): "The port is 9090."})
    assert [one.text for one in kept] == ["The port is 9090.", "The port is 1."]


def test_only_the_newest_notes_that_fit_are_listed() -> None:
    messages = talk({at: f"fact {at} " + "and so on " * 30 for at in range(20)}, 30)
    prompt = grown(messages)[-1]
    block = prompt.plan.decisions.notice.notes_block
    assert 0 < bounding_estimator("gpt-4o").bound_text(block) <= max_notes_tokens(3_000)
    assert "fact 19" in json.dumps(prompt.messages)
    assert len(prompt.plan.decisions.notice.hidden_notes) > 5


def test_a_note_comes_back_with_a_call_that_is_included_again() -> None:
    messages, plan = talk({1: "Ann decides."}, 24), None
    for pins in (Pins(), Pins(excluded=frozenset({4})), Pins()):
        prompt = build_final_prompt(messages, _CONFIG, model="gpt-4o", plan=plan, pins=pins)
        plan = ContextPlan.from_json(json.loads(json.dumps(prompt.plan.to_json())))
        assert ("Ann decides." in told(prompt)) == (not pins.excluded)


def test_notes_survive_a_change_of_the_model() -> None:
    messages = talk({1: "Ann decides."}, 24)
    plan = grown(messages)[-1].plan
    other = build_final_prompt([*messages], _CONFIG, model="claude-sonnet-4-5", plan=plan)
    assert "Ann decides." in told(other)


def test_notes_survive_a_new_plan() -> None:
    messages = talk({1: "Ann decides."}, 24)
    known = grown(messages)[-1].plan.afresh()
    assert known is not None
    messages[4:6] = [assistant("only the plan knows the call that was here " * 40), user("go on")]
    again = build_final_prompt(messages, _CONFIG, model="gpt-4o", plan=known)
    assert again.report.trimmed
    assert "Ann decides." in told(again)
    assert grown(talk({}, 3))[-1].plan.afresh() is None


def test_a_rewind_restores_the_notes_of_that_point() -> None:
    messages = talk({1: "Ann decides.", 20: "Bob decides."}, 24)
    plan = grown(messages)[-1].plan
    end = next(at for at, one in enumerate(messages) if one["content"] == "question 12")
    back = build_final_prompt(messages[: end + 1], _CONFIG, model="gpt-4o", plan=plan)
    assert "Bob decides." not in json.dumps(back.messages)
    assert "Ann decides." in json.dumps(back.messages)


@given(
    wild_conversations(), st.lists(st.tuples(st.integers(0, 30), st.text(max_size=900)), max_size=6),
    context_settings(), MODELS,
)  # fmt: skip
@settings(max_examples=40)
def test_no_prompt_exceeds_the_window_whatever_the_notes(
    messages: Messages, made: list[tuple[int, str]], keys: dict[str, Any], model: str | None
) -> None:
    branch = list(messages)
    for number, (at, text) in enumerate(made):
        place = next((i for i in range(at, len(branch)) if branch[i]["role"] == "user"), len(branch))
        branch[place:place] = [user("note this"), *note(number, text), assistant("noted")]
    config = ContextConfig(**{**keys, "notes": True, "recall": True, "room": True})
    try:
        prompt = build_final_prompt(branch, config, tools=TOOLS, model=model)
    except ContextOverflowError:
        with pytest.raises(ContextOverflowError):
            build_final_prompt(branch, replace(config, notes=False, room=False), tools=TOOLS, model=model)
        return
    assert_fits(prompt, config, model)
    block = prompt.plan.decisions.notice.notes_block
    assert bounding_estimator(model).bound_text(block) <= max_notes_tokens(config.max_context_tokens)
    again = build_final_prompt(branch, config, tools=TOOLS, model=model, plan=prompt.plan)
    assert (again.messages, again.plan) == (prompt.messages, prompt.plan)
