"""`rolling-chat`: the chat on the screen."""

from __future__ import annotations

import os
import sys

from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.opening import open_chat, settings_of
from rolling_chat.cli.options import Options
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.themes import find_theme, load_themes


def run_chat(options: Options, paths: Paths) -> int:
    """Open the chat on the screen; on the way out, print the command that comes back to it."""
    if not _has_terminal():
        raise Failure('the chat needs a terminal; in scripts use rolling-chat -p "text"', Exit.USAGE)
    if os.environ.get("TERM") == "dumb":
        raise Failure('the chat needs a terminal that can move its cursor; TERM is "dumb"', Exit.USAGE)
    settings = settings_of(options, paths)
    themes = load_themes(paths.themes_dir)
    find_theme(themes, settings.theme)
    chat = open_chat(options, settings, paths)
    from rolling_chat.tui import run_app

    code = run_app(chat, settings=settings, themes=themes, paths=paths)
    if chat.messages and chat.resume_command:
        print(f"Go on with: {chat.resume_command}")
    chat.close()
    return code


def _has_terminal() -> bool:
    return bool(sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty())
