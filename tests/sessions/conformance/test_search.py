"""Finding messages by any words, in any script."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.messages import Message
from rolling_chat.sessions.records import SearchHit
from rolling_chat.sessions.store import SessionStore
from tests.sessions.conformance.test_store import in_one_store
from tests.support.patience import PATIENCE_SECONDS
from tests.support.sessions import OFFLINE, new_session
from tests.support.stores import Place


def test_the_words_of_a_message_find_it(store: SessionStore) -> None:
    session = new_session(store).id
    store.append(session, Message("user", "Where does the lexer drop tabs?"))
    found = store.append(session, Message("assistant", "In `parse_args`, on line 88: the café is closed."))
    for words in ("parse_args", "ARGS line", "cafe", "88, closed!"):
        (hit,) = store.search(words)
        assert (hit.session_id, hit.message_id) == (session, found.id)
        assert "[" in hit.snippet


def test_messages_with_all_words_come_before_those_with_any(store: SessionStore) -> None:
    session = new_session(store).id
    both = store.append(session, Message("user", "red and green"))
    one = store.append(session, Message("user", "only red"))
    assert [hit.message_id for hit in store.search("red green")] == [both.id]
    assert {hit.message_id for hit in store.search("red violet")} == {both.id, one.id}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我们在上海见面", "上海"),
        ("東京タワーへ行く", "タワー"),
        ("an error in MyLongIdentifier", "longident"),
        ("rate is 100%_done", "100"),
        ("before\x00after", "after"),
        ("lone \ud800 half", "half"),
    ],
)
def test_text_in_any_script_is_found(store: SessionStore, text: str, words: str) -> None:
    session = new_session(store).id
    message = store.append(session, Message("user", text))
    (hit,) = store.search(words)
    assert hit.message_id == message.id
    assert hit.snippet.isprintable()


def test_a_search_can_be_kept_to_one_session_and_what_it_shares(store: SessionStore) -> None:
    first, other = new_session(store).id, new_session(store).id
    shared = store.append(first, Message("user", "needle"))
    store.append(other, Message("user", "needle"))
    fork = store.fork(first).id
    later = store.append(first, Message("user", "needle again"))
    assert {hit.message_id for hit in store.search("needle", first)} == {shared.id, later.id}
    assert [(hit.session_id, hit.message_id) for hit in store.search("needle", fork)] == [(fork, shared.id)]
    assert len(store.search("needle")) == 3
    assert len(store.search("needle", limit=2)) == 2


def test_a_reply_is_found_once_it_is_sealed_and_no_longer_once_deleted(store: SessionStore) -> None:
    session = new_session(store).id
    reply = store.begin_reply(session, OFFLINE)
    store.grow_reply(reply, "quick")
    store.seal_reply(reply, Message("assistant", "quick answer"))
    assert [hit.message_id for hit in store.search("quick")] == [reply]
    store.delete(session)
    assert store.search("quick") == []


def test_pictures_are_not_searched(store: SessionStore) -> None:
    session = new_session(store).id
    parts = ({"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:QUJDREVG"}})
    store.append(session, Message("user", parts))
    assert store.search("QUJDREVG") == []
    assert len(store.search("look")) == 1


def test_a_snippet_shows_the_place_and_nothing_dangerous(store: SessionStore) -> None:
    session = new_session(store).id
    store.append(session, Message("tool", "x " * 5000 + "\x1b[31mneedle\x1b[0m\nnext" + " y" * 5000))
    (hit,) = store.search("needle")
    assert "needle" in hit.snippet
    assert hit.snippet.isprintable()
    assert len(hit.snippet) <= 160


def test_what_is_marked_is_what_was_found(store: SessionStore) -> None:
    session = new_session(store).id
    store.append(session, Message("user", "concatenate " * 50 + "the Cat sat, by the café of İstanbul"))
    (hit,) = store.search("cat")
    assert "the [Cat] sat" in hit.snippet
    assert "[café]" in store.search("cafe")[0].snippet
    assert "the [Cat sat], by" in store.search('"cat sat"')[0].snippet
    assert "[concat]enate" in store.search("concat*")[0].snippet


def test_a_word_in_every_line_of_one_result_is_found_at_once(place: Place) -> None:
    found: list[SearchHit] = []
    with closing(place.open()) as store:
        session = new_session(store).id
        store.append_all(session, [Message("user", "go"), Message("assistant", "flood\n" * 200_000)])
        searching = threading.Thread(target=lambda: found.extend(store.search("flood")), daemon=True)
        searching.start()
        searching.join(PATIENCE_SECONDS)  # time quadratic in the lines would be minutes
        assert not searching.is_alive()
    assert found[0].snippet.startswith("[flood] [flood]")


def test_a_search_that_is_stopped_ends_and_nobody_waits_for_it(place: Place) -> None:
    with closing(place.open()) as store:
        session = new_session(store).id
        store.append(session, Message("user", "needle"))
        stop, inside = threading.Event(), threading.Event()

        class Looked(threading.Event):
            def is_set(self) -> bool:
                inside.set()
                assert stop.wait(PATIENCE_SECONDS)
                return True

        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(store.search("needle", stop=Looked())))
        thread.start()
        assert inside.wait(PATIENCE_SECONDS)
        store.append(session, Message("user", "another"))  # while it is looked through
        stop.set()
        thread.join(PATIENCE_SECONDS)
        assert found == [[]]


def test_words_in_quotes_stand_together_and_a_star_begins_a_word(store: SessionStore) -> None:
    session = new_session(store).id
    apart = store.append(session, Message("user", "the lexer drops no tabs"))
    together = store.append(session, Message("user", "the drops of the lexer"))
    assert [hit.message_id for hit in store.search('"lexer drops"')] == [apart.id]
    assert [hit.message_id for hit in store.search('"the lexer" dro*')] == [together.id, apart.id]
    assert [hit.message_id for hit in store.search("ta*")] == [apart.id]
    assert store.search('"lexer tabs drops" zebra') == []


def test_whole_words_come_before_beginnings_of_words(store: SessionStore) -> None:
    session = new_session(store).id
    begun = store.append(session, Message("user", "parsers and parsing"))
    whole = store.append(session, Message("user", "one parse among very many other words that stand here"))
    assert [hit.message_id for hit in store.search("parse")] == [whole.id, begun.id]
    assert [hit.message_id for hit in store.search("pars")] == [begun.id, whole.id]


def test_of_messages_with_all_words_the_one_that_says_them_together_comes_first(store: SessionStore) -> None:
    session = new_session(store).id
    between = "\n".join(f"line {number}" for number in range(60))
    together = store.append(session, Message("user", f"{between}\nthe violin needs a repair\n{between}"))
    apart = store.append(session, Message("user", f"a violin\n{between}\n{between}\na repair"))
    assert [hit.message_id for hit in store.search("violin repair")] == [together.id, apart.id]


def test_a_question_finds_other_forms_of_its_words(store: SessionStore) -> None:
    session = new_session(store).id
    said = store.append(session, Message("user", "Deployments are approved by Marta."))
    store.append(session, Message("user", "Who is that, and where did you see him?"))
    assert [hit.message_id for hit in store.search("who has to approve a deployment?")] == [said.id]


def test_a_message_counts_more_where_its_neighbor_answers_too(store: SessionStore) -> None:
    session = new_session(store).id
    beside = [
        store.append(session, Message("user", "The budget of the violin is fixed")).id,
        store.append(session, Message("assistant", "The violin it is, for a small price")).id,
    ]
    for number in range(9):
        store.append(session, Message("user", f"something else {number}"))
    alone = store.append(session, Message("user", "The violin of Ines is old and brown")).id
    found = [hit.message_id for hit in store.search("violin budget price")]
    assert found.index(alone) == 2
    assert set(found[:2]) == set(beside)


def test_a_hit_says_where_it_is(store: SessionStore) -> None:
    session = new_session(store, folder="/src", title="the parser").id
    first = store.append(session, Message("user", "red"))
    store.append(session, Message("assistant", "blue"))
    store.append(session, Message("user", "more"))
    found = store.append(session, Message("assistant", "green"))
    (hit,) = store.search("green")
    assert (hit.title, hit.folder, hit.role, hit.turn, hit.on_branch) == (
        "the parser", "/src", "assistant", 2, True,
    )  # fmt: skip
    assert hit.created_at == found.created_at
    store.move_head(session, first.id, "m")
    (hit,) = store.search("green")
    assert (hit.turn, hit.on_branch) == (2, False)
    assert store.search("red")[0].on_branch


OPERATORS = [
    '"',
    "*",
    "a*",
    "NEAR(a b)",
    "content: x",
    "a AND",
    '"a b',
    '"" *',
    '"a"*',
    "OR",
    "NOT",
    "^a",
    "-a",
    "{a b}: c",
    "%",
    "\\",
]


@given(words=st.text(st.characters(exclude_categories=()), max_size=40) | st.sampled_from(OPERATORS))
@in_one_store
def test_no_text_breaks_a_search(store: SessionStore, words: str) -> None:
    session = new_session(store).id
    store.append(session, Message("user", f"about {words}"))
    store.search(words)
    store.search(words, session)
