"""`rolling-chat doctor`: everything that one asks first when something does not work."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from rolling_chat import __version__
from rolling_chat.agent.window import Knowledge, knowledge_of, offers_tools, window_of
from rolling_chat.cli.configured import here, settings_of
from rolling_chat.cli.exits import Exit
from rolling_chat.cli.options import Options
from rolling_chat.context.encodings import ENCODINGS, find_encoding
from rolling_chat.providers.discovery import choose_model
from rolling_chat.sessions.records import StoreError
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.catalog import load_catalog
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import Settings
from rolling_chat.text import one_line

_PACKAGES = ("textual", "rich", "litellm", "tiktoken", "platformdirs", "tomli-w")


def run_doctor(options: Options, paths: Paths) -> int:
    """Print what the program found; exits 0 unless something that it needs is missing."""
    settings = settings_of(options, paths)
    broken = False
    for name, value, is_fine in _facts(options, settings, paths):
        broken = broken or not is_fine
        print(f"{' ' if is_fine else '!'} {name:<12} {one_line(value)}")
    return Exit.FAILED if broken else Exit.DONE


def _facts(options: Options, settings: Settings, paths: Paths) -> Iterator[tuple[str, str, bool]]:
    yield "rolling-chat", __version__, True
    yield "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}", True
    for package in _PACKAGES:
        found = _version(package)
        yield package, found or "missing: install rolling-chat again", bool(found)
    yield "sqlite", sqlite3.sqlite_version, True
    yield "folder", str(here()), True
    yield "settings", f"{paths.config_file}{'' if paths.config_file.exists() else ' (none yet)'}", True
    for warning in settings.warnings:
        yield "settings", warning, True
    yield "sessions", *_sessions(paths)
    yield "log", str(paths.log_file), True
    yield from _model(options, settings, paths)
    for encoding in ENCODINGS:
        is_there = find_encoding(encoding) is not None
        yield encoding, "found" if is_there else "not found: counting by character class instead", is_there
    rolling = settings.context
    yield (
        "rolling",
        f"{'on' if rolling.enabled else 'off'}, history cap {rolling.max_history_tokens:,} tokens",
        True,
    )
    for tool, what in (("rg", "search_files is slower without it"), ("git", "some commands will not work")):
        path = shutil.which(tool)
        yield tool, path or f"not on the PATH: {what}", True


def _model(options: Options, settings: Settings, paths: Paths) -> Iterator[tuple[str, str, bool]]:
    catalog = load_catalog()
    choice = choose_model(settings, os.environ, model=options.model)
    info = catalog.lookup(choice.model)
    yield "model", f"{choice.model} (from {choice.source})", True
    known = _learned(choice.model, settings, paths)
    yield "window", f"{window_of(choice.model, settings, catalog, known.learned):,} tokens", True
    yield "learned", known.describe(), True
    yield (
        "tools",
        "offered" if offers_tools(choice.model, catalog) else "not offered: the model takes none",
        True,
    )
    has_price = info is not None and info.input_cost is not None
    yield (
        "price",
        f"${(info.input_cost or 0) * 1e6:.2f} a million tokens in" if info and has_price else "unknown",
        True,
    )
    yield "catalogue", f"{len(catalog.names()):,} models", True


def _learned(model: str, settings: Settings, paths: Paths) -> Knowledge:
    if not paths.database.exists():
        return Knowledge()
    try:
        store = SessionStore.open(paths.database)
        known = knowledge_of(model, settings, store)
        store.close()
    except StoreError:
        return Knowledge()  # the line of the sessions says what is wrong
    return known


def _sessions(paths: Paths) -> tuple[str, bool]:
    if not paths.database.exists():
        return f"{paths.database} (none yet)", True
    try:
        store = SessionStore.open(paths.database)
        count = len(store.sessions())
        store.close()
    except StoreError as error:
        return str(error), False
    return f"{paths.database} ({count} saved)", True


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
