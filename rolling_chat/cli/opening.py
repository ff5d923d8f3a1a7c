"""From options and settings to an open chat: store, session, model."""

from __future__ import annotations

import os
from dataclasses import replace
from types import MappingProxyType

from rolling_chat.agent import Chat, ChatError, Runtime, SessionInfo
from rolling_chat.cli.configured import here
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.events import AskPermission
from rolling_chat.sessions.records import SessionAmbiguous, SessionNotFound, StoreError
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import Settings


def open_store(paths: Paths) -> SessionStore:
    """The saved sessions. Raises Failure with the store's own line."""
    try:
        return SessionStore.open(paths.database)
    except StoreError as error:
        raise Failure(str(error)) from error


def open_chat(
    options: Options, settings: Settings, paths: Paths, *, ask: AskPermission | None = None
) -> Chat:
    """The chat that the options ask for. Raises Failure: nothing to continue, unknown session or model."""
    if not options.save and (options.resume_newest or options.resume is not None):
        raise Failure(
            "--no-save begins a session of its own; it cannot go with --continue or --resume", Exit.USAGE
        )
    try:
        runtime = Runtime.create(settings, paths, here(), os.environ, save=options.save)
    except StoreError as error:
        raise Failure(str(error)) from error
    model = options.model
    if options.api_base and model:
        # a bare name at an address of its own is a server that speaks OpenAI's language
        model = model if "/" in model else f"openai/{model}"
        _use_address(runtime, model, options.api_base)
    session = _session_of(options, runtime.store, str(runtime.folder))
    # a switch given for this run wins over the one that the session was left with
    given = settings.origins.get("context.enabled") == "command line"
    try:
        chat = Chat.open(
            runtime,
            model=model,
            session=session,
            rolling=settings.context.enabled if given else None,
            ask=ask,
        )
    except ChatError as error:
        code = Exit.FAILED if isinstance(error.__cause__, StoreError) else Exit.USAGE
        raise Failure(str(error), code) from error
    if options.api_base and not model:
        _use_address(runtime, chat.model, options.api_base)
    return chat


def _session_of(options: Options, store: SessionStore, folder: str) -> SessionInfo | None:
    try:
        if options.resume is not None:
            return store.session(options.resume)
        if not options.resume_newest:
            return None
        newest = store.newest(folder)
    except (SessionNotFound, SessionAmbiguous) as error:
        raise Failure(str(error), Exit.USAGE) from error
    except StoreError as error:
        raise Failure(str(error)) from error
    if newest is None:
        raise Failure(f"there is no session of {folder} to continue; start one with rolling-chat", Exit.USAGE)
    return newest


def _use_address(runtime: Runtime, model: str, address: str) -> None:
    models = dict(runtime.settings.models)
    models[model] = replace(runtime.settings.for_model(model), api_base=address)
    runtime.settings = replace(runtime.settings, models=MappingProxyType(models))
