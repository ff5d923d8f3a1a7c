"""The screen: a Textual app that draws the events of an agent turn and knows nothing else of the agent."""

from __future__ import annotations

import os

_FRAMES = "TEXTUAL_FPS"


def _paint_at_once() -> None:
    """Have Textual check for pending repaints 200 times a second instead of 60.

    A key typed right after a paint shows one or two checks later: up to 33 ms by default. Textual reads
    its variable when it is imported; child processes must not inherit it.
    """
    if _FRAMES in os.environ:
        return
    os.environ[_FRAMES] = "200"
    import textual.constants  # noqa: F401, PLC0415  # reads the variable

    del os.environ[_FRAMES]


_paint_at_once()
