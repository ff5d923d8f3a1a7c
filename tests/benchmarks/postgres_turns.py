"""The program at the keyboard over PostgreSQL: the statements of a turn, and keys over a slow network."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from tests.benchmarks.screen.figures import percentile
from tests.benchmarks.screen.keys import type_along
from tests.benchmarks.screen.windows import READY, Desk, desk, settle
from tests.support.postgres import ADMIN, new_database, own_server, shared_server
from tests.support.statements import StatementLog, counted, with_statements_logged
from tests.support.terminal import Terminal
from tests.support.unsteady_network import UnsteadyNetwork, unsteady_network

_SIDE_BY_SIDE = "Read a.txt and b.txt."
_ONE_BY_ONE = "Read a.txt. Then list files."
_FIRST_READ = "The kettle is blue."
_ONE_WAY = 0.025  # seconds
_TURNS_OF_KEYS = 8
_CTRL_C, _ENTER = "\x03", "\r"


def statements() -> Iterator[str]:
    """Count what the program sends for a question, two tool calls and an answer."""
    with own_server(with_statements_logged) as server, desk() as place:
        server.sql("CREATE DATABASE sessions")
        _write_files(place)
        log = StatementLog(server)
        with _program(place, server.url("sessions")) as terminal:
            counts = {}
            log.news()
            for name, said in (("in one reply", _SIDE_BY_SIDE), ("in two", _ONE_BY_ONE)):
                _say(terminal, said)
                counts[name] = dict(counted(log.news()))
    yield f"{'statements of a turn with two calls':<38}" + "".join(f"{name:>14}" for name in counts)
    for statement in sorted({one for count in counts.values() for one in count}):
        yield f"  {statement:<36}" + "".join(f"{count.get(statement, 0):>14}" for count in counts.values())
    yield f"  {'all':<36}" + "".join(f"{sum(count.values()):>14}" for count in counts.values())


def keys() -> Iterator[str]:
    """Type while turns run: sessions in SQLite, in PostgreSQL here, and in PostgreSQL 50 ms away."""
    server = shared_server()
    with unsteady_network(server.socket) as network:
        far = f"postgresql://{ADMIN}@127.0.0.1:{network.port}/"
        for name, address, delay in (
            ("SQLite", "", 0.0),
            ("PostgreSQL", server.url(new_database(server)), 0.0),
            (f"PostgreSQL, {2000 * _ONE_WAY:.0f} ms", far + new_database(server), _ONE_WAY),
        ):
            with desk() as place:
                _write_files(place)
                yield f"keys, {name:<22}{_keys(place, address, network, delay)}"
            network.delay = 0.0


def _keys(place: Desk, address: str, network: UnsteadyNetwork, delay: float) -> str:
    with _program(place, address) as terminal:
        network.delay = delay
        times, unseen = [], 0
        for _ in range(_TURNS_OF_KEYS):
            terminal.type(_ONE_BY_ONE + _ENTER)
            found = type_along(terminal, is_over=lambda: False, most_seconds=2.0)
            times += found.times
            unseen += found.unseen
            terminal.type(_CTRL_C)  # what was typed
            settle(terminal)
    return (
        f"median {statistics.median(times):5.0f} ms, p95 {percentile(times, 0.95):5.0f} ms, "
        f"worst {max(times):5.0f} ms of {len(times)}, {unseen} unseen"
    )


def _write_files(place: Desk) -> None:
    for name in ("a.txt", "b.txt"):
        (place.folder / name).write_text(_FIRST_READ)


def _program(place: Desk, address: str) -> Terminal:
    store = ("-c", f"sessions.store={address}") if address else ()
    terminal = place.program(*store)
    terminal.see(READY)
    settle(terminal)
    return terminal


def _say(terminal: Terminal, said: str) -> None:
    terminal.type(said + _ENTER)
    terminal.see("done in")
    settle(terminal)
