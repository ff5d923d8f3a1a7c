"""What refusals taught, kept by model and address."""

from __future__ import annotations

from rolling_chat.sessions.records import Learned
from rolling_chat.sessions.store import SessionStore
from tests.support.stores import Place


def test_it_is_kept_by_model_and_address_and_the_newest_word_stands(store: SessionStore) -> None:
    assert store.models.learned("openai/m", "http://here") == Learned()
    store.models.keep_learned("openai/m", "http://here", Learned(4_096))
    assert store.models.learned("openai/m", "http://here") == Learned(4_096)
    assert (
        store.models.learned("openai/m", "")
        == store.models.learned("openai/other", "http://here")
        == Learned()
    )
    store.models.keep_learned("openai/m", "http://here", Learned(8_192))
    assert store.models.learned("openai/m", "http://here") == Learned(8_192)


def test_the_next_process_knows_it(place: Place) -> None:
    first = place.open()
    first.models.keep_learned("m\x00\ud800", "", Learned(4_096))
    first.models.keep_measured("m\x00\ud800", "", {"groups": [[1, 2]]})
    first.close()
    again = place.open()
    assert again.models.learned("m\x00\ud800", "") == Learned(4_096)
    assert again.models.measured("m\x00\ud800", "") == {"groups": [[1, 2]]}
    assert again.models.measured("m", "") is None
    again.close()


def test_nonsense_in_the_file_makes_no_window_larger(store: SessionStore) -> None:
    store.models.keep_learned("m", "", Learned(-5))
    assert store.models.learned("m", "") == Learned(0)


def test_a_limit_that_was_learned_more_than_thirty_days_ago_has_lapsed(place: Place) -> None:
    now = 1_000_000.0
    store = place.open(clock=lambda: now)
    store.models.keep_learned("m", "", Learned(4_096))
    now += 29 * 86_400
    assert store.models.learned("m", "") == Learned(4_096)
    now += 2 * 86_400
    assert store.models.learned("m", "") == Learned()
    store.close()
