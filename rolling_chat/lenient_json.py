"""Read foreign JSON: every failure is a ValueError, and every value read can be written again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import NoReturn

from rolling_chat.messages import Json

MAX_DEPTH = 100
"""The deepest nesting of objects and lists. No real arguments are deeper, and recursive code fails on
deeper ones: Python's own writer and `repr`, and the servers that they are sent back to."""


def read_json(text: str | bytes) -> Json:
    """Return the value of `text`. Raises ValueError, and nothing else, if it cannot be used.

    That includes text that is not JSON, NaN and infinite numbers, which Python reads but no server accepts,
    numbers of thousands of digits, and nesting deeper than MAX_DEPTH.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if _is_deeper(value, MAX_DEPTH):
        raise ValueError("nested too deep")
    return value


def read_json_with_nulls(text: bytes) -> Json:
    """Return the value of `text`, however deep; NaN and infinite numbers become null.

    Raises ValueError, and nothing else, for text that is not JSON or is nested too deep to be read.
    """
    try:
        return json.loads(text, parse_constant=_nothing, parse_float=_finite_or_none)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _nothing(_: str) -> None:
    return None


def _finite_or_none(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _is_deeper(value: Json, max_depth: int) -> bool:
    level = _nested([value])
    for _ in range(max_depth):
        if not level:
            return False
        level = _nested(inner for outer in level for inner in _inside(outer))
    return bool(level)


def _nested(values: Iterable[Json]) -> list[Json]:
    return [value for value in values if isinstance(value, dict | list)]


def _inside(value: Json) -> Iterable[Json]:
    return value.values() if isinstance(value, dict) else value
