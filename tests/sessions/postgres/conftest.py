"""A database, and a network between it and its clients that fails on demand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore
from tests.support.postgres import ADMIN, Server, new_database, shared_server
from tests.support.unsteady_network import UnsteadyNetwork, unsteady_network


@pytest.fixture
def server() -> Server:
    return shared_server()


@pytest.fixture
def database(server: Server) -> str:
    """The name of a database with empty tables."""
    return new_database(server)


@pytest.fixture
def network(server: Server) -> Iterator[UnsteadyNetwork]:
    with unsteady_network(server.socket) as between:
        yield between


@pytest.fixture
def store(network: UnsteadyNetwork, database: str) -> Iterator[SessionStore]:
    """A store behind that network."""
    opened = open_store(f"postgresql://{ADMIN}@127.0.0.1:{network.port}/{database}")
    yield opened
    opened.close()


@pytest.fixture
def steady(server: Server, database: str) -> Iterator[SessionStore]:
    """The same store, from another machine."""
    opened = open_store(server.url(database))
    yield opened
    opened.close()
