"""Count the offline model's tokens: o200k_base with OpenAI's framing, by the same counter as the pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from rolling_chat.context import count_tokens, estimate_tokens
from rolling_chat.messages import JsonObject
from rolling_chat.providers.offline.window import OFFLINE_MODEL


def count_prompt(messages: Sequence[JsonObject], tools: Sequence[JsonObject]) -> int:
    """Count the tokens of a whole prompt: messages, tool schemas, framing."""
    return estimate_tokens(list(messages), OFFLINE_MODEL, list(tools) or None)


def count_text(text: str) -> int:
    """Count the tokens of a text alone."""
    return count_tokens(text, OFFLINE_MODEL)


def fitting_pieces(pieces: Sequence[str], limit: int) -> int:
    """Return how many of `pieces`, from the first on, fit `limit` tokens together."""
    if count_text("".join(pieces)) <= limit:
        return len(pieces)
    low, high = 0, len(pieces)
    while low < high:
        middle = (low + high + 1) // 2
        if count_text("".join(pieces[:middle])) <= limit:
            low = middle
        else:
            high = middle - 1
    return low
