"""The same figures for the same request: gauge, commands, `-p`, inspect, replay, usage and the token log."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from rolling_chat import figures
from rolling_chat.agent import Chat, Runtime
from rolling_chat.commands import parse, run_command
from rolling_chat.settings.load import load_settings
from rolling_chat.settings.paths import find_paths
from rolling_chat.tui.widgets.gauge import Gauge
from tests.support.commands import PlainContext
from tests.support.patience import PATIENCE_SECONDS
from tests.support.program import Program
from tests.support.servers import OpenAIServer, Raw, Reply
from tests.support.tui import idle, make_app, screen_of, type_line, wait_until

MODEL = "openai/gpt-4o"
TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
ASKED = "And what follows from all of that?"
TURNS = 8


@pytest.fixture(autouse=True)
def key(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for the server, which `program` would take away."""
    assert program
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any")


def _configure(program: Program, server: OpenAIServer, window: int, *, rolling: bool) -> None:
    file = program.home / "rolling-chat" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        f'[agent]\ntools = ["read_file", "recall"]\n'
        f'[context]\nenabled = {str(rolling).lower()}\nsummarize = "off"\n'
        "usage_threshold = 1.0\n"  # a resumed session has a cold cache, and is trimmed early
        f'[models."{MODEL}"]\napi_base = "{server.api_base}"\nmax_input_tokens = {window}\n'
    )
    os.environ["ROLLING_CHAT_MODEL"] = MODEL


def _totals(program: Program, request: str) -> dict[str, Any]:
    """What `inspect` says of a request, as far as a report has it."""
    shown = program("inspect", request, "--json").json
    return {name: value for name, value in shown.items() if name not in {"reported", "messages"}}


def _assert_same(found: dict[str, Any], shown: dict[str, Any]) -> None:
    assert {name: shown[name] for name in found} == found


@pytest.mark.parametrize("reports", [False, True])
def test_a_conversation_held_with_p_is_inspected_and_replayed_alike(program: Program, reports: bool) -> None:
    """Of a server that reports no counts, in a small window; and of one that does: a replay has these."""
    messages = json.loads((TRANSCRIPTS / "talk.jsonl").read_text())["messages"][: 2 * TURNS]
    replies = [Reply(message["content"], usage=reports) for message in messages[1::2]]
    window, rolling = (64_000, False) if reports else (5_000, True)
    with OpenAIServer(replies).in_thread() as server:
        _configure(program, server, window, rolling=rolling)
        results = [
            program("-p", message["content"], "--output-format", "json", *(["--continue"] if number else []))
            for number, message in enumerate(messages[::2])
        ]
    sent = [ran.json for ran in results]
    session = sent[0]["session_id"]
    assert {one["session_id"] for one in sent} == {session}
    assert any(one["context"]["fates"]["omitted"] for one in sent) is rolling
    for number, one in enumerate(sent, 1):
        _assert_same(one["context"], _totals(program, f"{session}:{number}"))
    replayed = program(
        "replay", session, "--json", "-c", f"context.enabled={str(rolling).lower()}"
    ).out.splitlines()
    if reports:
        counted = [one["usage"]["input_tokens"] for one in sent]
        rows = [json.loads(line) for line in replayed]
        assert [row["token_count"] for row in rows] == counted
        assert [row["bound"] for row in rows] == counted, "what was counted is not estimated again"
        assert counted == [request.tokens for request in server.requests]
        return
    for one, line in zip(sent, replayed, strict=True):
        row = json.loads(line)
        context, sizes = one["context"], one["context"]["categories"]
        names = ("token_count", "bound", "max_input_tokens", "within_budget")
        assert {name: row[name] for name in names} == {name: context[name] for name in names}
        assert (row["reserve"], row["margin"]) == (sizes["reserve"], sizes["margin"])


@pytest.mark.parametrize(
    ("name", "conversation", "window", "rolling"),
    [("agent", 1, 8_192, True), ("odd", 0, 32_000, True), ("talk", 0, 128_000, False)],
)
def test_one_request_has_the_same_figures_everywhere(
    program: Program, name: str, conversation: int, window: int, rolling: bool
) -> None:
    held = _Held()
    with OpenAIServer([held.step]).in_thread() as server, OpenAIServer().in_thread() as other:
        _configure(program, server, window, rolling=rolling)
        program("sessions", "import", str(TRANSCRIPTS / f"{name}.jsonl"))
        ids = {one["title"]: one["id"] for one in program("sessions", "list", "--json").json}
        session = list(ids.values())[conversation]
        screen = asyncio.run(_on_screen(program, session, held, server))
        tokens = server.requests[0].tokens

        # the same again by -p, in a copy of its own at a server that has taught nothing
        program("sessions", "import", str(TRANSCRIPTS / f"{name}.jsonl"))
        listed = program("sessions", "list", "--json").json
        title = next(title for title, one in ids.items() if one == session)
        copy = next(one["id"] for one in listed if one["title"] == title and one["id"] not in ids.values())
        result = program(
            "-p", ASKED, "--resume", copy, "--model", MODEL, "--api-base", other.api_base,
            "--output-format", "json", "-c", f"context.enabled={str(rolling).lower()}",
        ).json  # fmt: skip

    request = program("inspect", f"{session}:1", "--json").json
    size, sizes = request["token_count"], request["categories"]
    _assert_same(screen.gauge, request)
    _assert_same(result["context"], request)
    assert (request["estimated"], request["bound"]) == (size, screen.gauge["bound"])
    assert f"{figures.tokens(size)}" in screen.gauge_text
    assert f"/ {figures.window(window)}  {figures.percent(100 * size / window)}" in screen.gauge_text
    band = f" ±{100 * request['band']:.0f}%"
    assert f"the next request is ~{size:,}{band} of {window:,} tokens" in screen.context_lead
    shown = ("summary", "history", "current", "reserve", "margin")
    assert screen.context_sizes == {one: sizes[one] for one in shown}
    left_out = sum(request["fates"][fate] for fate in ("summarised", "omitted"))
    assert (f"{left_out:,} message" in screen.status) is (rolling and left_out > 0)
    assert figures.window(window) in screen.status

    # what came back
    reported = request["reported"]
    assert reported["input_tokens"] == tokens
    assert screen.last == f"{figures.tokens(tokens)} in, {reported['output_tokens']} out"
    assert figures.cost(reported["cost"]) in screen.gauge_after
    assert screen.cost[0] == f"{tokens:,}"
    assert screen.cost[-1] == figures.dollars(reported["cost"])
    used = [one["usage"] for one in program("usage", "--json").json]
    again = program("inspect", f"{copy}:1", "--json").json["reported"]
    assert sum(one["input_tokens"] for one in used) == tokens + again["input_tokens"]
    assert sum(one["cost"] for one in used) == pytest.approx(reported["cost"] + again["cost"])
    assert result["usage"] == {key: again[key] for key in ("input_tokens", "output_tokens")}
    log = {one["id"]: one for one in program("doctor", "--tokens", "--json").json["requests"]}
    assert (log[request["id"]]["estimated"], log[request["id"]]["bound"]) == (size, request["bound"])
    assert log[request["id"]]["reported"] == tokens


class _Held:
    """A reply whose first byte waits until the test has looked at the request."""

    def __init__(self) -> None:
        self._looked = threading.Event()
        self.step = Raw(Reply("It follows that all is well."), self._write)

    def release(self) -> None:
        self._looked.set()

    async def _write(
        self, request: web.Request, events: list[str], _whole: dict[str, Any]
    ) -> web.StreamResponse:
        assert await asyncio.to_thread(self._looked.wait, PATIENCE_SECONDS), "nobody looked at the request"
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for event in events:
            await response.write(event.encode())
        await response.write_eof()
        return response


@dataclass(frozen=True)
class _Screen:
    """What the screen and its commands showed of a request under way, and after its reply."""

    gauge: dict[str, Any]
    gauge_text: str
    context_lead: str
    context_sizes: dict[str, int]
    status: str
    gauge_after: str
    last: str
    cost: tuple[str, ...]


async def _on_screen(program: Program, session: str, held: _Held, server: OpenAIServer) -> _Screen:
    environ = dict(os.environ)
    paths = find_paths(environ)
    settings = load_settings(paths, program.folder, environ)
    runtime = Runtime.create(settings, paths, program.folder, environ)
    chat = Chat.open(runtime, session=runtime.store.session(session), rolling=settings.context.enabled)
    context = PlainContext(chat)
    async with make_app(chat, program.home).run_test(size=(140, 40)) as pilot:
        screen = screen_of(pilot)
        await wait_until(pilot, lambda: screen._meter.reading() is not None)
        await type_line(pilot, ASKED)
        await wait_until(pilot, lambda: server.requests)
        await wait_until(pilot, lambda: chat.session.preview.is_ready)
        screen._painter.paint_rows()
        gauge, gauge_text = screen._meter.reading(), screen.query_one(Gauge).render().plain
        await _run("/context", context)
        await _run("/rolling-context status", context)
        held.release()
        await idle(pilot)
        screen._painter.paint_rows()
        gauge_after = screen.query_one(Gauge).render().plain
        await _run("/cost", context)
        last = screen.state.last.rpartition(" · ")[2]
    await chat.disconnect()
    runtime.store.close()
    assert gauge is not None
    assert context.inspected is not None
    names = {"summary": "summary", "history": "history", "current turn": "current",
             "reserve for the answer": "reserve", "safety margin": "margin"}  # fmt: skip
    return _Screen(
        gauge=gauge.totals(),
        gauge_text=gauge_text,
        context_lead="\n".join(context.inspected.lead),
        context_sizes={
            names[row[0]]: int(row[1].replace(",", ""))
            for row in context.inspected.tables[0].rows
            if row[0] in names
        },
        status=context.said[0],
        gauge_after=gauge_after,
        last=last,
        cost=(context.tables[0].rows[-1][2], context.tables[0].rows[-1][-1]),
    )


async def _run(line: str, context: PlainContext) -> None:
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context)
