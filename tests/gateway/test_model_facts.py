"""What the proxy's configuration says of a model."""

from __future__ import annotations

from typing import Any

from rolling_chat.gateway.model_facts import ModelDirectory, ModelFacts


def row(model: str, **info: Any) -> dict[str, Any]:
    return {"litellm_params": {"model": model}, "model_info": info}


def facts(*rows: dict[str, Any]) -> ModelFacts:
    return ModelDirectory(lambda _model, _team: rows, lambda _model: {"max_input_tokens": 9_000}).facts(
        "chat"
    )


def test_the_configuration_comes_before_the_table() -> None:
    assert facts(row("openai/gpt-4o", max_input_tokens=5_000)).window == 5_000
    assert facts(row("openai/gpt-4o")).window == 9_000


def test_of_several_deployments_the_smallest_window_counts() -> None:
    several = facts(row("openai/gpt-4o", max_input_tokens=5_000), row("azure/x", base_model="gpt-4o-mini"))
    assert (several.window, several.name) == (5_000, "openai/gpt-4o")
    assert facts(row("openai/gpt-4o"), row("anthropic/claude-sonnet-4-5")).name == ""


def test_a_wildcard_counts_by_the_name_that_was_asked_for() -> None:
    directory = ModelDirectory(lambda _model, _team: [row("anthropic/*")], lambda _model: {})
    assert directory.facts("anthropic/claude-sonnet-4-5").marks


def test_answers_hold_for_a_minute() -> None:
    now, rows = [0.0], [row("openai/gpt-4o", max_input_tokens=5_000)]
    directory = ModelDirectory(lambda _model, _team: rows, lambda _model: {}, lambda: now[0])
    assert directory.facts("chat").window == 5_000
    rows[0] = row("openai/gpt-4o", max_input_tokens=6_000)
    assert directory.facts("chat").window == 5_000
    now[0] = 61.0
    assert directory.facts("chat").window == 6_000


def test_marks_go_only_where_they_are_carried() -> None:
    assert facts(row("anthropic/claude-sonnet-4-5")).marks
    assert facts(row("claude-sonnet-4-5")).marks
    assert not facts(row("openai/claude-sonnet-4-5")).marks
    assert not facts(row("anthropic/claude-sonnet-4-5"), row("openai/gpt-4o")).marks
