"""`rolling-chat sessions list` and `search`: all saved sessions."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime

from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.cli.stored import count_local, open_saved
from rolling_chat.figures import plural
from rolling_chat.messages import Json
from rolling_chat.sessions.records import (
    SearchHit,
    SessionInfo,
    StoreError,
)
from rolling_chat.settings.paths import Paths
from rolling_chat.text import one_line


def list_sessions(options: Options, paths: Paths) -> int:
    """Print a list of the saved sessions, newest first."""
    store = open_saved(options, paths)
    sessions = store.sessions()
    if options.json:
        print(json.dumps([_as_json(info) for info in sessions], indent=2))
        return Exit.DONE
    if not sessions:
        print("No sessions yet: start one with rolling-chat.")
    width = max((len(info.short) for info in sessions), default=0)
    for info in sessions:
        marks = "".join(
            f"  {mark}"
            for mark, is_so in (("rolling", info.rolling), ("summarized", info.has_summary))
            if is_so
        )
        title, folder = one_line(info.title) or "(no title)", one_line(info.folder)
        begins = f"{info.short:<{width}}  {when(info.updated_at)}  {info.messages:>5} messages"
        print(f"{begins}{marks}  {title}  · {folder}")
    if stayed := count_local(options, paths, sessions):
        print(f"{plural(stayed, 'session')} stayed on this machine, all or in part: {paths.database}")
        print("rolling-chat sessions push copies them into the database.")
    return Exit.DONE


def search_sessions(options: Options, paths: Paths) -> int:
    """Print the messages of all sessions that contain the words, best first."""
    words = " ".join(options.words)
    try:
        hits = open_saved(options, paths).search(words, limit=options.limit)
    except StoreError as error:
        raise Failure(str(error)) from error
    if options.json:
        print(json.dumps([asdict(hit) for hit in hits], indent=2))
        return Exit.DONE
    if not hits:
        print(f"No message contains {one_line(words, 60)!r}.")
    for hit in hits:
        title = one_line(hit.title) or "(no title)"
        print(f"{hit.session_short}  {when(hit.created_at)}  {_where(hit)}  {title}")
        print(f"    {hit.role}: {one_line(hit.snippet)}")
    return Exit.DONE


def _as_json(info: SessionInfo) -> dict[str, Json]:
    return {
        "id": info.id,
        "short": info.short,
        "title": info.title,
        "folder": info.folder,
        "model": info.model,
        "api_base": info.api_base,
        "messages": info.messages,
        "has_summary": info.has_summary,
        "rolling": info.rolling,
        "created_at": info.created_at,
        "updated_at": info.updated_at,
    }


def _where(hit: SearchHit) -> str:
    return f"turn {hit.turn}" if hit.on_branch else f"turn {hit.turn} of an old branch"


def when(seconds: float) -> str:
    """Format a time, in seconds since the epoch, in the local time zone."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"
