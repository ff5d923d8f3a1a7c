"""Notes are what calls say, whatever a model writes into one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.messages import ToolCall
from rolling_chat.notes import Note, NoteKey, note_of_call, notes_text, parse_key, without_oldest


@pytest.mark.parametrize(
    ("text", "key"),
    [("r17", NoteKey(17)), ("[recall: r17]", NoteKey(17)), ("R17.2", NoteKey(17, 2)), (" 17 ", NoteKey(17))],
)
def test_a_key_is_read_as_it_is_written(text: str, key: NoteKey) -> None:
    assert parse_key(text) == key
    assert parse_key(key.name) == key


@pytest.mark.parametrize("text", ["", "r", "the port", "r1-r9", "r" + "9" * 40])
def test_what_is_no_key_is_none(text: str) -> None:
    assert parse_key(text) is None


@pytest.mark.parametrize(
    "arguments", ["", "[]", "5", '{"text": 5}', '{"text": " \\n "}', "{", '{"note": "x"}']
)
def test_a_call_without_a_text_makes_no_note(arguments: str) -> None:
    assert note_of_call(ToolCall("c", "note", arguments)) is None


def test_control_characters_and_blank_lines_are_no_part_of_a_note() -> None:
    made = note_of_call(ToolCall("c", "note", json.dumps({"text": "a\x1b[2J\n\n  b\u202e\n"})))
    assert made is not None
    assert made.text == "a␛[2J\n  b<U+202E>"


@given(st.text(max_size=5_000))
def test_any_text_makes_a_note_that_cannot_be_taken_for_another(text: str) -> None:
    made = note_of_call(ToolCall("c", "note", json.dumps({"text": text, "replaces": text})))
    if made is None:
        return
    lines = notes_text([Note(NoteKey(3), made.text)]).splitlines()
    assert lines[0].startswith("r3: ")
    assert all(line.startswith("  ") for line in lines[1:])


def test_the_oldest_that_the_user_did_not_change_gives_way_first() -> None:
    notes = [Note(NoteKey(1), "a", by_user=True), Note(NoteKey(2), "b"), Note(NoteKey(3), "c")]
    assert without_oldest(notes) == [notes[0], notes[2]]
    assert without_oldest(notes[:1]) == []
