"""Count what the gateway did: in memory, and for Prometheus where its client is installed."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import Any, Final

OUTCOMES: Final = ("unchanged", "trimmed", "refused", "skipped", "failed_open")
"""Every request has one outcome; `failed_open` went on as it came, after a fault of the gateway's own."""


class Counters:
    """Count requests by outcome; `rolling_chat_gateway_requests_total` at the proxy's `/metrics`."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        self._metric = _prometheus_counter()

    def add(self, outcome: str) -> None:
        """Count one request."""
        self.requests[outcome] += 1
        if self._metric is not None:
            self._metric.labels(outcome=outcome).inc()


def _prometheus_counter() -> Any:
    try:
        metric = import_module("prometheus_client").Counter
    except ImportError:
        return None
    try:
        counter = metric(
            "rolling_chat_gateway_requests",
            "Chat requests by what the rolling window did with them.",
            ["outcome"],
        )
    except ValueError:  # this process counts already
        return None
    for outcome in OUTCOMES:  # an alarm on the first fault needs a zero before it
        counter.labels(outcome=outcome)
    return counter
