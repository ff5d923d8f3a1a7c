"""Refusals of a prompt that is too long, in the formats of many providers and servers."""

from __future__ import annotations

import json

import pytest

from rolling_chat.providers.overflow_errors import Overflow, find_overflow, is_throttling, read_body


def _openai(message: str, code: str | None = "context_length_exceeded") -> str:
    error = {"message": message, "type": "invalid_request_error", "param": "messages", "code": code}
    return json.dumps({"error": error})


def _anthropic(message: str) -> str:
    return json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": message}})


def _gemini(message: str) -> str:
    return json.dumps({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})


GEMINI_REFUSAL = "The input token count (1200) exceeds the maximum number of tokens allowed (1000)."
WITH_BOTH_NUMBERS = {
    "openai, prompt alone": _openai(
        "This model's maximum context length is 1000 tokens. However, your messages resulted in 1200 tokens."
    ),
    "openai, prompt and completion": _openai(
        "This model's maximum context length is 1000 tokens. However, you requested 1200 tokens "
        "(700 in the messages, 500 in the completion). Please reduce the length of the messages."
    ),
    "deepseek, a code that says nothing": _openai(
        "This model's maximum context length is 1000 tokens. However, you requested 1200 tokens "
        "(1200 in the messages, 0 in the completion).",
        "invalid_request_error",
    ),
    "python's spelling of the body": "Error code: 400 - "
    + str(
        {
            "error": {
                "message": "This model's maximum context length is 1000 tokens. However, you requested 1200 "
                "tokens (1100 in the messages, 100 in the functions).",
                "param": None,
            }
        }
    ),
    "azure, in the words": "(context_length_exceeded) This model's maximum context length is 1000 tokens. "
    "However, you requested 1200 tokens (200 in the messages, 1000 in the completion).",
    "azure, a configured limit": "AzureException BadRequestError - Input tokens exceed the configured limit "
    "of 1000 tokens. Your messages resulted in 1200 tokens.",
    "anthropic": _anthropic("prompt is too long: 1200 tokens > 1000 maximum"),
    "anthropic, with the room for the answer": _anthropic(
        "input length and `max_tokens` exceed context limit: 700 + 500 > 1000, decrease input length"
    ),
    "anthropic, as bytes": "AnthropicException - "
    + str(_anthropic("prompt is too long: 1200 tokens > 1000 maximum").encode()),
    "gemini": _gemini(GEMINI_REFUSAL),
    "gemini, in an array": f"[{_gemini(GEMINI_REFUSAL)}]",
    "openrouter": "This endpoint's maximum context length is 1,000 tokens. However, you requested "
    "about 1,200 "
    "tokens (1,200 of text input).",
    "vllm": "This model's maximum context length is 1000 tokens. However, your request has 1200 "
    "input tokens.",
    "sglang": '{"object":"error","message":"The input (1200 tokens) is longer than the model\'s '
    "context length "
    '(1000 tokens).","code":400}',
    "llama.cpp, numbers in fields": json.dumps(
        {
            "error": {
                "code": 400,
                "type": "exceed_context_size_error",
                "message": "the request exceeds the available context size",
                "n_prompt_tokens": 1200,
                "n_ctx": 1000,
            }
        }
    ),
    "llama-cpp-python": "Requested tokens (1200) exceed context window of 1000",
    "lm studio": "Trying to keep the first 1200 tokens when context the overflows. However, the "
    "model is loaded "
    "with context length of only 1000 tokens, which is not enough.",
    "cerebras": "Please reduce the length of the messages or completion. Current length is 1200 "
    "while limit is 1000",
    "xai": "This model's maximum prompt length is 1000 but the request contains 1200 tokens.",
    "copilot": json.dumps(
        {
            "error": {
                "message": "prompt token count of 1200 exceeds the limit of 1000",
                "code": "model_max_prompt_tokens_exceeded",
            }
        }
    ),
    "moonshot": "Invalid request: Your request exceeded model token limit: 1000 (requested: 1200)",
    "text generation inference": "Input validation error: `inputs` tokens + `max_new_tokens` must "
    "be <= 1000. "
    "Given: 700 `inputs` tokens and 500 `max_new_tokens`",
    "mistral": "Prompt contains 1200 tokens, too large for model with 1000 maximum context length",
    "cohere, how far it is over": '{"message":"TOO_MANY_TOKENS: size limit exceeded by 200 tokens. Try '
    'using shorter or fewer inputs. The limit for this model is 1000 tokens."}',
    "cohere, both": "too many tokens: total number of tokens in the prompt cannot exceed 1000 - "
    "received 1200",
    "vllm, both parts": "You passed 700 input tokens and requested 500 output tokens. However, the model's "
    "context length is only 1000 tokens",
    "a bracket in the words": _openai(
        "messages[3].content: prompt is too long: 1200 tokens > 1000 maximum", "invalid_request_error"
    ),
    "both in brackets": "the request exceeds the available context size, try increasing it (1200 > 1000)",
    "words that nobody has seen yet": "Sorry: 1200 tokens is more than the 1000 that this server takes",
}


@pytest.mark.parametrize("body", WITH_BOTH_NUMBERS.values(), ids=WITH_BOTH_NUMBERS)
@pytest.mark.parametrize("status", [400, 422, 500, None])
def test_both_numbers_are_read(body: str, status: int | None) -> None:
    read = read_body(body)

    assert not is_throttling(read, status)
    overflow = find_overflow(read, status)
    assert overflow is not None
    assert (overflow.limit, overflow.requested) == (1000, 1200)


PARTS = {
    "vllm": "maximum context length is 1000 tokens. However, you requested 1959 tokens (959 in the messages, "
    "1000 in the completion).",
    "with tools": "maximum context length is 1000 tokens. However, you requested 1959 tokens (900 in the "
    "messages, 59 in the functions, and 1000 in the completion).",
    "openrouter": "maximum context length is 1000 tokens. However, you requested about 1959 tokens (959 of "
    "text input, 1000 in the output).",
    "anthropic": "input length and `max_tokens` exceed context limit: 959 + 1000 > 1000",
    "text generation inference": "must be <= 1000. Given: 959 `inputs` tokens and 1000 `max_new_tokens`",
}


@pytest.mark.parametrize("body", PARTS.values(), ids=PARTS)
def test_the_prompts_part_is_read(body: str) -> None:
    overflow = find_overflow(read_body(_openai(body)), 400)
    assert overflow == Overflow(limit=1000, requested=1959, prompt=959)


def test_parts_that_do_not_add_up_are_ignored() -> None:
    body = "maximum context length is 1000 tokens. However, you requested 1959 tokens (7 in the messages)."
    assert find_overflow(read_body(_openai(body)), 400) == Overflow(limit=1000, requested=1959)


ONE_NUMBER = {
    "dashscope": "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 1000]",
    "openai": "Input tokens exceed the configured limit of 1000 tokens.",
    "gemini": "The input token count exceeds the maximum number of tokens allowed (1000).",
    "lm studio, in mid-answer": "Reached context length of 1000 tokens with model (arch: x) that does not "
    "currently support mid-generation context overflow.",
}


@pytest.mark.parametrize("body", ONE_NUMBER.values(), ids=ONE_NUMBER)
def test_the_limit_alone_is_read(body: str) -> None:
    assert find_overflow(read_body(body), 400) == Overflow(limit=1000)


WITHOUT_NUMBERS = {
    "bedrock": "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update "
    "the input.",
    "bedrock, claude": "ValidationException: Input is too long for requested model.",
    "ollama's cloud": "prompt too long; exceeded max context length by 1119046 tokens (ref: 96164522-08b2)",
    "perplexity": '{"error": {"message": "The total length of all messages is too long.", '
    '"type": "too_many_prompt_tokens", "code": 400}}',
    "openai, in mid-stream": "Your input exceeds the context window of this model. Please adjust your input.",
    "groq": _openai("Please reduce the length of the messages or completion."),
    "minimax, whose number is a code": "invalid params, context window exceeds limit (2013)",
    "z.ai": '{"error":{"code":"1261","message":"Prompt exceeds max length"}}',
    "vllm, no room for an answer": "max_tokens must be at least 1, got -186.",
}


@pytest.mark.parametrize("body", WITHOUT_NUMBERS.values(), ids=WITHOUT_NUMBERS)
def test_an_overflow_without_numbers_has_none(body: str) -> None:
    read = read_body(body)

    assert not is_throttling(read, 400)
    assert find_overflow(read, 400) == Overflow()


def test_a_body_refused_for_its_size_is_too_long_whatever_it_says() -> None:
    assert find_overflow(read_body("<html>413 Request Entity Too Large</html>"), 413) == Overflow()


THROTTLING = {
    "azure": '{"error": {"code": "RateLimitReached", "message": "Your requests have exceeded rate limit."}}',
    "groq, tokens a minute": '{"error":{"message":"Request too large for model `x` on tokens per '
    "minute (TPM): "
    'Limit 6000, Requested 14810, please reduce your message size","code":"rate_limit_exceeded"}}',
    "bedrock": "ThrottlingException: Too many tokens, please wait before trying again.",
    "gemini's quota": "You exceeded your current quota: input_token_count limit 250000",
    "no words at all": "",
}


@pytest.mark.parametrize("body", THROTTLING.values(), ids=THROTTLING)
def test_throttling_is_no_overflow(body: str) -> None:
    assert is_throttling(read_body(body), 429)


ANOTHER_LIMIT = {
    "the answer's limit": "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens",
    "openai's answer's limit": "max_tokens is too large: 100000. This model supports at most 16384 "
    "completion tokens",
    "too many tools": "Invalid 'tools': array too long. Expected an array with maximum length 128, got 200.",
    "a large image": "messages.0.content.1.image.source: image exceeds 5 MB maximum: 6000000 bytes "
    "> 5242880 bytes",
    "something else": "Unknown parameter: 'foo'.",
    "dashscope's limit of the answer": "Range of max_tokens should be [1, 8192]",
    "small numbers": "2 tokens is more than 1",
}


@pytest.mark.parametrize("body", ANOTHER_LIMIT.values(), ids=ANOTHER_LIMIT)
def test_a_limit_other_than_the_window_is_no_overflow(body: str) -> None:
    read = read_body(body)

    assert not is_throttling(read, 400)
    assert find_overflow(read, 400) is None


def test_a_hostile_body_is_parsed_in_linear_time_without_errors() -> None:
    digits = "1" * 300_000
    for body in ("[" * 200_000, "{'a':" * 50_000, f"{digits} tokens > {digits}", "tokens exceed " * 50_000):
        assert find_overflow(read_body(body), 400) is None
