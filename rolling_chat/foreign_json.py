"""JSON that a model or a server wrote, read so strictly that whatever was read can be written again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import NoReturn

from rolling_chat.messages import Json

MOST_DEPTH = 100
"""Objects and lists inside each other. Deeper ones are nobody's arguments, and break whoever walks
them by recursion: Python's own writer and `repr`, and the servers that they are sent back to."""


def read_json(text: str | bytes) -> Json:
    """The value of `text`. Raises ValueError, and nothing else, where it cannot be used.

    Beside what is no JSON that is: NaN and infinite numbers, which Python reads but no server takes,
    numbers of thousands of digits, and what is nested deeper than MOST_DEPTH.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if _is_deeper(value, MOST_DEPTH):
        raise ValueError("nested too deep")
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _is_deeper(value: Json, most: int) -> bool:
    level = _nested([value])
    for _ in range(most):
        if not level:
            return False
        level = _nested(inner for outer in level for inner in _inside(outer))
    return bool(level)


def _nested(values: Iterable[Json]) -> list[Json]:
    return [value for value in values if isinstance(value, dict | list)]


def _inside(value: Json) -> Iterable[Json]:
    return value.values() if isinstance(value, dict) else value
