"""Where a store in PostgreSQL is: encrypted off this machine, and no password anywhere."""

from __future__ import annotations

import pytest

from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.postgres.address import Address
from rolling_chat.sessions.records import StoreError


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada@localhost/sessions",
        "postgresql://ada@127.0.0.1:6432/sessions",
        "postgresql://ada@[::1]/sessions",
        "postgresql:///sessions?host=/run/postgresql",
        "postgresql://ada@db.example.org/sessions?sslmode=verify-full",
        "postgresql://ada@db.example.org/sessions?sslmode=require",
    ],
)
def test_a_connection_that_stays_here_or_is_encrypted_is_made(url: str) -> None:
    assert "dbname=sessions" in Address.of(url).conninfo


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada@db.example.org/sessions",
        "postgresql://ada@db.example.org/sessions?sslmode=disable",
        "postgresql://ada@db.example.org/sessions?sslmode=prefer",
        "postgresql://ada@localhost,db.example.org/sessions",
        "postgresql://ada@localhost/sessions?hostaddr=192.0.2.7",
        "postgresql:///?service=team",
    ],
)
def test_a_connection_that_leaves_this_machine_must_be_encrypted(url: str) -> None:
    with pytest.raises(StoreError, match=r"must be encrypted; add sslmode=verify-full") as caught:
        Address.of(url)
    assert "\n" not in str(caught.value)


def test_the_environment_can_lead_off_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db.example.org")
    with pytest.raises(StoreError, match="must be encrypted"):
        Address.of("postgresql:///sessions")


def test_a_server_that_is_not_there_is_one_line_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(
        StoreError, match=r"^the session store at 127\.0\.0\.1 \(sessions\) cannot be opened:"
    ) as caught:
        open_store("postgresql://ada:hush-hush@127.0.0.1:1/sessions")
    assert (
        "hush" not in f"{caught.value}{caplog.text}{Address.of('postgresql://ada:hush-hush@127.0.0.1/x')!r}"
    )
    assert "\n" not in str(caught.value)
