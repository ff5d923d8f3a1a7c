"""Define the offline model's names and windows."""

from __future__ import annotations

import re

OFFLINE_MODEL = "demo/offline"
_DEFAULT_WINDOW = 8192
_NAME = re.compile(r"(?:demo/)?offline(?:-(?P<size>[1-9]\d{0,5})(?P<kilo>k)?)?", re.IGNORECASE)
# a smaller window has no room for a system prompt
_MIN_WINDOW = 256


def offline_window(model: str) -> int | None:
    """Return the window of an offline model in tokens; None for any other model.

    `demo/offline` has 8,192, `demo/offline-32k` 32 times 1,024, `demo/offline-3000` 3,000.
    """
    match = _NAME.fullmatch(model)
    if match is None:
        return None
    if not match["size"]:
        return _DEFAULT_WINDOW
    window = int(match["size"]) * (1024 if match["kilo"] else 1)
    return window if window >= _MIN_WINDOW else None
