"""What a collector is told of turns: parsed as it arrives over HTTP, from the real exporters."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from rolling_chat.agent import Chat
from rolling_chat.events import TurnEnded
from rolling_chat.settings.schema import AgentSettings, Settings, TelemetrySettings
from tests.support.tui import MODEL, ScriptedProvider, calls, make_chat, says

SECRET = "the heron flies at noon"


@dataclass
class Collector:
    """A collector that parses what it is sent."""

    address: str = ""
    spans: list[Span] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    raw: bytes = b""

    async def traces(self, request: web.Request) -> web.Response:
        for resource in ExportTraceServiceRequest.FromString(await self._body(request)).resource_spans:
            for scope in resource.scope_spans:
                self.spans += scope.spans
        return web.Response()

    async def take_metrics(self, request: web.Request) -> web.Response:
        for resource in ExportMetricsServiceRequest.FromString(await self._body(request)).resource_metrics:
            for scope in resource.scope_metrics:
                self.metrics.update({metric.name: metric for metric in scope.metrics})
        return web.Response()

    async def _body(self, request: web.Request) -> bytes:
        body = await request.read()
        body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        self.raw += body
        return body

    def named(self, start: str) -> list[Span]:
        return [span for span in self.spans if span.name.startswith(start)]


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    there = Collector()
    application = web.Application()
    application.add_routes(
        [web.post("/v1/traces", there.traces), web.post("/v1/metrics", there.take_metrics)]
    )
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    there.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield there
    await runner.cleanup()


def chat_for(home: Path, endpoint: str) -> Chat:
    settings = Settings(
        model=MODEL,
        agent=AgentSettings(approvals="all", sandbox="off"),
        telemetry=TelemetrySettings(endpoint=endpoint),
    )
    answers = [calls("list_files", path="."), says(f"There is: {SECRET}.")]
    return make_chat(home, settings=settings, folder=home, provider=ScriptedProvider(answers))


async def turn(chat: Chat) -> TurnEnded:
    ended: TurnEnded | None = None
    async for event in chat.send(f"What is there? {SECRET}"):
        ended = event if isinstance(event, TurnEnded) else ended
    await asyncio.to_thread(chat._runtime.close_telemetry)
    chat.close()
    assert ended is not None
    return ended


def attributes(span: Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes}


async def test_a_turn_is_a_span_with_its_requests_and_tool_calls(
    tmp_path: Path, collector: Collector
) -> None:
    chat = chat_for(tmp_path, collector.address)
    session_id = chat.session.info.id
    await turn(chat)
    (agent,) = collector.named("invoke_agent")
    requests, tools = collector.named(f"chat {MODEL}"), collector.named("execute_tool list_files")
    assert len(requests) == 2
    assert len(tools) == 1
    assert {span.parent_span_id for span in (*requests, *tools)} == {agent.span_id}
    assert attributes(agent)["gen_ai.conversation.id"] == session_id
    told = attributes(requests[0])
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.provider.name"] == "openai"
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (100, 20)
    assert attributes(tools[0])["gen_ai.tool.call.id"] == "call-1"
    assert {"gen_ai.client.token.usage", "gen_ai.client.operation.duration"} <= collector.metrics.keys()


async def test_nothing_that_was_said_is_sent(tmp_path: Path, collector: Collector) -> None:
    await turn(chat_for(tmp_path, collector.address))
    assert collector.spans
    assert SECRET.encode() not in collector.raw
    assert str(tmp_path).encode() not in collector.raw


async def test_without_the_setting_nothing_is_sent(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    # another program's own variable is no permission
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
    await turn(chat_for(tmp_path, ""))
    assert not collector.raw


async def test_a_collector_that_is_not_there_ends_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    logging.getLogger("rolling_chat").addHandler(logging.NullHandler())
    ended = await turn(chat_for(tmp_path, "http://127.0.0.1:9"))
    assert not ended.error
    assert capfd.readouterr().err == ""
