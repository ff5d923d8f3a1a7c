"""Parse the events of OpenAI's chat completions into fragments of a reply."""

from __future__ import annotations

from rolling_chat.messages import Json, JsonObject, Usage
from rolling_chat.providers.direct.errors import error_in_stream
from rolling_chat.providers.fragments import CallFragment, Fragment
from rolling_chat.providers.whole_answers import token_count

_NOTHING = Fragment()
# synonyms of OpenAI's "length"; any other reason is not a cut
_CUT = frozenset({"length", "max_tokens", "MAX_TOKENS", "model_context_window_exceeded"})


class OpenAIEvents:
    """Reads the events of one stream; only the first choice counts, because no request asks for more."""

    def read(self, event: JsonObject) -> Fragment:
        """Return what an event adds to the reply. Raises AnswerError for one that reports an error."""
        if event.get("error"):
            raise error_in_stream(event["error"])
        usage = _usage(event.get("usage") or _field(event.get("x_groq"), "usage"))
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return _NOTHING if usage is None else Fragment(usage=usage)
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        reason = _text(choice.get("finish_reason"))
        calls, blocks = delta.get("tool_calls"), delta.get("thinking_blocks")
        return Fragment(
            text=_text(delta.get("content")),
            reasoning=_text(delta.get("reasoning_content")) or _text(delta.get("reasoning")),
            thinking=tuple(block for block in blocks if isinstance(block, dict))
            if isinstance(blocks, list)
            else (),
            calls=tuple(_call(call) for call in calls if isinstance(call, dict))
            if isinstance(calls, list)
            else (),
            finish_reason="length" if reason in _CUT else reason,
            has_ended=bool(reason),
            usage=usage,
        )


def _call(call: JsonObject) -> CallFragment:
    index, function = call.get("index"), call.get("function")
    function = function if isinstance(function, dict) else {}
    return CallFragment(
        index=index if isinstance(index, int) else 0,
        id=_text(call.get("id")),
        name=_text(function.get("name")),
        arguments=_text(function.get("arguments")),
    )


def _usage(reported: Json) -> Usage | None:
    """Return the reported usage under the names of OpenAI, of Anthropic behind a proxy, or of DeepSeek."""
    if not isinstance(reported, dict):
        return None
    prompt, completion = reported.get("prompt_tokens_details"), reported.get("completion_tokens_details")
    return Usage(
        input_tokens=_count(reported, "prompt_tokens"),
        output_tokens=_count(reported, "completion_tokens"),
        cached_read_tokens=_count(reported, "cache_read_input_tokens")
        or _count(prompt, "cached_tokens")
        or _count(reported, "prompt_cache_hit_tokens"),
        cached_write_tokens=_count(reported, "cache_creation_input_tokens")
        or _count(prompt, "cache_write_tokens")
        or _count(prompt, "cache_creation_tokens"),
        reasoning_tokens=_count(completion, "reasoning_tokens"),
    )


def _count(holder: Json, name: str) -> int:
    return token_count(holder.get(name) if isinstance(holder, dict) else None)


def _field(holder: Json, name: str) -> Json:
    return holder.get(name) if isinstance(holder, dict) else None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
