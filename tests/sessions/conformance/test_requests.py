"""The request log."""

from __future__ import annotations

import dataclasses
import math

import pytest

from rolling_chat.messages import Usage
from rolling_chat.sessions.records import RequestRecord, SessionNotFound, StoreError
from rolling_chat.sessions.store import SessionStore
from tests.support.sessions import new_session


def record(session_id: str) -> RequestRecord:
    """A request about to leave."""
    return RequestRecord(
        id="",
        session_id=session_id,
        head="",
        model="demo/offline",
        plan={"masked": [1]},
        settings_digest="abc",
        pipeline_version=1,
        wire_hash="def",
        estimated=100,
        bound=120,
        totals={"token_count": 100, "fates": {"sent": 3}},
    )


def test_a_request_is_logged_and_finished(store: SessionStore) -> None:
    session = new_session(store).id
    sent = record(session)
    first, second = store.log_request(sent), store.log_request(sent)
    assert first != second
    usage = Usage(100, 20, 5, 6, 7, 0.001)
    store.finish_request(first, usage=usage, seconds=1.5)
    store.finish_request(second, usage=Usage(), seconds=0.1, error="no network")
    logged = store.requests(session)
    expected = dataclasses.replace(
        sent, id=first, short=f"q{first[-8:]}", usage=usage, seconds=1.5, created_at=logged[0].created_at
    )
    assert logged[0] == expected
    assert logged[0].created_at > 1e9
    assert (logged[1].error, logged[1].usage.cost) == ("no network", None)


def test_a_server_may_report_anything(store: SessionStore) -> None:
    session = new_session(store).id
    request = store.log_request(record(session))
    usage = Usage(10**30, -5, 0, 0, 0, math.nan)
    store.finish_request(request, usage=usage, seconds=math.inf, error="\ud800 \x00")
    (logged,) = store.requests(session)
    assert (logged.usage.input_tokens, logged.usage.output_tokens) == (2**63 - 1, 0)
    assert logged.usage.cost is None
    assert logged.error == "\ud800 \x00"


def test_requests_go_with_their_session(store: SessionStore) -> None:
    session = new_session(store).id
    request = store.log_request(record(session))
    store.delete(session)
    with pytest.raises(StoreError, match="there is no request"):
        store.finish_request(request, usage=Usage(), seconds=0)
    with pytest.raises(SessionNotFound):
        store.log_request(record(session))


def test_a_request_is_found_by_any_start_of_its_short_id(store: SessionStore) -> None:
    session = new_session(store).id
    ids = [store.log_request(record(session)) for _ in range(12)]
    for logged, made in zip(store.requests(session), ids, strict=True):
        assert (logged.id, logged.short) == (made, f"q{made[-8:]}")
        for name in (logged.short, logged.short.upper(), f" {logged.short[:8]}", made):
            assert store.request(name) == logged
    first = ", ".join(logged.short for logged in store.requests(session)[:1])
    with pytest.raises(StoreError, match=f"several requests begin with 'q': {first}, .* and more"):
        store.request("q")
    for nothing in ("", "q_", "x", "%", "q0123456789"):
        with pytest.raises(StoreError, match="no request begins with"):
            store.request(nothing)


def test_what_requests_were_made_from_is_kept_once_and_goes_with_the_last_of_them(
    store: SessionStore,
) -> None:
    first, second = new_session(store).id, new_session(store).id
    store.log_request(record(first), {"system": "s\x00"})
    store.log_request(record(second), {"system": "never looked at: the digest is the same"})
    store.log_request(dataclasses.replace(record(first), settings_digest="other"), {"system": "t"})
    assert store.basis("abc") == {"system": "s\x00"}
    store.delete(first)
    assert (store.basis("abc"), store.basis("other")) == ({"system": "s\x00"}, None)
    store.delete(second)
    assert store.basis("abc") is None
