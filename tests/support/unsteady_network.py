"""A connection that is slow, cut or silent when a test says so: a proxy on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PIECE = 65_536  # bytes read at a time
_STATEMENT = b"PB"  # how a message begins that has a statement: Parse, or Bind for one that was parsed


class UnsteadyNetwork:
    """A TCP port that leads to a Unix socket; whoever connects to it sees what is set here."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._running: set[asyncio.Task[None]] = set()
        self.delay = 0.0
        """Seconds that each piece takes, either way."""
        self.is_down = False
        """Whether new connections are closed at once."""
        self.port = 0
        self.statements = 0
        """How many the clients sent, each of which waits for one way there and back."""
        self.pieces = 0
        """How many pieces came from the clients."""
        self._lose_answers = 0

    def start(self) -> None:
        """Listen on a free port of this machine."""
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End everything."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """End all connections, as a network does that is gone for a moment."""
        self._run(self._close_all())

    def lose_next_answer(self) -> None:
        """Pass on what the client says next, and cut the connection instead of passing on the answer."""
        self._lose_answers += 1

    def _run(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()  # type: ignore[arg-type]

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._close_all()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _close_all(self) -> None:
        for writer in list(self._connections):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.transport.abort()
            return
        try:
            from_server, to_server = await asyncio.open_unix_connection(str(self._socket))
        except OSError:
            writer.transport.abort()
            return
        self._connections |= {writer, to_server}
        lost = asyncio.Event()
        both = [
            asyncio.create_task(self._pass_on(reader, to_server, lost, is_client=True)),
            asyncio.create_task(self._pass_on(from_server, writer, lost, is_client=False)),
        ]
        self._running.update(both)
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for one in (writer, to_server):
            self._connections.discard(one)
            one.transport.abort()
        await asyncio.wait(both)
        self._running.difference_update(both)

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        lost: asyncio.Event,
        *,
        is_client: bool,
    ) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(_PIECE):
                if is_client:
                    self.pieces += 1
                    self.statements += piece[:1] in _STATEMENT
                    if self._lose_answers:
                        self._lose_answers -= 1
                        lost.set()
                elif lost.is_set():
                    return
                if self.delay:
                    await asyncio.sleep(self.delay)
                writer.write(piece)
                await writer.drain()


@contextmanager
def unsteady_network(socket: Path) -> Iterator[UnsteadyNetwork]:
    """Lead to a Unix socket for the time of a block."""
    network = UnsteadyNetwork(socket)
    network.start()
    try:
        yield network
    finally:
        network.stop()
