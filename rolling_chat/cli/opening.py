"""From options and settings to an open chat: store, session, model."""

from __future__ import annotations

import os

from rolling_chat.agent import Chat, ChatError, Runtime, SessionInfo
from rolling_chat.cli.configured import here
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.events import AskPermission
from rolling_chat.hardening import close_process
from rolling_chat.providers.addresses import PROVIDERS_OWN
from rolling_chat.providers.model_ref import ModelRef
from rolling_chat.providers.protocol import ProviderError
from rolling_chat.providers.served import served_model
from rolling_chat.sessions.records import SessionAmbiguous, SessionNotFound, StoreError
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import Settings
from rolling_chat.settings.trust import FolderTrust


def open_chat(
    options: Options,
    settings: Settings,
    paths: Paths,
    trust: FolderTrust,
    *,
    ask: AskPermission | None = None,
    needs_model: bool = False,
) -> Chat:
    """Open the chat with the model and session that the options name.

    Raises Failure if there is nothing to continue, or the session or model is unknown.

    With `needs_model` the demo is not taken for want of another model.
    """
    if not options.save and (options.resume_newest or options.resume is not None):
        raise Failure(
            "--no-save begins a session of its own; it cannot go with --continue or --resume", Exit.USAGE
        )
    close_process()  # before anything runs that could look into it
    try:
        runtime = Runtime.create(settings, paths, here(), dict(os.environ), trust=trust, save=options.save)
    except StoreError as error:
        raise Failure(str(error)) from error
    session = _session_of(options, runtime.store, str(runtime.folder))
    runtime.api_base = options.api_base if options.api_base != PROVIDERS_OWN else ""
    model = _model_of(options, runtime, session)
    # a switch given for this run wins over the one that the session was left with
    given = settings.origins.get("context.enabled") == "command line"
    try:
        chat = Chat.open(
            runtime,
            model=model,
            address=options.api_base,
            allow_fallback=not needs_model,
            session=session,
            rolling=settings.context.enabled if given else None,
            ask=ask,
        )
    except ChatError as error:
        code = Exit.FAILED if isinstance(error.__cause__, StoreError) else Exit.USAGE
        raise Failure(str(error), code) from error
    return chat


def _model_of(options: Options, runtime: Runtime, session: SessionInfo | None) -> str:
    """Return the model that the command line names, or the one that the server at --api-base has.

    Empty: the session's own, or what settings and environment choose.
    """
    if not runtime.api_base:
        return options.model
    if options.model:
        # a bare name at an address of its own is a server that speaks OpenAI's language
        return options.model if "/" in options.model else f"openai/{options.model}"
    if session is not None and session.model and not ModelRef.parse(session.model).is_demo:
        return ""
    try:
        return served_model(runtime.api_base, runtime.settings.model, runtime.environ)
    except ProviderError as error:
        raise Failure(str(error), Exit.USAGE) from error


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
