"""`rolling-chat sessions show`, `export` and `delete`: one session, by any unique prefix of its id."""

from __future__ import annotations

import os
import sys

from rolling_chat.agent.attachments import delete_attachments
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.cli.saved_sessions import when
from rolling_chat.cli.stored import open_saved
from rolling_chat.providers.addresses import describe_server
from rolling_chat.redaction import secrets_in
from rolling_chat.sessions.export import export
from rolling_chat.sessions.records import SessionAmbiguous, SessionInfo, SessionNotFound, StoreError
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.paths import Paths
from rolling_chat.text import one_line


def show_session(options: Options, paths: Paths) -> int:
    """Print the facts of one saved session: title, folder, model, dates, usage."""
    store = open_saved(options, paths)
    info = _find(store, options.session)
    tasks, used = store.tasks(info.id), store.usage(info.id)
    requests = sum(len(store.requests(one.id)) for one in (info, *tasks))
    facts = {
        "id": info.id,
        "title": info.title or "(no title)",
        "folder": info.folder,
        "model": info.model,
        "address": _address(info),
        "messages": str(info.messages),
        "rolling": "on" if info.rolling else "off",
        "summary": "yes" if info.has_summary else "no",
        "begun": when(info.created_at),
        "last used": when(info.updated_at),
        "requests": str(requests),
        "tokens in": f"{used.input_tokens:,}",
        "tokens out": f"{used.output_tokens:,}",
        **({"a task of": store.session(info.task_of).short} if info.task_of else {}),
        **({"tasks": ", ".join(task.short for task in tasks)} if tasks else {}),
        "resume": f"rolling-chat --resume {info.short}",
    }
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {one_line(value)}")
    return Exit.DONE


def export_session(options: Options, paths: Paths) -> int:
    """Write one session's whole branch to stdout."""
    store = open_saved(options, paths)
    info = _find(store, options.session)
    try:
        branch, summary = store.branch(info.id), store.summary(info.id)
    except StoreError as error:
        raise Failure(str(error)) from error
    secrets = secrets_in(os.environ)
    sys.stdout.write(export(info, branch, options.format or "markdown", summary, secrets))
    return Exit.DONE


def delete_session(options: Options, paths: Paths) -> int:
    """Delete one session permanently, after the user has confirmed it."""
    store = open_saved(options, paths)
    info = _find(store, options.session)
    if not options.yes and not _confirmed(info):
        return Exit.FAILED
    try:
        store.delete(info.id)
    except StoreError as error:
        raise Failure(str(error)) from error
    delete_attachments(paths.attachments_dir, info, store)
    print(f"Deleted {info.short}.")
    return Exit.DONE


def _confirmed(info: SessionInfo) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise Failure(f"pass --yes to delete {info.short} without being asked", Exit.USAGE)
    question = f"Delete {info.short} ({one_line(info.title)}, {info.messages} messages) for good? [y/N] "
    return input(question).strip().lower() in {"y", "yes"}


def _find(store: SessionStore, id_start: str) -> SessionInfo:
    try:
        return store.session(id_start)
    except (SessionNotFound, SessionAmbiguous) as error:
        raise Failure(str(error), Exit.USAGE) from error
    except StoreError as error:
        raise Failure(str(error)) from error


def _address(info: SessionInfo) -> str:
    return "unknown" if info.api_base is None else describe_server(info.model, info.api_base) or "none"
