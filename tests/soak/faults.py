"""What a server does instead of answering: a table of faults, each with its weight."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from tests.soak.replies import hostile_calls, huge_call, many_calls
from tests.support.servers import Break, Drop, Fail, Hang, Raw, Reply
from tests.support.servers.script import Step

_MANY_BYTES = 20_000_000
_DATA = re.compile(r"^data: (\{.*\})$", re.MULTILINE)
_ODD_USAGE: tuple[Any, ...] = (1.5, "abc", [1], {}, None, -3, float("nan"), 10**30)


@dataclass(frozen=True)
class Fault:
    """A fault by its name; `make` says what the server does with a request that `reply` would answer.

    `elsewhere` is the address of another port, which must never see a request.
    """

    name: str
    weight: float
    make: Callable[[random.Random, Reply, str, int], Step]


def choose_fault(rng: random.Random, without: Iterable[str]) -> Fault | None:
    """A fault, or None for a plain answer."""
    faults = [fault for fault in FAULTS if fault.name not in set(without)]
    weights = [_PLAIN, *(fault.weight for fault in faults)]
    return rng.choices([None, *faults], weights)[0]


def _fail(status: int, body: Any, **headers: str) -> Callable[[random.Random, Reply, str, int], Step]:
    return lambda _rng, _reply, _elsewhere, _number: Fail(
        status, body, {name.replace("_", "-"): value for name, value in headers.items()}
    )


def _slow(rng: random.Random, reply: Reply, _elsewhere: str, _number: int) -> Step:
    return replace(reply, pause=min(0.4, 4.0 / max(1, len(reply.pieces()))) * rng.random())


def _redirect(_rng: random.Random, _reply: Reply, elsewhere: str, _number: int) -> Step:
    return Fail(307, "moved", {"location": elsewhere})


def _redirect_within(_rng: random.Random, _reply: Reply, _elsewhere: str, number: int) -> Step:
    return Fail(307, "moved", {"location": f"?again={number}"})


async def _send(request: web.Request, parts: Iterable[bytes], pause: float = 0.0) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for part in parts:
        await response.write(part)
        await asyncio.sleep(pause)
    await response.write_eof()
    return response


def _edited(edit: Callable[[random.Random, list[str]], Iterable[str | bytes]]) -> Callable[..., Step]:
    """A stream whose events are not what they should be."""

    def make(rng: random.Random, reply: Reply, _elsewhere: str, _number: int) -> Step:
        async def write(
            request: web.Request, events: list[str], _whole: dict[str, Any]
        ) -> web.StreamResponse:
            parts = [part if isinstance(part, bytes) else part.encode() for part in edit(rng, events)]
            return await _send(request, parts)

        return Raw(reply, write)

    return make


def _ending_early(rng: random.Random, events: list[str]) -> list[str]:
    return events[: rng.randrange(1, max(2, len(events) - 1))]


def _without_finish_reason(_rng: random.Random, events: list[str]) -> list[str]:
    ends = ("[DONE]", "message_stop", "message_delta")
    return [
        re.sub(r'"finish_reason": "\w+"', '"finish_reason": null', event)
        for event in events
        if not any(end in event for end in ends)
    ]


def _with_odd_usage(rng: random.Random, events: list[str]) -> list[str]:
    def change(found: re.Match[str]) -> str:
        data = json.loads(found[1])
        usage = data.get("usage") or (data.get("message") or {}).get("usage")
        for name in usage or ():
            usage[name] = rng.choice(_ODD_USAGE)
        return f"data: {json.dumps(data)}"

    return [_DATA.sub(change, event) for event in events]


def _in_odd_pieces(rng: random.Random, events: list[str]) -> list[bytes]:
    data = b": a comment\n\n".join(event.encode() for event in events).replace(b"\n", b"\r\n")
    cuts = sorted(rng.randrange(len(data)) for _ in range(20))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def _with_a_bad_line(rng: random.Random, events: list[str]) -> list[str]:
    at = rng.randrange(len(events))
    return [*events[:at], "data: {not json\n\n", *events[at:]]


def _with_an_error(rng: random.Random, events: list[str]) -> list[str]:
    at = rng.randrange(1, max(2, len(events)))
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded", "code": 529}}
    return [*events[:at], f"event: error\ndata: {json.dumps(error)}\n\n"]


def _as_json(_rng: random.Random, reply: Reply, _elsewhere: str, _number: int) -> Step:
    async def write(_request: web.Request, _events: list[str], whole: dict[str, Any]) -> web.StreamResponse:
        return web.json_response(whole)

    return Raw(reply, write)


def _huge_error(_rng: random.Random, reply: Reply, _elsewhere: str, _number: int) -> Step:
    async def write(request: web.Request, _events: list[str], _whole: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(status=400, headers={"content-type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"error": {"message": "')
        for _ in range(_MANY_BYTES // 100_000):
            await response.write(b"e" * 100_000)
        await response.write(b'"}}')
        await response.write_eof()
        return response

    return Raw(reply, write)


def _bomb(_rng: random.Random, reply: Reply, _elsewhere: str, _number: int) -> Step:
    async def write(_request: web.Request, _events: list[str], _whole: dict[str, Any]) -> web.StreamResponse:
        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        return web.Response(body=gzip.compress(b" " * 40 * _MANY_BYTES, 1), headers=headers)

    return Raw(reply, write)


def _with(**changes: Any) -> Callable[[random.Random, Reply, str, int], Step]:
    return lambda _rng, reply, _elsewhere, _number: replace(reply, **changes)


def _calls(reply: Reply, calls: Any) -> Reply:
    return replace(reply, calls=calls, finish_reason="")


_PLAIN = 60.0
FAULTS: tuple[Fault, ...] = (
    Fault("slow", 8, _slow),
    Fault("hangs", 1, lambda _rng, reply, *_: Hang(reply)),
    Fault("torn", 3, lambda rng, reply, *_: Break(reply, rng.randrange(1, 30))),
    Fault("dropped", 2, lambda *_: Drop()),
    Fault("ends-early", 2, _edited(_ending_early)),
    Fault("no-finish-reason", 2, _edited(_without_finish_reason)),
    Fault("odd-usage", 4, _edited(_with_odd_usage)),
    Fault("odd-pieces", 3, _edited(_in_odd_pieces)),
    Fault("bad-line", 1, _edited(_with_a_bad_line)),
    Fault("error-in-stream", 2, _edited(_with_an_error)),
    Fault("json-for-stream", 3, _as_json),
    Fault("throttled", 3, _fail(429, {"error": {"message": "Rate limit reached"}}, retry_after="1")),
    Fault("throttled-in-words", 1, _fail(429, {"error": {"message": "Please try again in 2s"}})),
    Fault("server-error", 2, _fail(500, {"error": {"message": "The server had an error"}})),
    Fault(
        "overloaded",
        1,
        _fail(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ),
    Fault("gateway", 1, _fail(502, "<html><body><h1>502 Bad Gateway</h1></body></html>")),
    Fault("unauthorized", 1, _fail(401, {"error": {"message": "Incorrect API key provided: sk-x."}})),
    Fault("forbidden", 0.5, _fail(403, {"error": {"message": "not for you"}})),
    Fault("not-found", 1, _fail(404, {"error": {"message": "The model `gpt-none` does not exist"}})),
    Fault("bad-request", 1, _fail(400, {"error": {"message": "messages[3].content is odd"}})),
    Fault("redirect", 1, _redirect),
    Fault("redirect-within", 1, _redirect_within),
    Fault("huge-error", 0.5, _huge_error),
    Fault("bomb", 0.3, _bomb),
    Fault("huge-reply", 1, _with(text="huge " * 60_000)),
    Fault("empty", 1, _with(text="", calls=(), reasoning="")),
    Fault("cut-at-limit", 1, _with(finish_reason="length")),
    Fault("unknown-finish-reason", 1, _with(finish_reason="content_filter")),
    Fault("hostile-calls", 6, lambda rng, reply, _, n: _calls(reply, hostile_calls(rng, n))),
    Fault("many-calls", 0.5, lambda _rng, reply, _, n: _calls(reply, many_calls(n))),
    Fault("huge-call", 0.5, lambda _rng, reply, _, n: _calls(reply, huge_call(n))),
)


def _error(**error: Any) -> dict[str, Any]:
    return {"error": error}


# Refusals of a request that is too long, as providers word them; `{sent}` and `{window}` are tokens.
REFUSALS: Mapping[str, tuple[int, dict[str, Any]]] = {
    "openai": (
        400,
        _error(
            message="This model's maximum context length is {window} tokens. However, your messages resulted "
            "in {sent} tokens. Please reduce the length of the messages.",
            type="invalid_request_error",
            code="context_length_exceeded",
        ),
    ),
    "llama.cpp": (
        400,
        _error(
            code=400,
            message="request ({sent} tokens) exceeds the available context size ({window} tokens), "
            "try increasing it",
            type="exceed_context_size_error",
        ),
    ),
    "anthropic": (
        400,
        _error(type="invalid_request_error", message="prompt is too long: {sent} tokens > {window} maximum"),
    ),
    "without-numbers": (400, _error(message="Input is too long for requested model.")),
    "too-large": (413, _error(type="request_too_large", message="Request exceeds the maximum size")),
}

# Nothing that could be kept is learned from these: only the request that was refused is made smaller.
WITHOUT_NUMBERS = frozenset(name for name, (_, body) in REFUSALS.items() if "{window}" not in str(body))
