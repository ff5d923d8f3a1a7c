"""`rolling-chat sessions`: list, search, show, export, delete."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from datetime import datetime

from rolling_chat.agent.attachments import delete_attachments
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.cli.stored import open_store
from rolling_chat.messages import Json
from rolling_chat.providers.addresses import place_of
from rolling_chat.redaction import secrets_in
from rolling_chat.sessions.export import export
from rolling_chat.sessions.records import (
    SearchHit,
    SessionAmbiguous,
    SessionInfo,
    SessionNotFound,
    StoreError,
)
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.paths import Paths
from rolling_chat.text import one_line


def list_sessions(options: Options, paths: Paths) -> int:
    """Print a list of the saved sessions, newest first."""
    store = open_store(paths)
    sessions = store.sessions()
    if options.json:
        print(json.dumps([_as_json(info) for info in sessions], indent=2))
        return Exit.DONE
    if not sessions:
        print("No sessions yet: start one with rolling-chat.")
    for info in sessions:
        marks = "".join(
            f"  {mark}"
            for mark, is_so in (("rolling", info.rolling), ("summarized", info.has_summary))
            if is_so
        )
        title, folder = one_line(info.title) or "(no title)", one_line(info.folder)
        print(f"{info.id}  {_when(info.updated_at)}  {info.messages:>5} messages{marks}  {title}  · {folder}")
    return Exit.DONE


def show_session(options: Options, paths: Paths) -> int:
    """Print the facts of one saved session: title, folder, model, dates, usage."""
    store = open_store(paths)
    info = _find(store, options.session)
    requests = store.requests(info.id)
    facts = {
        "id": info.id,
        "title": info.title or "(no title)",
        "folder": info.folder,
        "model": info.model,
        "address": _address(info),
        "messages": str(info.messages),
        "rolling": "on" if info.rolling else "off",
        "summary": "yes" if info.has_summary else "no",
        "begun": _when(info.created_at),
        "last used": _when(info.updated_at),
        "requests": str(len(requests)),
        "tokens in": f"{sum(request.usage.input_tokens for request in requests):,}",
        "tokens out": f"{sum(request.usage.output_tokens for request in requests):,}",
        "resume": f"rolling-chat --resume {info.id}",
    }
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {one_line(value)}")
    return Exit.DONE


def export_session(options: Options, paths: Paths) -> int:
    """Write one session's whole branch to stdout."""
    store = open_store(paths)
    info = _find(store, options.session)
    try:
        branch, summary = store.branch(info.id), store.summary(info.id)
    except StoreError as error:
        raise Failure(str(error)) from error
    secrets = secrets_in(os.environ)
    sys.stdout.write(export(info, branch, options.format or "markdown", summary, secrets))
    return Exit.DONE


def delete_session(options: Options, paths: Paths) -> int:
    """Delete one session for good, after the user has confirmed it."""
    store = open_store(paths)
    info = _find(store, options.session)
    if not options.yes and not _confirmed(info):
        return Exit.FAILED
    try:
        store.delete(info.id)
    except StoreError as error:
        raise Failure(str(error)) from error
    delete_attachments(paths.attachments_dir, info.id, store)
    print(f"Deleted {info.id}.")
    return Exit.DONE


def search_sessions(options: Options, paths: Paths) -> int:
    """Print the messages of all sessions that contain the words, best first."""
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
        title = one_line(hit.title) or "(no title)"
        print(f"{hit.session_id}  {_when(hit.created_at)}  {_where(hit)}  {title}")
        print(f"    {hit.role}: {one_line(hit.snippet)}")
    return Exit.DONE


def _confirmed(info: SessionInfo) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise Failure(f"say --yes to delete {info.id} without being asked", Exit.USAGE)
    question = f"Delete {info.id} ({one_line(info.title)}, {info.messages} messages) for good? [y/N] "
    return input(question).strip().lower() in {"y", "yes"}


def _find(store: SessionStore, id_start: str) -> SessionInfo:
    try:
        return store.session(id_start)
    except (SessionNotFound, SessionAmbiguous) as error:
        raise Failure(str(error), Exit.USAGE) from error
    except StoreError as error:
        raise Failure(str(error)) from error


def _as_json(info: SessionInfo) -> dict[str, Json]:
    return {
        "id": info.id,
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
    return f"turn {hit.turn}" if hit.on_branch else f"turn {hit.turn} of a branch that was left"


def _address(info: SessionInfo) -> str:
    return "unknown" if info.api_base is None else place_of(info.model, info.api_base) or "none"


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"
