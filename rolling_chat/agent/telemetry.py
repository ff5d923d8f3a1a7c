"""OpenTelemetry: turns, requests and tool calls as spans and metrics, by its conventions for generative AI.

Nothing is sent unless the user's own settings name a collector, and then only names, counts, durations and
costs, never message texts. https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

from __future__ import annotations

import importlib.util
import logging
import threading
from typing import TYPE_CHECKING, Any

from rolling_chat.context.report import Fate, PromptReport
from rolling_chat.events import (
    Event,
    PromptPlanned,
    ReplyEnded,
    RequestStarted,
    RetryWaiting,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from rolling_chat.messages import Ending, Usage
from rolling_chat.providers.model_ref import ModelRef

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram
    from opentelemetry.trace import Span, Tracer

log = logging.getLogger(__name__)

MISSING = "telemetry.endpoint is set, but nothing is sent: install the extra `otel`."
_PATIENCE = 2.0  # seconds for a collector to answer, and for the end of the program to wait for it
_EXPORT_EVERY = 10_000  # milliseconds between two exports of metrics
_LEFT = (Fate.OMITTED, Fate.SUMMARIZED, Fate.MASKED, Fate.SHORTENED)
# the buckets that the conventions recommend, in tokens and in seconds
_TOKEN_BUCKETS = (1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304)
_SECOND_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)


def is_installed() -> bool:
    """Return whether the extra is installed."""
    try:
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ImportError:
        return False


class Telemetry:
    """Sends spans and metrics to one collector, in threads of OpenTelemetry's own."""

    def __init__(self, endpoint: str) -> None:
        """`endpoint` is the collector's address for OTLP over HTTP. Needs the extra."""
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        from rolling_chat import __version__ as version  # noqa: PLC0415  # looking it up takes 50 ms

        # complaints about a dead collector belong in the log
        logger = logging.getLogger("opentelemetry")
        logger.handlers[:], logger.propagate = logging.getLogger("rolling_chat").handlers, False
        base = endpoint.rstrip("/")
        resource = Resource.create({"service.name": "rolling-chat", "service.version": version})
        self._spans = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._spans.add_span_processor(
            BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{base}/v1/traces", timeout=_PATIENCE))
        )
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(endpoint=f"{base}/v1/metrics", timeout=_PATIENCE),
            export_interval_millis=_EXPORT_EVERY,
        )
        self._metrics = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        meter = self._metrics.get_meter("rolling_chat")
        self._tracer: Tracer = self._spans.get_tracer("rolling_chat", version)
        self._tokens: Histogram = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Tokens of requests, by kind.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        )
        self._seconds: Histogram = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="Duration of requests.",
            explicit_bucket_boundaries_advisory=_SECOND_BUCKETS,
        )

    def turn(self, session_id: str) -> TurnTrace:
        """Begin the span of a turn."""
        return TurnTrace(self._tracer, self._tokens, self._seconds, session_id)

    def close(self) -> None:
        """Send what is left, waiting only a moment for the collector."""
        closing = [
            threading.Thread(target=provider.shutdown, daemon=True)
            for provider in (self._spans, self._metrics)
        ]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(_PATIENCE)


class TurnTrace:
    """The spans of one turn, its requests and its tool calls."""

    def __init__(self, tracer: Tracer, tokens: Histogram, seconds: Histogram, session_id: str) -> None:
        from opentelemetry.trace import set_span_in_context  # noqa: PLC0415  # an extra

        self._tracer, self._tokens, self._seconds = tracer, tokens, seconds
        self._span = tracer.start_span(
            "invoke_agent rolling-chat",
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "rolling-chat",
                "gen_ai.conversation.id": session_id,
            },
        )
        self._context = set_span_in_context(self._span)
        self._session_id = session_id
        self._request: Span | None = None
        self._names: dict[str, str] = {}  # the attributes of the running request's metrics
        self._calls: dict[int, Span] = {}
        self._left = -1

    def take(self, event: Event) -> None:
        """Update the spans from an event of the turn."""
        match event:
            case PromptPlanned(report):
                self._planned(report)
            case RequestStarted(model=model):
                self._begin_request(model)
            case RetryWaiting(attempt=attempt, reason=reason):
                (self._request or self._span).add_event(
                    "rolling_chat.retry", {"attempt": attempt, "reason": reason}
                )
            case ReplyEnded(message=message, usage=usage, seconds=seconds):
                self._end_request(usage, seconds, message.ending)
            case ToolStarted(call=call):
                attributes = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": call.name,
                    "gen_ai.tool.call.id": call.id,
                    "gen_ai.tool.type": "function",
                }
                self._calls[id(call)] = self._tracer.start_span(
                    f"execute_tool {call.name}", self._context, attributes=attributes
                )
            case ToolEnded(call=call, message=message):
                span = self._calls.pop(id(call), None)
                if span is not None:
                    _close(span, "" if message.ending is Ending.COMPLETE else message.ending.value)
            case TurnEnded(outcome=outcome, usage=usage, error=error):
                self._span.set_attributes(_usage_attributes(usage))
                self._span.set_attribute("rolling_chat.outcome", outcome.value)
                self._end(outcome.value if error else "")

    def end(self) -> None:
        """End every span that is still open, because the turn was abandoned."""
        self._end("cancelled")

    def _end(self, error: str) -> None:
        for span in (*self._calls.values(), *([self._request] if self._request else [])):
            _close(span, "cancelled")
        self._calls.clear()
        self._request = None
        if self._span.is_recording():
            _close(self._span, error)

    def _planned(self, report: PromptReport) -> None:
        """Record a trim: more messages are omitted or shortened than in the previous request."""
        left = report.count(*_LEFT)
        if left > self._left >= 0:
            self._span.add_event(
                "rolling_chat.trim",
                {
                    "rolling_chat.tokens": report.token_count,
                    "rolling_chat.window": report.window,
                    **{f"rolling_chat.{fate.value}": report.count(fate) for fate in _LEFT},
                },
            )
        self._left = left

    def _begin_request(self, model: str) -> None:
        self._names = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": ModelRef.parse(model).provider or "unknown",
            "gen_ai.request.model": model,
        }
        self._request = self._tracer.start_span(
            f"chat {model}",
            self._context,
            attributes={**self._names, "gen_ai.conversation.id": self._session_id},
        )

    def _end_request(self, usage: Usage, seconds: float, ending: Ending) -> None:
        span, self._request = self._request, None
        if span is None:
            return
        span.set_attributes(_usage_attributes(usage))
        span.set_attribute(
            "gen_ai.response.finish_reasons", ["length" if ending is Ending.LENGTH else "stop"]
        )
        _close(span, ending.value if ending in (Ending.FAILED, Ending.CANCELLED) else "")
        self._seconds.record(seconds, self._names)
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if tokens:
                self._tokens.record(tokens, {**self._names, "gen_ai.token.type": kind})


def _usage_attributes(usage: Usage) -> dict[str, Any]:
    figures = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cached_write_tokens,
    }
    known: dict[str, Any] = {name: count for name, count in figures.items() if count}
    return known if usage.cost is None else {**known, "rolling_chat.cost_usd": usage.cost}


def _close(span: Span, error: str) -> None:
    from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415  # an extra

    if error:
        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR, error))
    span.end()
