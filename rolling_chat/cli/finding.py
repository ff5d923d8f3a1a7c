"""`rolling-chat sessions search`: what was said in any session."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime

from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.opening import open_store
from rolling_chat.cli.options import Options
from rolling_chat.sessions.records import SearchHit, StoreError
from rolling_chat.settings.paths import Paths
from rolling_chat.text import one_line


def search_sessions(options: Options, paths: Paths) -> int:
    """Print the messages that hold the words, best first."""
    words = " ".join(options.words)
    try:
        hits = open_store(paths).search(words, limit=options.limit)
    except StoreError as error:
        raise Failure(str(error)) from error
    if options.json:
        print(json.dumps([asdict(hit) for hit in hits], indent=2))
        return Exit.DONE
    if not hits:
        print(f"Nothing that was said holds {one_line(words, 60)!r}.")
    for hit in hits:
        print(f"{hit.session_id}  {_when(hit)}  {_where(hit)}  {one_line(hit.title) or '(no title)'}")
        print(f"    {hit.role}: {one_line(hit.snippet)}")
    return Exit.DONE


def _where(hit: SearchHit) -> str:
    return f"turn {hit.turn}" if hit.on_branch else f"turn {hit.turn} of a branch that was left"


def _when(hit: SearchHit) -> str:
    return f"{datetime.fromtimestamp(hit.created_at).astimezone():%Y-%m-%d %H:%M}"
