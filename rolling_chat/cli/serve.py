"""`rolling-chat serve`: the chat in a browser on this machine."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.settings.paths import Paths

if TYPE_CHECKING:
    from rolling_chat.web.server import ChatServer


def run_serve(options: Options, _paths: Paths) -> int:
    """Serve chats until the user stops the server. Raises Failure."""
    try:
        from rolling_chat.web.server import ChatServer
    except ImportError as error:
        raise Failure("the extra is missing: pip install 'rolling-chat[web]'", Exit.USAGE) from error
    server = ChatServer([word for word in options.words if word != "--"])
    asyncio.run(_serve(server, options.port))
    return Exit.DONE


async def _serve(server: ChatServer, port: int) -> None:
    try:
        runner = await server.start(port)
    except OSError as error:
        raise Failure(f"port {port} cannot be used: {error.strerror}; choose another with --port") from error
    print(f"Open {server.address}\nThe address lets in whoever has it. Ctrl+C stops the server.", flush=True)
    stopped = asyncio.Event()
    if sys.platform != "win32":
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        with suppress(asyncio.CancelledError):
            await stopped.wait()
    finally:
        await runner.cleanup()
