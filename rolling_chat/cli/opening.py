"""Open a chat by options and settings: store, session, model."""

from __future__ import annotations

import os

from rolling_chat.agent import Chat, ChatError, Runtime, SessionInfo
from rolling_chat.api import begin_chat
from rolling_chat.cli.configured import here
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.logs import keep_out
from rolling_chat.cli.options import Options
from rolling_chat.events import AskPermission
from rolling_chat.hardening import close_process
from rolling_chat.providers.protocol import ProviderError
from rolling_chat.providers.stored_keys import StoredKeys
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

    With `needs_model`, a missing model is an error instead of a fallback to the demo.
    """
    if not options.save and (options.resume_newest or options.resume is not None):
        raise Failure(
            "--no-save begins a session of its own; it cannot go with --continue or --resume", Exit.USAGE
        )
    close_process()  # before anything runs that could read its memory
    try:
        environ, lines = StoredKeys(paths.logins_file).added_to(os.environ)
        keep_out([environ[name] for name in environ.stored])
        runtime = Runtime.create(settings, paths, here(), environ, trust=trust, save=options.save)
    except StoreError as error:
        raise Failure(str(error)) from error
    session = _session_of(options, runtime.store, str(runtime.folder))
    try:
        chat = begin_chat(
            runtime,
            session,
            model=options.model,
            api_base=options.api_base,
            ask=ask,
            needs_model=needs_model,
        )
    except ProviderError as error:
        raise Failure(str(error), Exit.USAGE) from error
    except ChatError as error:
        code = Exit.FAILED if isinstance(error.__cause__, StoreError) else Exit.USAGE
        raise Failure(str(error), code) from error
    chat.session.notices.extend(lines)
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
