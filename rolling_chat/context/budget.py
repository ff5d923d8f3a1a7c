"""Divide the context window for one request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rolling_chat.context.config import ContextConfig
from rolling_chat.context.families import get_context_limit

_MIN_HISTORY_CAP = 20_000  # tokens: a tenth of a window of 200,000; smaller windows use it too
SMALLEST_RESERVE = 256
_SMALL_RESERVES = (512, SMALLEST_RESERVE)  # tokens for the answer, tried in order before a request is refused


@dataclass(frozen=True, slots=True)
class Budget:
    """The division of a model's window into floor, history, reserve and margin, in tokens.

    `system` and `tools` are upper bounds, because the hard rule compares bounds. `available` (A) is the room
    left for history and the current turn; `history` (H) is the part of it that history may use.
    """

    window: int
    reserve: int
    margin: int
    system: int = 0
    tools: int = 0
    history_cap: int = 0
    history_count: int = 0

    @property
    def room(self) -> int:
        """The room for the whole prompt, in tokens: W - R - M."""
        return self.window - self.reserve - self.margin

    @property
    def available(self) -> int:
        """The room for history and the current turn (A); below 0 if the floor alone is too large."""
        return self.room - self.system - self.tools

    @property
    def history(self) -> int:
        """The room for history (H): A, or the cap on history if that is less."""
        return min(self.available, self.history_cap) if self.history_cap > 0 else self.available


def divide_window(config: ContextConfig, model: str | None, *, system: int, tools: int) -> Budget:
    """Divide the window of `model` under `config`; `system` and `tools` are bounds in tokens.

    The reserve R is the configured one, capped at a third of the window and at the model's output limit.
    If the provider limits input separately, the room for the prompt stays within that limit too.
    """
    window = config.max_context_tokens or get_context_limit(model)
    reserve, margin = reserve_and_margin(config, window)
    if config.input_limit and window - reserve - margin > config.input_limit:
        reserve = window - margin - config.input_limit
    is_known = bool(config.max_context_tokens or model)
    count = max(100, min(2_000, window // 200 * 2)) if is_known else 1_000
    return Budget(window, reserve, margin, system, tools, history_cap(config, window), count)


def history_cap(config: ContextConfig, window: int) -> int:
    """Return the most tokens that history may use of a window; 0 for all that is available.

    "auto" is a tenth of the window, so that rolling begins where it pays off, even with a million tokens.
    """
    match config.max_history_tokens:
        case int() as cap:
            return cap
        case "auto":
            return max(_MIN_HISTORY_CAP, window // 10)


def reserve_and_margin(config: ContextConfig, window: int) -> tuple[int, int]:
    """Return the reserve and the margin of a window, in tokens.

    They are rounded together, so that the room for the prompt never shrinks as the window grows.
    """
    wanted = min(config.reserved_output_tokens, window / 3)
    if config.max_output_tokens:
        wanted = min(wanted, config.max_output_tokens)
    reserve = int(wanted)
    return reserve, int(wanted + window * config.safety_margin) - reserve


def with_smaller_reserves(config: ContextConfig, window: int) -> Iterator[ContextConfig]:
    """Yield `config` with smaller and smaller reserves, for a request that would be refused otherwise.

    A short answer is better than none: in a window of 4,096 tokens the reserve takes up a third.
    """
    reserve, _ = reserve_and_margin(config, window)
    for smaller in _SMALL_RESERVES:
        if smaller < reserve:
            yield replace(config, reserved_output_tokens=smaller)


def window_budget(config: ContextConfig, window: int | None = None) -> Budget:
    """Return the window, reserve and margin; `window` defaults to the configured one."""
    window = config.max_context_tokens if window is None else window
    return Budget(window, *reserve_and_margin(config, window))


def smallest_window(config: ContextConfig, bound: int) -> int:
    """Return the smallest window with room for a prompt of `bound` tokens."""
    low, high = bound, bound * 2 + config.reserved_output_tokens + 16
    while window_budget(config, high).room < bound:
        high *= 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if window_budget(config, middle).room >= bound else (middle + 1, high)
    return low
