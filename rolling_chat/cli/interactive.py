"""`rolling-chat`: the chat on the screen."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rolling_chat.cli.configured import here, settings_of, trust_of
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.gc_tuning import tune_for_startup
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.themes import find_theme, load_themes

if TYPE_CHECKING:
    from rolling_chat.agent import Chat

# Seconds for which a thread that imports or plans may block the one that handles keys, which waits several
# times per key: with Python's default of 5 ms, a key took twice as long while litellm was being imported.
_SWITCH_INTERVAL = 0.0005


_BROWSER_DRIVER = "rolling_chat.web.driver:BrowserDriver"  # set by `rolling-chat serve`


def run_chat(options: Options, paths: Paths) -> int:
    """Open the chat on the screen; at the end, print the command that resumes it."""
    tune_for_startup()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    if not _has_terminal():
        raise Failure('the chat needs a terminal; in scripts use rolling-chat -p "text"', Exit.USAGE)
    if os.environ.get("TERM") == "dumb" and not options.plain:
        line = 'the chat needs a terminal that can move its cursor; TERM is "dumb": try --plain'
        raise Failure(line, Exit.USAGE)
    trust = trust_of(options, paths)
    settings = settings_of(options, paths, trust=trust)
    themes = load_themes(paths.themes_dir)
    find_theme(themes, settings.theme)

    def open_chat() -> Chat:
        # imports the agent and the store, so only after the first paint
        from rolling_chat.cli import opening

        # load again: the user may have trusted the folder's own settings meanwhile
        trusted = settings_of(options, paths, trust=trust)
        find_theme(themes, trusted.theme)
        return opening.open_chat(options, trusted, paths, trust)

    code, chat = int(Exit.DONE), None
    if options.plain or settings.screen.plain:
        from rolling_chat.plain.chat import run_plain

        chat = run_plain(open_chat, trust)
    else:
        from rolling_chat.tui.start import run_app

        code, chat = run_app(
            open_chat, settings=settings, themes=themes, paths=paths, folder=str(here()), trust=trust
        )
    if chat is not None:
        if chat.session.conversation.recent and chat.session.resume_command:
            print(f"Continue with: {chat.session.resume_command}")
        chat.dispose()
    return code


def _has_terminal() -> bool:
    if os.environ.get("TEXTUAL_DRIVER") == _BROWSER_DRIVER:
        return True
    return bool(sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty())
