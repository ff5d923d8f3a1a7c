"""`rolling-chat acp`: the agent for editors, which speaks the Agent Client Protocol on stdin and stdout."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

from rolling_chat.cli.configured import as_settings
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.logs import keep_out, log_libraries
from rolling_chat.cli.options import Options
from rolling_chat.hardening import close_process
from rolling_chat.settings.paths import Paths


def run_acp(options: Options, paths: Paths) -> int:
    """Serve one client until it disconnects; with --login, store a key instead. Raises Failure."""
    if options.login is not None:
        return _login(options, paths)
    if find_spec("acp") is None:
        raise Failure(
            "the agent-client-protocol package is not installed: pip install 'rolling-chat[acp]'", Exit.USAGE
        )
    # before importing anything that might print
    from rolling_chat.acp.pipes import take_pipes

    if sys.stdin is not None and sys.stdin.isatty():
        print("rolling-chat: an editor starts this, and speaks ACP with it; ctrl+c ends it", file=sys.stderr)
    try:
        incoming, outgoing = take_pipes()
    except OSError as error:
        raise Failure(f"acp needs stdin and stdout: {error.strerror}", Exit.USAGE) from error
    log_libraries()
    close_process()
    _keep_stored_keys_out(paths)
    from rolling_chat.acp.opening import Opener
    from rolling_chat.acp.serve import serve

    overrides = (*as_settings(options), *options.settings)
    serve(Opener(options.model, options.api_base, overrides, options.trust), incoming, outgoing)
    return Exit.DONE


def _keep_stored_keys_out(paths: Paths) -> None:
    """Keep the keys of the keyring out of the log."""
    from rolling_chat.providers.stored_keys import StoredKeys

    environ, _ = StoredKeys(paths.logins_file).added_to(os.environ)
    keep_out([environ[name] for name in environ.stored])


def _login(options: Options, paths: Paths) -> int:
    """Ask for a provider, unless one was named, and for its key. Raises Failure."""
    from rolling_chat.cli.login import run_login

    options.provider = options.login or ""
    if not options.provider and sys.stdin is not None and sys.stdin.isatty():
        options.provider = input("Provider, such as anthropic: ").strip()
    return run_login(options, paths)
