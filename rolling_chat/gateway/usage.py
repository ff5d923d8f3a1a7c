"""The size of a prompt as its model counted it, from what the proxy tells of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ALWAYS_TELL = frozenset({"anthropic"})  # providers whose every stream brings the usage


def counted_prompt(kwargs: Mapping[str, Any], response: object, *, is_anthropic: bool) -> int:
    """Return the tokens of the prompt that the model reported; 0 if it did not report them.

    Where a stream brings no usage, LiteLLM counts by itself, with whichever tokenizer it has: that is no
    report. OpenAI's form brings one only where the client asked for it.
    """
    tells = is_anthropic or kwargs.get("custom_llm_provider") in _ALWAYS_TELL
    if kwargs.get("stream") and not tells and not _asks_for_usage(kwargs):
        return 0
    usage = _get(response, "usage")
    if (prompt := _count(usage, "prompt_tokens")) > 0:
        return prompt
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(_count(usage, name) for name in names)


def _asks_for_usage(kwargs: Mapping[str, Any]) -> bool:
    for table in (kwargs, kwargs.get("optional_params"), kwargs.get("additional_args")):
        options = _get(table, "stream_options")
        if options is not None and _get(options, "include_usage"):
            return True
    return False


def _get(holder: object, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _count(usage: object, name: str) -> int:
    value = _get(usage, name)
    return value if type(value) is int and value > 0 else 0
