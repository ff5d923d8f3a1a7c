"""The page on scaling: its figures follow from measured units, and its statements do what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from rolling_chat.messages import Message, Usage
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.postgres.migrations import script
from rolling_chat.sessions.records import RequestRecord
from rolling_chat.sessions.store import SessionStore
from tests.benchmarks.scaling import UNITS
from tests.benchmarks.scaling.mix import lengths
from tests.benchmarks.scaling.parts import delete_old, statements_of_page
from tests.benchmarks.scaling.requests import small_units
from tests.benchmarks.scaling.team import KEEPER, login, new_team
from tests.benchmarks.scaling_page import PAGE, given, recalculated
from tests.support.postgres import Server, new_database, shared_server
from tests.support.sessions import OFFLINE

TEXT = PAGE.read_text(encoding="utf-8")


def rows_of(name: str) -> list[list[str]]:
    """The rows of a table that has a mark of that name before it."""
    found = re.search(rf"<!-- {name} -->\n\|.*\n\|[-| ]+\n((?:\|.*\n)+)", TEXT)
    assert found, name
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in found.group(1).splitlines()]


def test_every_figure_follows_from_the_units() -> None:
    assert TEXT.split("\n") == recalculated(TEXT).split("\n")


def test_the_units_are_those_that_the_benchmark_prints() -> None:
    assert {name.strip("`"): what for name, _, what in rows_of("units")} == UNITS


def test_the_lengths_are_those_of_the_benchmark() -> None:
    assumed = {name: (f"{length.median:,}", str(length.spread)) for name, length in lengths().items()}
    assert {name: (median, spread) for name, median, spread in rows_of("lengths")} == assumed


def test_the_page_is_linked_at_the_end_of_the_readme() -> None:
    assert "(SCALING.md)" in (PAGE.parent / "README.md").read_text(encoding="utf-8")[-500:]


@pytest.mark.slow
def test_a_few_turns_cost_what_the_page_says(tmp_path: Path) -> None:
    units = given(TEXT)
    measured = small_units(shared_server(), tmp_path, turns=4)
    # so few fill no pages: sizes are rough
    for name, factor in {
        "rows": 1.2, "transactions": 1.2, "table_bytes": 2.5, "index_bytes": 2.5, "message_bytes": 2.5,
        "request_bytes": 2.5,
    }.items():  # fmt: skip
        assert 1 / factor < measured[name] / units[name] < factor, name
    # all at once a reply comes in fewer pieces
    without_pieces = units["wal_bytes"] - units["pieces"] * units["piece_wal_bytes"]
    measured_without = measured["wal_bytes"] - measured["pieces"] * units["piece_wal_bytes"]
    assert 0.4 < measured_without / without_pieces < 2.5


def record_of(session: str, head: str) -> RequestRecord:
    """A request whose plan and digest are its message's own."""
    return RequestRecord("", session, head, "m", {"plan": "now"}, f"digest of {head}", 1, "h", 1, 1)


@pytest.fixture
def server() -> Server:
    return shared_server()


@pytest.fixture
def team(server: Server) -> str:
    """A database with two members, and a login that may act as the owner of the tables."""
    return new_team(server, 2)


@pytest.fixture
def keeper(server: Server, team: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with closing(psycopg.connect(server.url(team, KEEPER), autocommit=True)) as connection:
        yield connection


def old_session(store: SessionStore, title: str) -> str:
    """A session with a question that nobody has come back to for a year."""
    session = store.create_session(folder="/f", model="m", rolling=True, title=title).id
    asked = store.append(session, Message("user", title))
    store.seal_reply(store.begin_reply(session, OFFLINE), Message("assistant", f"about {title}"))
    store.log_request(record_of(session, asked.id), {"system": title})
    return session


def test_old_sessions_are_deleted_but_not_what_is_used_pinned_or_stood_on(
    server: Server, team: str, keeper: psycopg.Connection[tuple[object, ...]]
) -> None:
    now = [0.0]
    with (
        closing(open_store(server.url(team, login(0)), clock=lambda: now[0])) as ada,
        closing(open_store(server.url(team, login(1)), clock=lambda: now[0])) as bob,
    ):
        gone = [old_session(ada, "gone"), old_session(bob, "gone as well")]
        pinned, opened, origin = (old_session(ada, title) for title in ("pinned", "open", "origin"))
        ada.update_session(pinned, pins=["m1"])
        ada.claim(opened)
        now[0] = 4e9
        fork = ada.fork(origin)
        assert delete_old(keeper) == 3
        left = {info.id for store in (ada, bob) for info in store.sessions()}
        assert left == {pinned, opened, fork.id}
        assert [message.text for message in ada.branch(fork.id)] == ["origin", "about origin"]
        assert not set(gone) & left
    kept = {value for (value,) in keeper.execute("SELECT value FROM basis")}
    assert len(kept) == 2
    assert delete_old(keeper) == 1  # it was closed meanwhile


def test_requests_can_be_partitioned_by_month_and_the_program_notices_nothing(
    server: Server, team: str, keeper: psycopg.Connection[tuple[object, ...]]
) -> None:
    with closing(open_store(server.url(team, login(0)))) as ada:
        session = old_session(ada, "before")
        for statement in statements_of_page("partitions"):
            keeper.execute(statement)
        keeper.execute(script("policies.sql"))
        keeper.execute("COMMIT")
        asked = ada.append(session, Message("user", "now"))
        made = ada.log_request(record_of(session, asked.id), {"system": "now"})
        ada.finish_request(made, usage=Usage(5, 6, cost=0.5), seconds=1.0)
        assert [record.usage.input_tokens for record in ada.requests(session)] == [0, 5]
        assert ada.request(made).id == made
        assert ada.usage(session).cost == ada.cost_since(0.0) == 0.5
        assert ada.last_answer(session)
        assert ada.request_sizes(session, 9) == [1, 5]
        assert ada.move_head(session, asked.id, "m") == {"plan": "now"}
        places = keeper.execute("SELECT tableoid::regclass::text FROM request ORDER BY number").fetchall()
        assert len({place for (place,) in places}) == 1
        assert str(places[0][0]).startswith("request_2")
        with closing(open_store(server.url(team, login(1)))) as bob:
            assert bob.usage_rows("day") == []
        with closing(psycopg.connect(server.url(team, login(1)))) as bob_himself:
            assert bob_himself.execute(f"SELECT FROM rolling_chat.{places[0][0]}").fetchall() == []
        keeper.execute(f"DROP TABLE {places[0][0]}")
        assert ada.requests(session) == []
        assert [message.text for message in ada.branch(session)] == ["before", "about before", "now"]
        ada.delete(session)


def test_messages_cannot_be_partitioned_as_they_are(server: Server) -> None:
    address = server.url(new_database(server))
    with closing(psycopg.connect(address, autocommit=True)) as connection:
        connection.execute("SET search_path TO rolling_chat, pg_temp")
        for number, partitions in enumerate(("PARTITION BY HASH (session)", "PARTITION BY RANGE (id)")):
            with pytest.raises(errors.FeatureNotSupported, match="must include all partitioning columns"):
                connection.execute(f"CREATE TABLE a{number} (LIKE message INCLUDING ALL) {partitions}")
            key = "PRIMARY KEY (number, session, id)"
            connection.execute(f"CREATE TABLE b{number} (LIKE message, {key}) {partitions}")
            with pytest.raises(errors.InvalidForeignKey, match="no unique constraint matching"):
                connection.execute(
                    f"ALTER TABLE b{number} ADD FOREIGN KEY (parent) REFERENCES b{number} (number)"
                )
        with pytest.raises(errors.FeatureNotSupported, match="must include all partitioning columns"):
            connection.execute("CREATE TABLE c (LIKE session INCLUDING ALL) PARTITION BY HASH (number)")
