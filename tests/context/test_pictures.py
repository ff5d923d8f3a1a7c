"""The cost of pictures: the providers' own examples, and bounds that no estimate exceeds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context.families import family_of
from rolling_chat.context.pictures import picture_rule
from rolling_chat.context.tokens import bounding_estimator
from rolling_chat.messages import Message, picture_part
from rolling_chat.pictures import data_uri
from tests.support.pictures import png

MODELS = (
    "openai/gpt-4o", "gpt-4o-mini", "gpt-5", "gpt-5.2", "gpt-5-mini", "gpt-4.1-nano", "o1", "o4-mini",
    "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro", "openai/my-own-model", "",
)  # fmt: skip


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("openai/gpt-4o", (1024, 1024), 765),
        ("openai/gpt-4o", (2048, 4096), 1105),
        ("gpt-4o-mini", (1024, 1024), 25_501),
        ("gpt-5", (1024, 1024), 630),
        ("o3", (512, 512), 225),
        ("gpt-4.1-mini", (1024, 1024), 1_659),
        ("anthropic/claude-sonnet-4-5", (1000, 1000), 1_334),
        ("anthropic/claude-sonnet-4-5", (200, 200), 54),
        ("gemini/gemini-2.0-flash", (384, 384), 258),
        ("gemini/gemini-2.0-flash", (960, 540), 1_548),
    ],
)
def test_a_picture_costs_what_the_provider_says(model: str, size: tuple[int, int], tokens: int) -> None:
    assert picture_rule(model)(*size).estimate == tokens


@given(st.sampled_from(MODELS), st.integers(1, 8_000), st.integers(1, 8_000))
def test_no_estimate_is_above_its_bound(model: str, width: int, height: int) -> None:
    estimate, bound = picture_rule(model)(width, height)
    assert 0 < estimate <= bound


@pytest.mark.parametrize("model", MODELS)
def test_the_characters_of_a_picture_are_not_counted_as_text(model: str) -> None:
    estimator = bounding_estimator(model)
    part = picture_part(data_uri("image/png", png(300, 300, seed=7) + b"x" * 500_000))
    with_picture = Message("user", ({"type": "text", "text": "look"}, part))
    without = Message("user", ({"type": "text", "text": "look"},))
    added = estimator.bound_message(with_picture) - estimator.bound_message(without)
    assert added == picture_rule(model)(300, 300).bound


def test_a_picture_of_unknown_size_costs_the_familys_ceiling() -> None:
    message = Message("user", (picture_part("https://example.org/x.png"),))
    assert bounding_estimator("openai/gpt-4o").bound_message(message) >= family_of("openai/gpt-4o").image
