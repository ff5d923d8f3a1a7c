"""`rolling-chat doctor`: the facts to check first when something does not work."""

from __future__ import annotations

import logging
import os
import platform
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import TypeAlias

from rolling_chat import __version__
from rolling_chat.agent.request.model_limits import Knowledge, knowledge_of, offers_tools, window_of
from rolling_chat.cli.configured import here, settings_of, trust_of
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.context.encodings import ENCODINGS, has_encoding
from rolling_chat.programs import find_program
from rolling_chat.providers.addresses import (
    address_in,
    is_private_address,
    token_counter,
    without_credentials,
)
from rolling_chat.providers.discovery import choose_model
from rolling_chat.providers.stored_keys import StoredKeys
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import StoreError
from rolling_chat.settings.catalog import load_catalog
from rolling_chat.settings.catalog_files import newest_catalog
from rolling_chat.settings.load import Faults
from rolling_chat.settings.mcp_servers import read_mcp_servers
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import Settings
from rolling_chat.settings.store_place import is_begun, store_place
from rolling_chat.settings.themes import find_theme, load_themes
from rolling_chat.settings.trust import FolderTrust
from rolling_chat.text import one_line
from rolling_chat.tools.sandbox.sandbox import find_sandbox

log = logging.getLogger("rolling_chat.cli.doctor")

# name, finding, and whether that is fine
Fact: TypeAlias = tuple[str, str, bool]

_MAX_LINE = 1_000
_PACKAGES = ("textual", "rich", "litellm", "tiktoken", "platformdirs", "tomli-w")


def run_doctor(options: Options, paths: Paths) -> int:
    """Print versions, folders, model and problems; return 0 unless something needed is missing.

    Raises Failure.
    """
    if options.json or options.svg is not None:
        raise Failure("--json and --svg go with --tokens, as in rolling-chat doctor --tokens", Exit.USAGE)
    broken = False
    for name, value, is_fine in _facts(options, paths):
        broken = broken or not is_fine
        print(f"{' ' if is_fine else '!'} {name:<12} {one_line(value, _MAX_LINE)}")
    return Exit.FAILED if broken else Exit.DONE


def _facts(options: Options, paths: Paths) -> Iterator[Fact]:
    """Yield the facts of every section; a section's failure is a fact, too, and stops no other section."""
    faults = Faults(collect=True)
    trust = trust_of(options, paths)
    settings = settings_of(options, paths, faults, trust)
    sections: tuple[tuple[str, Callable[[], Iterable[Fact]]], ...] = (
        ("program", _program),
        ("settings", lambda: _settings(settings, faults, paths)),
        ("trust", lambda: _trust(trust)),
        ("theme", lambda: _themes(settings, paths)),
        ("sessions", lambda: _sessions(settings, paths)),
        ("log", lambda: [("log", str(paths.log_file), True)]),
        ("model", lambda: _model(options, settings, paths)),
        ("counting", lambda: _counting(settings)),
        ("mcp", lambda: _servers(settings, paths, trust)),
        ("programs", _programs),
        ("sandbox", lambda: _sandbox(settings)),
    )
    for name, section in sections:
        try:
            yield from section()
        except Exception as error:
            log.exception("doctor: %s", name)
            yield name, f"cannot be read: {type(error).__name__}: {error}", False


def _program() -> Iterator[Fact]:
    yield "rolling-chat", __version__, True
    yield "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}", True
    for package in _PACKAGES:
        found = _version(package)
        yield package, found or "missing: install rolling-chat again", bool(found)
    yield "sqlite", sqlite3.sqlite_version, True
    yield "folder", str(here()), True


def _settings(settings: Settings, faults: Faults, paths: Paths) -> Iterator[Fact]:
    yield "settings", f"{paths.config_file}{'' if paths.config_file.exists() else ' (none yet)'}", True
    for warning in settings.warnings:
        yield "settings", warning, True
    for line in faults.lines:
        yield "settings", line, False


def _trust(trust: FolderTrust) -> Iterator[Fact]:
    if trust.problem:
        yield "trust", trust.problem, False
    if trust.line:
        yield "trust", trust.line, True


def _themes(settings: Settings, paths: Paths) -> Iterator[Fact]:
    faults = Faults(collect=True)
    themes = load_themes(paths.themes_dir, faults)
    with faults.caught():
        find_theme(themes, settings.theme)
    for line in faults.lines:
        yield "theme", line, False


def _counting(settings: Settings) -> Iterator[Fact]:
    for encoding in ENCODINGS:
        is_there = has_encoding(encoding)
        yield encoding, "found" if is_there else "not found: counting by character class instead", is_there
    rolling = settings.context
    cap = rolling.max_history_tokens
    size = f"{cap:,} tokens" if isinstance(cap, int) else "a tenth of the window, 20,000 tokens at least"
    yield "rolling", f"{'on' if rolling.enabled else 'off'}, history cap {size}", True


def _programs() -> Iterator[Fact]:
    for tool, what in (("rg", "search_files is slower without it"), ("git", "some commands will not work")):
        path = find_program(tool)
        yield tool, path or f"not in PATH outside this folder: {what}", True


def _servers(settings: Settings, paths: Paths, trust: FolderTrust) -> Iterator[Fact]:
    configs = read_mcp_servers(settings, paths, trust)
    yield from (("mcp", line, False) for line in configs.faults)
    if configs.servers:
        from rolling_chat.cli.mcp import check_servers  # it starts them

        yield from (("mcp", one.line, one.is_fine) for one in check_servers(configs, settings, paths))


def _sandbox(settings: Settings) -> Iterator[Fact]:
    mode, program = settings.agent.sandbox, find_sandbox()
    if mode == "off":
        yield "sandbox", "off (agent.sandbox): commands may read and write everything that you may", True
    elif program.kind:
        yield "sandbox", str(program), True
    elif mode == "required":
        yield "sandbox", f'{program}; agent.sandbox is "required", so no command runs', False
    else:
        yield "sandbox", f"{program}; commands may read and write everything that you may", True


def _model(options: Options, settings: Settings, paths: Paths) -> Iterator[Fact]:
    catalog = load_catalog(paths.catalog_file)
    environ, lines = StoredKeys(paths.logins_file).added_to(os.environ)
    yield from (("keyring", line, False) for line in lines)
    choice = choose_model(settings, environ, model=options.model)
    info = catalog.lookup(choice.model)
    yield "model", f"{choice.model} (from {choice.source})", True
    known = _learned(choice.model, settings, paths)
    yield "window", f"{window_of(choice.model, settings, catalog, known.learned):,} tokens", True
    yield "learned", known.describe(), True
    yield "counted", _counted_by(choice.model, _address_of(choice.model, settings)), True
    yield (
        "tools",
        "offered" if offers_tools(choice.model, catalog) else "not offered: the model takes none",
        True,
    )
    price = info.prices.input if info is not None else None
    yield (
        "price",
        f"${price * 1e6:.2f} a million tokens in" if price is not None else "unknown",
        True,
    )
    yield "catalog", newest_catalog(paths.catalog_file).described, True


def _counted_by(model: str, address: str) -> str:
    """Return how requests to a model are counted before its first reply."""
    who = token_counter(model, address)
    if who == "server" and is_private_address(address):
        return "by its server, if that is llama.cpp or vLLM; else by estimate until the first reply"
    if who == "server":
        return "by estimate; by its server where that decides, if it is llama.cpp or vLLM"
    if who:
        return "by estimate; by the provider's own count where that decides"
    return "by estimate until the first reply"


def _address_of(model: str, settings: Settings) -> str:
    return settings.for_model(model).api_base or address_in(os.environ, model)


def _learned(model: str, settings: Settings, paths: Paths) -> Knowledge:
    place = store_place(settings, paths)
    if not is_begun(place):
        return Knowledge()
    try:
        store = open_store(place)
        known = knowledge_of(model, without_credentials(_address_of(model, settings)), store)
        store.close()
    except StoreError:
        return Knowledge()  # the sessions' line reports the error
    return known


def _sessions(settings: Settings, paths: Paths) -> Iterator[Fact]:
    place = store_place(settings, paths)
    if not is_begun(place):
        yield "sessions", f"{place} (none yet)", True
        return
    try:
        store = open_store(place)
        try:
            count = len(store.sessions())
        finally:
            store.close()
    except StoreError as error:
        yield "sessions", str(error), False
        return
    yield "sessions", f"{place} ({count} saved)", True


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
