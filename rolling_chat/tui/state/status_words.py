"""The words of the status line: what the program is doing, and how a turn ended."""

from __future__ import annotations

import math
from enum import StrEnum

from rolling_chat import figures
from rolling_chat.events import Outcome, TurnEnded


class Activity(StrEnum):
    """The current activity, in the words of the status line."""

    IDLE = "ready"
    WAITING = "waiting"
    THINKING = "thinking"
    ANSWERING = "answering"
    CALLING = "writing a tool call"
    TOOL = "running"
    PERMISSION = "asking permission"
    RETRYING = "retrying"
    STOPPING = "stopping"


def activity_words(activity: Activity, subject: str, retry_seconds: float) -> str:
    """Return an activity with its subject: a model, a call, or why a request is sent again."""
    match activity:
        case Activity.WAITING if subject:
            return f"waiting for {subject}"
        case Activity.RETRYING:
            return f"{subject}; trying again in {math.ceil(max(0.0, retry_seconds))} s"
        case Activity.STOPPING:
            return "stopping"
        case _:
            return f"{activity} {subject}".rstrip()


def ending_words(event: TurnEnded, rate: float) -> str:
    """Return how a turn ended; `rate` is its last reply's speed in tokens per second, 0 if unknown."""
    took = duration(event.seconds)
    match event.outcome:
        case Outcome.DONE:
            return _done_words(event, took, rate)
        case Outcome.CUT:
            return "cut at the answer's limit"
        case Outcome.BROKEN:
            return "the answer broke off"
        case Outcome.CANCELLED:
            return f"stopped after {took}"
        case Outcome.FULL:
            return "nothing was sent"
        case Outcome.FAILED:
            return f"failed after {took}"


def _done_words(event: TurnEnded, took: str, rate: float) -> str:
    used, parts = event.usage, [f"done in {took}"]
    if rate:
        parts.append(f"{rate:.0f} tokens/s")
    if used.output_tokens:
        parts.append(f"{figures.tokens(used.input_tokens)} in, {figures.tokens(used.output_tokens)} out")
    for cause, tokens in event.cache_misses[-1:]:
        parts.append(f"cache missed: {cause}, {figures.tokens(tokens)}")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """Format a duration: `0.4 s`, `12 s`, `3 min 5 s`."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
