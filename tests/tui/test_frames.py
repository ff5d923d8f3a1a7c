"""How often the screen looks for what is to be painted."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, rolling_chat.tui.app, textual.screen
print(round(1 / textual.screen.UPDATE_PERIOD), os.environ.get("TEXTUAL_FPS"))
"""


@pytest.mark.parametrize(
    ("wished", "seen"), [({}, "200 None"), ({"TEXTUAL_FPS": "30"}, "30 30")], ids=["ours", "the person's own"]
)
def test_a_key_waits_for_no_frame_and_what_is_started_inherits_nothing(
    wished: dict[str, str], seen: str
) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "TEXTUAL_FPS"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environ | wished, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == seen
