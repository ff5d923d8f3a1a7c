"""What refusals taught, kept by model and address."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.sessions.records import Learned
from rolling_chat.sessions.store import SessionStore


def test_it_is_kept_by_model_and_address_and_the_newest_word_stands(store: SessionStore) -> None:
    assert store.learned("openai/m", "http://here") == Learned()
    store.keep_learned("openai/m", "http://here", Learned(4_096))
    assert store.learned("openai/m", "http://here") == Learned(4_096)
    assert store.learned("openai/m", "") == store.learned("openai/other", "http://here") == Learned()
    store.keep_learned("openai/m", "http://here", Learned(8_192))
    assert store.learned("openai/m", "http://here") == Learned(8_192)


def test_the_next_process_knows_it(database: Path) -> None:
    first = SessionStore.open(database)
    first.keep_learned("m\x00\ud800", "", Learned(4_096))
    first.keep_measured("m\x00\ud800", "", {"groups": [[1, 2]]})
    first.close()
    again = SessionStore.open(database)
    assert again.learned("m\x00\ud800", "") == Learned(4_096)
    assert again.measured("m\x00\ud800", "") == {"groups": [[1, 2]]}
    assert again.measured("m", "") is None
    again.close()


def test_nonsense_in_the_file_makes_no_window_larger(store: SessionStore) -> None:
    store.keep_learned("m", "", Learned(-5))
    assert store.learned("m", "") == Learned(0)


def test_a_limit_that_was_learned_more_than_thirty_days_ago_has_lapsed(database: Path) -> None:
    now = 1_000_000.0
    store = SessionStore.open(database, clock=lambda: now)
    store.keep_learned("m", "", Learned(4_096))
    now += 29 * 86_400
    assert store.learned("m", "") == Learned(4_096)
    now += 2 * 86_400
    assert store.learned("m", "") == Learned()
    store.close()
