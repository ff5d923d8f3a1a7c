"""Counting tokens: exact with a known encoding, conservative without one, once per message."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context import (
    CountMemo,
    character_classes,
    count_tokens,
    estimate_tokens,
    prompt_bound,
    register_estimator,
)
from rolling_chat.context import tokens as tokens_module
from rolling_chat.context.character_classes import count_by_class
from rolling_chat.context.encodings import find_encoding
from rolling_chat.context.tokens import FamilyEstimator, bounding_estimator, estimator_for
from rolling_chat.messages import Message

TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]


def test_openai_models_are_counted_by_their_own_encoding_without_a_network() -> None:
    text = "Counting tokens is exact here: naïve café, 中文, 🙂."
    o200k, cl100k = find_encoding("o200k_base"), find_encoding("cl100k_base")
    assert o200k is not None
    assert cl100k is not None
    assert count_tokens(text, "gpt-4o") == len(o200k.encode_ordinary(text))
    assert count_tokens(text, "gpt-4-0613") == len(cl100k.encode_ordinary(text))


def test_a_message_is_counted_once_for_an_encoding() -> None:
    message, memo = Message("user", "hello there"), CountMemo()
    estimator = bounding_estimator("gpt-4o", memo=memo)
    first = estimator.count_message(message)
    memo.load(message, {"o200k_base": 1_000})
    assert estimator.count_message(message) > first
    assert bounding_estimator("gpt-4o").count_message(message) == first


@pytest.mark.parametrize(
    "model", ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "nobody/knows", "o3-mini"]
)
def test_the_bound_is_never_below_the_estimate(model: str) -> None:
    messages = [{"role": "user", "content": "A question about `x = {}`.\n" * 30}]
    assert prompt_bound(messages, tools=TOOLS, model=model) >= estimate_tokens(messages, model, TOOLS)


def test_calls_names_schemas_and_results_are_all_counted() -> None:
    bare = [{"role": "assistant", "content": "x"}]
    calling = [
        {
            "role": "assistant",
            "content": "x",
            "tool_calls": [
                {
                    "id": "1",
                    "type": "function",
                    "function": {"name": "write", "arguments": '{"a":"' + "word " * 50 + '"}'},
                }
            ],
        }
    ]
    assert estimate_tokens(calling, "gpt-4o") > estimate_tokens(bare, "gpt-4o") + 50
    assert estimate_tokens(bare, "gpt-4o", TOOLS) > estimate_tokens(bare, "gpt-4o")


def test_ratio_counts_the_json_of_a_call_at_three_characters_a_token() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": '{"a": "bcd"}'}}
    bare = {"role": "assistant", "content": "x" * 35}
    characters = len(json.dumps(call, separators=(",", ":")))
    for content in ("x" * 35, None):
        calling = {"role": "assistant", "content": content, "tool_calls": [call]}
        said = 10 if content else 0
        counted = estimate_tokens([calling], estimator="ratio") - estimate_tokens([bare], estimator="ratio")
        assert counted == said - 10 + math.ceil(characters / 3.0)


def test_an_estimate_is_made_by_the_estimator_that_is_asked_for() -> None:
    messages = [{"role": "user", "content": "x" * 400}]
    assert estimate_tokens(messages, estimator="chars") == 100 + 4 + 3
    assert estimate_tokens(messages, "gpt-4o", estimator=estimator_for("gpt-4o")) == estimate_tokens(
        messages, "gpt-4o"
    )
    with pytest.raises(ValueError, match="token_estimator must be one of"):
        estimate_tokens(messages, estimator="guess")


def test_an_image_costs_a_fixed_ceiling_and_never_its_base64() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}}
    message = [{"role": "user", "content": [{"type": "text", "text": "look"}, image]}]
    assert 1_000 < estimate_tokens(message, "gpt-4o") < 2_000


def test_signatures_are_not_counted_as_text() -> None:
    signed = Message(
        "assistant", "x", extras={"thinking_blocks": [{"thinking": "hm", "signature": "A" * 9_000}]}
    )
    assert bounding_estimator("claude-sonnet-4-5").count_message(signed) < 50


def test_a_million_spaces_and_a_lone_surrogate_are_counted_like_any_text() -> None:
    assert count_tokens(" " * 1_000_000, "gpt-4o") > 0
    assert count_tokens("\ud800 half a pair", "gpt-4o") > 0
    assert count_tokens("\ud800 half a pair", "nobody/knows") > 0


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox jumps over the lazy dog. " * 20,
        '{"id":123,"name":"a_b","tags":["x","y"],"ok":true}' * 20,
        "今天我们讨论如何在终端里构建一个聊天程序。" * 20,
        "Программа показывает, сколько токенов осталось." * 20,
        "😀🎉🚀👩‍💻🏳️‍🌈" * 40,
        "\n".join(
            f"2026-11-21T10:{i % 60:02d}:00Z INFO {uuid.UUID(int=i * 7**40 % 2**128)} done" for i in range(60)
        ),
        "def f(x):\n    return [y for y in x if y is not None]\n" * 20,
        "0.8444218515250481 0.7579544029403025 " * 30,
        "a" * 3_000,
        " " * 3_000,
        "7 3 19 4 " * 100,
        "7\t3\t19\n" * 100,
        "7  3  19\n" * 100,
    ],
    ids=[
        "prose",
        "json",
        "chinese",
        "russian",
        "emoji",
        "log",
        "python",
        "numbers",
        "run",
        "blanks",
        "short numbers",
        "tabs",
        "columns",
    ],
)
def test_the_fallback_stays_at_or_above_every_encoding_at_hand(text: str) -> None:
    for name in ("o200k_base", "cl100k_base"):
        encoding = find_encoding(name)
        assert encoding is not None
        assert count_by_class(text) >= len(encoding.encode_ordinary(text))


@given(st.text(max_size=400))
def test_the_fallback_is_never_negative_and_never_above_the_bytes(text: str) -> None:
    assert 0 <= count_by_class(text) <= len(text.encode("utf-8", "surrogatepass"))


@given(st.text(max_size=100) | st.text("aB0+/=_- \n\t(中😀").map(lambda text: text * 9))
def test_a_text_of_any_length_is_counted_alike(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(character_classes, "_LONG_TEXT", 0)
        counted = count_by_class(text)
    assert counted == count_by_class(text)


@given(st.text(max_size=200), st.text(max_size=200))
def test_a_longer_text_never_counts_for_less(first: str, second: str) -> None:
    both = count_by_class(first + " " + second)
    # words that meet may join into one run, which is weighed as a whole
    assert both + 4 >= 0.5 * max(count_by_class(first), count_by_class(second))


@pytest.mark.parametrize(("choice", "expected"), [("chars", 25), ("bytes", 25), ("ratio", 29)])
def test_simple_ratios_can_be_chosen_by_name(choice: str, expected: int) -> None:
    assert estimator_for("gpt-4o", choice).count_text("x" * 100) == expected


def test_an_unknown_estimator_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(ValueError, match="auto, ratio, chars, bytes"):
        estimator_for("gpt-4o", "guess")


def test_a_registered_estimator_counts_for_its_family_and_leaves_the_bound_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokens_module, "_registered", {})
    before = prompt_bound([{"role": "user", "content": "hello"}], model="my-own-model")
    chars = estimator_for(None, "chars")
    assert isinstance(chars, FamilyEstimator)
    register_estimator("my-own", chars)
    assert count_tokens("x" * 40, "my-own-model") == 10
    assert prompt_bound([{"role": "user", "content": "hello"}], model="my-own-model") == before


def test_without_any_encoding_file_counting_goes_on_by_class() -> None:
    script = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'litellm' else find(name, *rest)\n"
        "from rolling_chat.context import count_tokens\n"
        "from rolling_chat.context.character_classes import count_by_class\n"
        "assert count_tokens('some words', 'gpt-4o') == count_by_class('some words')\n"
        "assert 'tiktoken' not in sys.modules and 'litellm' not in sys.modules\n"
    )
    environ = {key: value for key, value in os.environ.items() if "TIKTOKEN" not in key}
    subprocess.run([sys.executable, "-c", script], check=True, env=environ)


def test_the_library_imports_nothing_heavy() -> None:
    script = (
        "import sys, rolling_chat.context\n"
        "heavy = {'litellm', 'textual', 'rich', 'sqlite3', 'tiktoken', 'asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
