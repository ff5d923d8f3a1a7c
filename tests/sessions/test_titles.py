"""Titles that sessions get by themselves: from what was said, never over a given one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.messages import Message
from rolling_chat.sessions.store import SessionStore
from rolling_chat.sessions.titles import TITLE_CHARACTERS, title_of
from tests.support.sessions import new_session


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Why does it crash?", "Why does it crash?"),
        ("\n\n  # Heading\nbody", "Heading"),
        ("Hello!\nWhy does it crash?", "Why does it crash?"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("- [ ] buy milk", "buy milk"),
        ("hi", "hi"),
        ("  \n ", ""),
        ("日本語のタイトル", "日本語のタイトル"),
        ("word " * 40, "word " * 11 + "word…"),
        ("x" * 100, "x" * (TITLE_CHARACTERS - 1) + "…"),
    ],
)
def test_a_title_is_the_first_line_that_says_something(text: str, title: str) -> None:
    assert title_of(text) == title


@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_a_title_is_short_and_harmless_whatever_the_text(text: str) -> None:
    title = title_of(text)
    assert len(title) <= TITLE_CHARACTERS * 2  # what is shown instead of a control is longer than it
    assert "\n" not in title
    assert "\x1b" not in title


def test_a_greeting_waits_for_a_better_title(store: SessionStore) -> None:
    session = new_session(store).id
    titles = []
    for said in ("hi", "thanks", "Where is the lexer?", "And the parser?"):
        store.append(session, Message("user", said))
        titles.append(store.session(session).title)
    assert titles == ["hi", "hi", "Where is the lexer?", "Where is the lexer?"]
    assert not store.session(session).title_given


def test_a_given_title_stays(store: SessionStore) -> None:
    session = new_session(store).id
    store.update_session(session, title="hi")
    store.append(session, Message("user", "Where is the lexer?"))
    assert store.session(session).title == "hi"


def test_a_first_message_said_anew_titles_anew(store: SessionStore) -> None:
    session = new_session(store).id
    store.append(session, Message("user", "Where is the lexer?"))
    store.move_head(session, "", "m")
    store.append(session, Message("user", "Where is the parser?"))
    assert store.session(session).title == "Where is the parser?"
