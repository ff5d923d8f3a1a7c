"""litellm's stream objects, converted to fragments and usage."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rolling_chat.messages import Usage
from rolling_chat.providers.fragments import CallFragment, Fragment
from rolling_chat.providers.litellm_chunks import fragments_of, usage_of


def _chunk(finish_reason: str | None = None, **delta: Any) -> Any:
    return SimpleNamespace(
        choices=[SimpleNamespace(delta=SimpleNamespace(**delta), finish_reason=finish_reason)]
    )


def _call(index: int | None, id: str | None, name: str | None, arguments: str | None) -> Any:
    return SimpleNamespace(index=index, id=id, function=SimpleNamespace(name=name, arguments=arguments))


def _usage(**fields: Any) -> Any:
    return SimpleNamespace(usage=SimpleNamespace(**fields))


def test_a_chunk_is_read_with_its_calls_and_its_end() -> None:
    calls = [_call(1, "a", "read", "{"), _call(None, None, None, None)]
    (fragment,) = fragments_of(_chunk("stop", content="so", reasoning_content="hm", tool_calls=calls))
    assert fragment == Fragment(
        text="so",
        reasoning="hm",
        calls=(CallFragment(1, "a", "read", "{"), CallFragment()),
        finish_reason="stop",
    )


def test_geminis_signature_is_taken_out_of_the_id() -> None:
    chunk = _chunk(
        tool_calls=[_call(0, "call_1__thought__AbC==", "read", "{}")],
        provider_specific_fields={"thought_signatures": ["AbC==", "XyZ==", 7]},
    )
    (fragment,) = fragments_of(chunk)
    assert fragment.calls == (CallFragment(0, "call_1", "read", "{}", "AbC=="),)
    assert fragment.text_signatures == ("AbC==", "XyZ==")


def test_a_chunk_of_usage_alone_has_no_fragments() -> None:
    assert list(fragments_of(SimpleNamespace(choices=[], usage=object()))) == []


@pytest.mark.parametrize(
    ("more", "is_sum"),
    [
        ({}, False),
        ({"server_tool_use": SimpleNamespace(web_search_requests=2)}, True),
        ({"server_tool_use": {"web_search_requests": 1}}, True),
        ({"server_tool_use": SimpleNamespace(web_search_requests=0, tool_search_requests=None)}, False),
        ({"iterations": [{"input_tokens": 60}, {"input_tokens": 40}]}, True),
        ({"iterations": [{"input_tokens": 100}]}, False),
        ({"server_tool_use": "twice", "iterations": 3}, False),
    ],
)
def test_the_sum_of_several_requests_is_known(more: dict[str, Any], is_sum: bool) -> None:
    chunk = _usage(prompt_tokens=100, completion_tokens=1, **more)
    assert usage_of(chunk) == Usage(100, 1, is_sum=is_sum)


def test_cached_and_reasoning_tokens_are_found_under_both_names() -> None:
    openai = _usage(
        prompt_tokens=100,
        completion_tokens=20,
        prompt_tokens_details=SimpleNamespace(cached_tokens=60),
        completion_tokens_details=SimpleNamespace(reasoning_tokens=15),
    )
    anthropic = _usage(prompt_tokens=100, cache_read_input_tokens=60, cache_creation_input_tokens=30)

    assert usage_of(openai) == Usage(100, 20, cached_read_tokens=60, reasoning_tokens=15)
    assert usage_of(anthropic) == Usage(100, 0, cached_read_tokens=60, cached_write_tokens=30)


def test_a_chunk_without_usage_reports_none() -> None:
    assert usage_of(SimpleNamespace()) is None
