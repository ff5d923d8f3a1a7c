"""Provide all models, litellm's and the offline one, behind the protocol in `protocol.py`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rolling_chat.context_keys import Direct
from rolling_chat.messages import Json, Message, Usage
from rolling_chat.providers.addresses import token_counter
from rolling_chat.providers.background_thread import in_background
from rolling_chat.providers.direct.choice import DirectRequest, direct_request
from rolling_chat.providers.direct.direct_route import DirectRoute
from rolling_chat.providers.known_providers import KEYLESS_ELSEWHERE, OWN_CREDENTIALS
from rolling_chat.providers.litellm_route import LiteLLMRoute
from rolling_chat.providers.model_ref import ModelRef, find_provider
from rolling_chat.providers.protocol import (
    Delta,
    ErrorKind,
    Finished,
    ProviderError,
    Request,
    Retrying,
)
from rolling_chat.providers.reply_builder import ReplyBuilder
from rolling_chat.providers.retries import RetryPolicy, gave_up
from rolling_chat.providers.usage import UsageReader, with_cost
from rolling_chat.providers.wire import made_by, to_wire, tools_to_wire
from rolling_chat.providers.wire_families import find_family

if TYPE_CHECKING:
    from rolling_chat.providers.exact_counts import ExactCounter
    from rolling_chat.settings.catalog import ModelCatalog

_log = logging.getLogger("rolling_chat.providers")
# Local servers require no key, but the client requires a string.
_NO_KEY = "no-key-needed"


class ModelProvider:
    """Sends prompts to models, and retries temporary failures.

    `environ` contains the keys. litellm logs to `log_file`. With `direct` "auto", requests in the formats of
    OpenAI and Anthropic are sent without litellm; with "off", litellm sends all. `timeout` is in seconds, for
    the first byte and for each later read. Failed requests are sent again according to `retries`, with each
    delay reported as `Retrying`; `sleep` waits, and `clock` measures the elapsed time.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        catalog: ModelCatalog,
        log_file: Path | None = None,
        direct: Direct = "auto",
        timeout: float = 600.0,
        retries: RetryPolicy | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._environ = environ
        self._catalog = catalog
        self._timeout = timeout
        self._retries = retries or RetryPolicy()
        self._sleep = sleep
        self._clock = clock
        self._reached: set[tuple[str, str | None]] = set()  # servers that have answered in this process
        self._direct = direct
        self._direct_route = DirectRoute(timeout)
        self._litellm_route = LiteLLMRoute(environ, log_file, timeout)
        self._counter: ExactCounter | None = None

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Send `request`; yield deltas, and finally `Finished`. Raises ProviderError.

        Once a delta has arrived, the request is not sent again. Closing the iterator, or cancelling the task
        that reads it, closes the connection. The offline model answers without litellm.
        """
        if ModelRef.parse(request.model).is_demo:
            from rolling_chat.providers.offline.offline_provider import stream_offline  # noqa: PLC0415

            answer = stream_offline(request, to_wire(request), tools_to_wire(request))
            async with contextlib.aclosing(answer) as deltas:
                async for delta in deltas:
                    yield delta
            return
        retries = self._retries.within(request.patience)
        attempt, started, waited = 1, self._clock(), 0.0
        while True:
            began = False
            try:
                async with contextlib.aclosing(self._send(request)) as deltas:
                    async for delta in deltas:
                        began = True
                        yield delta
                return
            except Exception as raised:  # litellm may raise almost anything; all of it is classified
                error = await self._with_listed_models(self._classify(raised, request, began=began), request)
                _log.info("request to %s failed: %s", request.model, error.detail)
                elapsed = max(waited, self._clock() - started)
                delay = retries.delay_after(error, attempt, elapsed)
                if began:
                    raise error from raised
                if delay is None:
                    raise gave_up(error, attempt, elapsed) from raised
            yield Retrying(attempt, retries.seconds_left(elapsed), delay, str(error))
            await self._sleep(delay)
            waited += delay
            attempt += 1

    def wire_form(self, request: Request) -> Sequence[dict[str, Json]]:
        """Return the messages of `request` exactly as they are sent, without cache marks.

        The marks affect where a prompt is cached, not its content. They depend on the previous request, so a
        prompt that is rebuilt from the store would not have the same ones.
        """
        return to_wire(request, marks=False)

    async def count_tokens(self, request: Request, seconds: float) -> int:
        """Return the provider's own count of the tokens of `request`; 0 if it gives none in time.

        The question is sent to where the request itself would be sent, with the same key. The time starts
        after litellm was loaded, if it is needed.
        """
        if not token_counter(request.model, request.api_base):
            return 0
        from rolling_chat.providers.exact_counts import ExactCounter  # noqa: PLC0415  # not before first paint
        from rolling_chat.providers.native_requests import needs_litellm  # noqa: PLC0415

        counter = self._counter = self._counter or ExactCounter(self._environ)
        arguments = await in_background(lambda: self._arguments(request))
        if await in_background(lambda: needs_litellm(arguments)):
            await self._litellm_route.load()
        try:
            ask = in_background(lambda: counter.count(arguments, seconds))
            return await asyncio.wait_for(ask, seconds)
        except TimeoutError:
            _log.info("%s did not count in %s seconds", request.model, seconds)
            return 0

    async def warm_up(self, model: str, api_base: str | None) -> None:
        """Import, in a thread, what the first request to `model` needs; nothing for the offline model."""
        if ModelRef.parse(model).is_demo:
            return
        opening = Request(model, (Message("user", "."),), max_tokens=1, api_base=api_base)
        if self._direct_request(self._arguments(opening)) is not None:
            await self._direct_route.load()
        else:
            await self._litellm_route.warm_up()

    async def close(self) -> None:
        """Close the connections kept for later requests; a later request opens new ones."""
        await self._direct_route.close()
        await self._litellm_route.close()

    async def _send(self, request: Request) -> AsyncGenerator[Delta, None]:
        arguments = self._arguments(request)
        direct = self._direct_request(arguments)
        await (self._litellm_route if direct is None else self._direct_route).load()
        from rolling_chat.providers.answer_limits import watch_answer  # noqa: PLC0415  # imports httpx
        from rolling_chat.providers.errors import broken_off, unreadable  # noqa: PLC0415  # not before first paint

        reply, usage, seen = ReplyBuilder(), UsageReader(), watch_answer()
        answer = (
            self._litellm_route.fragments(arguments)
            if direct is None
            else self._direct_route.fragments(direct)
        )
        async with contextlib.aclosing(answer) as fragments:
            async for fragment in fragments:
                self._reached.add(_server_of(request))
                size = reply.size
                for delta in reply.add(fragment):
                    yield delta
                if reply.size > size:
                    seen.idle = 0
                usage.add(fragment.usage)
        # litellm does not report [DONE]; the direct route has read it itself
        if not (reply.has_ended or (direct is None and seen.done)):
            raise broken_off() if reply.has_come else unreadable(request.model, request.api_base)
        yield Finished(reply.message(made_by(request.model)), self._usage(request, usage.usage))

    def _direct_request(self, arguments: Mapping[str, Any]) -> DirectRequest | None:
        return direct_request(arguments, self._environ) if self._direct == "auto" else None

    def _arguments(self, request: Request) -> dict[str, Any]:
        """Convert a request to litellm's arguments."""
        model = ModelRef.parse(request.model)
        arguments: dict[str, Any] = {
            "model": _litellm_name(model),
            "messages": to_wire(request),
        }
        # Ollama does not support `tool_choice`: without tools, the model cannot call any
        tools = tools_to_wire(request)
        if tools and not (model.is_ollama and request.tool_choice == "none"):
            arguments["tools"] = tools
            arguments["tool_choice"] = request.tool_choice
        if request.effort:
            arguments["reasoning_effort"] = request.effort
        if request.max_tokens is not None:
            arguments["max_tokens"] = request.max_tokens
        if model.is_ollama and request.window > 0:
            arguments["num_ctx"] = request.window  # otherwise the server silently truncates at its default
        if request.api_base:
            arguments["api_base"] = request.api_base
        if key := self._key(request):
            arguments["api_key"] = key
        if request.session_id and find_family(request.model).cache_key and _is_openai(request.api_base):
            arguments["prompt_cache_key"] = request.session_id
        return arguments

    def _key(self, request: Request) -> str:
        provider = find_provider(request.model)
        if provider is None or provider.name in OWN_CREDENTIALS:
            return ""
        key = provider.key_in(self._environ)
        if not key and request.api_base and provider.name in KEYLESS_ELSEWHERE:
            return _NO_KEY
        return key

    def _usage(self, request: Request, usage: Usage) -> Usage:
        return with_cost(usage, self._catalog.lookup(request.model), request.cache_ttl)

    def _classify(self, error: Exception, request: Request, *, began: bool) -> ProviderError:
        from rolling_chat.providers.errors import classify  # noqa: PLC0415  # not before the first paint

        classified = classify(
            error,
            request.model,
            api_base=request.api_base,
            environ=self._environ,
            nearest=self._catalog.nearest,
            timeout=self._timeout,
            began=began,
            reached=_server_of(request) in self._reached,
        )
        if classified.kind not in {ErrorKind.NO_NETWORK, ErrorKind.UNKNOWN}:
            self._reached.add(_server_of(request))
        return classified

    async def _with_listed_models(self, error: ProviderError, request: Request) -> ProviderError:
        """Add the server's list of models to the error for an unknown model."""
        if error.kind is not ErrorKind.MODEL_UNKNOWN or not request.api_base:
            return error
        from rolling_chat.providers.served import listed, served_models  # noqa: PLC0415  # seldom needed

        ask = partial(served_models, request.api_base, self._environ, request.model)
        try:
            names = await in_background(ask)
        except OSError as failure:
            _log.info("the server of %s lists no models: %s", request.model, failure)
            return error
        line = str(error).rstrip(".")
        return ProviderError(error.kind, f"{line}. It has: {listed(names)}.", detail=error.detail)


def _server_of(request: Request) -> tuple[str, str | None]:
    return ModelRef.parse(request.model).provider, request.api_base


def _litellm_name(model: ModelRef) -> str:
    """Route Ollama models to the chat endpoint; the completion endpoint supports neither roles nor tools."""
    return f"ollama_chat/{model.name}" if model.prefix == "ollama" else model.given


def _is_openai(api_base: str | None) -> bool:
    host = urlsplit(api_base).hostname if api_base else "api.openai.com"
    return host is not None and (host == "openai.com" or host.endswith((".openai.com", ".azure.com")))
