"""Serve one client over stdin and stdout until it disconnects."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from typing import BinaryIO

from acp.agent.connection import AgentSideConnection

from rolling_chat.acp.agent import ClientAgent
from rolling_chat.acp.opening import Opener
from rolling_chat.acp.transport import StdioTransport
from rolling_chat.tools.background import BACKGROUND
from rolling_chat.tools.leftover_processes import CHILDREN, end_children

_log = logging.getLogger("rolling_chat.acp")

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def serve(opener: Opener, incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Serve a client; return after it disconnects or a signal arrives, and everything is closed."""
    asyncio.run(_serve(opener, incoming, outgoing))


async def _serve(opener: Opener, incoming: BinaryIO, outgoing: BinaryIO) -> None:
    loop = asyncio.get_running_loop()
    transport = StdioTransport(incoming, outgoing)
    agent = ClientAgent(opener)
    connection = AgentSideConnection(agent, transport, listening=False, use_unstable_protocol=True)
    for name in _SIGNALS:
        # not every platform has signal handlers on the loop
        with contextlib.suppress(NotImplementedError, ValueError, AttributeError):
            loop.add_signal_handler(getattr(signal, name), transport.stop)
    try:
        await connection.listen()
    finally:
        _log.info("the client is gone")
        await agent.close()
        await BACKGROUND.end_all()
        await end_children(CHILDREN.left_running())
        await connection.close()
