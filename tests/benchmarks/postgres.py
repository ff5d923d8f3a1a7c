"""Sessions in PostgreSQL: 50 clients at once, a long session opened, statements of a turn, keys far away."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore
from tests.benchmarks import postgres_turns
from tests.support.postgres import ADMIN, Server, new_database, shared_server
from tests.support.sessions import OFFLINE, new_session
from tests.support.unsteady_network import unsteady_network

_CLIENTS, _APPENDS = 50, 40
_LONG, _OPENED = 10_000, 20
_FIRST = 300  # messages that the program reads when it opens a session
_ONE_WAY = 0.025  # seconds
_DELTAS, _EACH_SECOND = 250, 50

# prints the milliseconds of each append
_CLIENT = """
import sys, time
from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store

address, appends = sys.argv[1], int(sys.argv[2])
store = open_store(address)
session = store.create_session(folder="/work", model="m", rolling=False).id
store.claim(session)
print("ready", flush=True)
sys.stdin.readline()
for n in range(appends):
    began = time.perf_counter()
    store.append(session, Message("user", f"{n} " + "words of a message " * 20))
    print(1000 * (time.perf_counter() - began))
store.close()
"""


def run() -> Iterator[str]:
    """Measure each on a server of this machine, over its socket."""
    server = shared_server()
    yield _many_clients(server)
    yield from _long_session(server)
    yield from _slow_network(server)
    yield from postgres_turns.statements()
    yield from postgres_turns.keys()


def _many_clients(server: Server) -> str:
    address = server.url(new_database(server))
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", _CLIENT, address, str(_APPENDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(_CLIENTS)
    ]
    for client in clients:
        assert client.stdout is not None
        client.stdout.readline()
    began = time.perf_counter()
    for client in clients:
        assert client.stdin is not None
        client.stdin.write("\n")
        client.stdin.flush()
    said = [client.communicate()[0] for client in clients]
    took = time.perf_counter() - began
    times = sorted(float(line) for one in said for line in one.split())
    return (
        f"append, {_CLIENTS} clients at once: p50 {_quantile(times, 0.5):.1f} ms, "
        f"p95 {_quantile(times, 0.95):.1f} ms, {len(times) / took:,.0f} a second"
    )


def _long_session(server: Server) -> Iterator[str]:
    store = open_store(server.url(new_database(server)))
    session = new_session(store).id
    roles = ("user", "assistant")
    store.append_all(session, (Message(roles[n % 2], f"{n} " + "words " * 60) for n in range(_LONG)))
    for name, most in (("the newest 300", _FIRST), ("all", None)):
        times = sorted(_milliseconds(store, session, most) for _ in range(_OPENED))
        yield (
            f"open at {_LONG:,} messages, {name}: "
            f"p50 {_quantile(times, 0.5):.1f} ms, p95 {_quantile(times, 0.95):.1f} ms"
        )
    store.close()


def _milliseconds(store: SessionStore, session: str, most: int | None) -> float:
    began = time.perf_counter()
    store.claim(session)
    store.session(session)
    store.stretch(session, most)
    return 1000 * (time.perf_counter() - began)


def _slow_network(server: Server) -> Iterator[str]:
    database = new_database(server)
    with unsteady_network(server.socket) as network:
        store = open_store(f"postgresql://{ADMIN}@127.0.0.1:{network.port}/{database}")
        session = new_session(store).id
        store.claim(session)
        network.delay = _ONE_WAY
        before = network.statements
        times = []
        for n in range(_OPENED):
            began = time.perf_counter()
            store.append(session, Message("user", f"{n}"))
            times.append(1000 * (time.perf_counter() - began))
        yield (
            f"append, {2000 * _ONE_WAY:.0f} ms there and back: p50 {statistics.median(times):.0f} ms, "
            f"{(network.statements - before) / _OPENED:.1f} statements"
        )
        yield asyncio.run(_deltas(store, session))
        network.delay = 0.0
        store.close()


async def _deltas(store: SessionStore, session: str) -> str:
    """Stream a reply through what the program streams it through."""
    from rolling_chat.agent.conversation import Conversation
    from rolling_chat.agent.request.counting import SessionCounts
    from rolling_chat.agent.turn.batching import batches
    from rolling_chat.events import Listener
    from rolling_chat.providers.protocol import TextDelta

    conversation = Conversation(store, session, Listener(), SessionCounts())
    conversation.begin_reply(OFFLINE)

    async def stream():
        for n in range(_DELTAS):
            await asyncio.sleep(max(0.0, began + n / _EACH_SECOND - time.perf_counter()))
            yield TextDelta(f"{n} ")

    began = time.perf_counter()
    writes, stored = 0, 0.0
    async for batch in batches(stream()):
        for delta in batch:
            await conversation.grow_reply(text=delta.text)
            writes += 1
        stored = time.perf_counter()
    late = stored - began - (_DELTAS - 1) / _EACH_SECOND
    return (
        f"{_DELTAS} deltas at {_EACH_SECOND} a second: {writes} writes, "
        f"the last stored {1000 * late:.0f} ms after it came"
    )


def _quantile(times: list[float], share: float) -> float:
    return times[min(len(times) - 1, int(share * len(times)))]
