"""What the first paint waits for: nothing heavy, and no chat."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.program import program_environment
from tests.terminal.conftest import Desk

# packages and modules that only what comes after the first paint may import
LATER = (
    "litellm",
    "openai",
    "pydantic",
    "aiohttp",
    "httpx",
    "jinja2",
    "tokenizers",
    "tiktoken",
    "boto3",
    "numpy",
    "requests",
    "sqlite3",
    "rolling_chat.agent",
    "rolling_chat.commands",
    "rolling_chat.context",
    "rolling_chat.events",
    "rolling_chat.messages",
    "rolling_chat.replay",
    "rolling_chat.sessions",
    "rolling_chat.settings.catalog",
    "rolling_chat.tools",
    "rolling_chat.tui.controllers",
    "rolling_chat.tui.screens.chat_screen",
    "rolling_chat.tui.state",
)

# Runs the real program without a terminal, and says what was imported when it painted first.
SCRIPT = """
import sys
from textual.app import App
from rolling_chat.cli import interactive, run
from rolling_chat.tui.start import StartingApp
seen = []
def display(self, screen, renderable):
    App._display(self, screen, renderable)
    if renderable is not None and not seen:
        seen.extend(sys.modules)
        self.exit()
StartingApp._display = display
StartingApp.run = lambda self: App.run(self, headless=True, size=(80, 24))
interactive._has_terminal = lambda: True
code = run([])
print(*seen)
sys.exit(code)
"""


def test_nothing_heavy_is_imported_before_the_first_paint(desk: Desk) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=desk.folder,
        env=program_environment(desk.home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert "rolling_chat.tui.screens.start_screen" in imported
    assert not imported & set(LATER)


@pytest.mark.parametrize(
    ("argv", "code", "line"),
    [
        (("--resume", "nowhere"), 2, "rolling-chat: no session"),
        (("--continue",), 2, "rolling-chat: there is no session of"),
        (("--model", "gtp-4o"), 2, 'rolling-chat: Unknown model "gtp-4o"'),
        (("-c", "theme=midnite"), 2, 'rolling-chat: unknown theme "midnite"'),
    ],
)
def test_what_cannot_be_opened_is_told_on_the_shells_screen(
    desk: Desk, argv: tuple[str, ...], code: int, line: str
) -> None:
    terminal = desk.open(*argv, columns=160)
    assert terminal.leave() == code
    told = terminal.raw.rpartition(b"\x1b[?1049l")[2].decode()
    assert line in told
    assert told.count("\n") == 1
