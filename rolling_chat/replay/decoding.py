"""JSON as people have it."""

from __future__ import annotations

import json
import math

from rolling_chat.messages import Json


def decode(text: bytes) -> Json:
    """Read one JSON value; NaN and infinities, which JSON has not, become null.

    Raises ValueError for what is none, however deep or wrongly encoded.
    """
    try:
        return json.loads(text, parse_constant=_nothing, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _nothing(_: str) -> None:
    return None


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None
