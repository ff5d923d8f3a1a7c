"""Where in a transcript a model was called."""

from __future__ import annotations

from collections.abc import Sequence

from rolling_chat.messages import Message


def request_points(messages: Sequence[Message]) -> list[int]:
    """The places before which a model was called: `messages[:place]` is what it was called on.

    Before every assistant message; and at the end, where somebody still waits for an answer: the
    request that would be sent next.
    """
    points = [place for place, message in enumerate(messages) if message.role == "assistant"]
    if messages and messages[-1].role not in {"assistant", "system"}:
        points.append(len(messages))
    return points
