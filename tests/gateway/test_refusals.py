"""What the gateway learns of a refusal, in the words of each provider and as LiteLLM passes them on."""

from __future__ import annotations

from typing import Any

import pytest

from rolling_chat.providers.litellm_loading import load_litellm
from tests.gateway.test_attacks import chat
from tests.providers.test_overflow_errors import ONE_NUMBER, THROTTLING, WITH_BOTH_NUMBERS, WITHOUT_NUMBERS
from tests.support.gateway import Worker
from tests.support.servers import AnthropicServer, Fail, OpenAIServer

BODY = {"messages": chat(8, words=9), "max_tokens": 100}  # some 600 tokens


async def refusals(kind: str, bodies: list[str], status: int) -> list[Exception]:
    """The errors that LiteLLM raises when a provider answers with these bodies."""
    litellm: Any = load_litellm(None)
    server: Any = OpenAIServer if kind == "acompletion" else AnthropicServer
    asked: Any = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 10, "api_key": "k"}
    found = []
    async with server([Fail(status, body) for body in bodies]) as running:
        for _ in bodies:
            if kind == "acompletion":
                asking = litellm.acompletion(
                    "openai/gpt-4o", api_base=running.api_base, max_retries=0, **asked
                )
            else:
                model = "anthropic/claude-sonnet-4-5"
                asking = litellm.anthropic_messages(model=model, api_base=running.api_base, **asked)
            with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever LiteLLM makes of it
                await asking
            found.append(caught.value)
    return found


KINDS = ("acompletion", "anthropic_messages")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_refusal_with_numbers_teaches_the_window_in_whatever_words(kind: str) -> None:
    bodies = list(WITH_BOTH_NUMBERS.values())
    for body, error in zip(bodies, await refusals(kind, bodies, 400), strict=True):
        worker = Worker(2_000)
        await worker.refuse(BODY, error)
        await worker.send(BODY)
        assert worker.headers["x-rolling-window"] == "1000", (body, str(error))


@pytest.mark.parametrize("kind", KINDS)
async def test_the_limit_alone_is_believed_of_a_prompt_that_may_be_larger(kind: str) -> None:
    bodies = list(ONE_NUMBER.values())
    for body, error in zip(bodies, await refusals(kind, bodies, 400), strict=True):
        for asked, window in ((BODY, "2000"), ({**BODY, "messages": chat(14, words=9)}, "1000")):
            worker = Worker(2_000)
            await worker.refuse(asked, error)
            await worker.send(asked)
            assert worker.headers["x-rolling-window"] == window, (body, str(error))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_refusal_without_numbers_makes_the_same_request_smaller(kind: str) -> None:
    bodies = list(WITHOUT_NUMBERS.values())
    for body, error in zip(bodies, await refusals(kind, bodies, 400), strict=True):
        worker = Worker(2_000)
        await worker.refuse(BODY, error)
        first = int(worker.headers["x-rolling-tokens"])
        await worker.send(BODY)
        assert int(worker.headers["x-rolling-tokens"]) < 0.8 * first, (body, str(error))


@pytest.mark.parametrize("kind", KINDS)
async def test_throttling_teaches_nothing(kind: str) -> None:
    bodies = list(filter(None, THROTTLING.values()))
    worker = Worker(2_000)
    for error in await refusals(kind, bodies, 429):
        await worker.refuse(BODY, error)
        await worker.send(BODY)
        assert worker.headers["x-rolling-outcome"] == "unchanged"
        assert worker.headers["x-rolling-window"] == "2000"
