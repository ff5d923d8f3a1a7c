"""What the first paint waits for: nothing heavy."""

from __future__ import annotations

import subprocess
import sys

from tests.support.program import program_environment
from tests.terminal.conftest import Desk

HEAVY = (
    "litellm",
    "openai",
    "pydantic",
    "aiohttp",
    "httpx",
    "jinja2",
    "tokenizers",
    "boto3",
    "numpy",
    "requests",
)

# Paints the real app once without a terminal, and says what was imported by then.
SCRIPT = """
import asyncio, os, sys
from rolling_chat.cli.opening import open_chat, settings_of
from rolling_chat.cli.options import read_options
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.themes import load_themes
options = read_options([])
paths = find_paths(os.environ)
settings = settings_of(options, paths)
chat = open_chat(options, settings, paths)
from rolling_chat.tui.app import RollingChatApp
seen = []
class Watched(RollingChatApp):
    async def on_event(self, event):
        await super().on_event(event)
    def _display(self, screen, renderable):
        super()._display(screen, renderable)
        if renderable is not None and not seen:
            seen.append(sorted({name.partition('.')[0] for name in sys.modules}))
            self.exit()
app = Watched(chat, theme=settings.theme, themes=load_themes(paths.themes_dir), paths=paths)
app.run(headless=True, size=(80, 24))
print(' '.join(seen[0]))
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
    assert "textual" in imported
    assert not imported & set(HEAVY)
