"""A test conversation for the adapters: a tool whose results fill a window many times over."""

from __future__ import annotations

WINDOW = 8_000  # tokens
TURNS = 12
MODEL = "openai/gpt-4o-mini"


def log_of(number: int) -> str:
    """A result of some 2,000 tokens."""
    return "\n".join(
        f"line {line} of log {number}: service-{number} answered in {line} ms" for line in range(120)
    )
