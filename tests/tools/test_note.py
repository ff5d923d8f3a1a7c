"""The tool note takes what fits, and says what to do where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from rolling_chat.notes import Note, NoteKey
from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.note import NoteTool


@dataclass(frozen=True)
class Pad:
    """Notes that take a token a character."""

    notes: Sequence[Note] = ()
    max_tokens: int = 60

    @property
    def next_key(self) -> NoteKey:
        return NoteKey(9)

    def count(self, notes: Sequence[Note]) -> int:
        return sum(len(note.text) for note in notes)


async def run(context: ToolContext, pad: Pad | None, **arguments: str) -> str:
    return (await NoteTool().run(arguments, replace(context, notes=pad))).text


async def test_a_note_is_taken_with_its_id_and_what_all_of_them_take(context: ToolContext) -> None:
    assert (
        await run(context, Pad(), text="The port is 80.") == "[noted as r9; your notes take 15 of 60 tokens]"
    )


async def test_a_note_takes_the_place_of_another(context: ToolContext) -> None:
    pad = Pad([Note(NoteKey(3), "x" * 55)])
    assert "15 of 60" in await run(context, pad, text="The port is 80.", replaces="[recall: r3]")


async def test_what_does_not_fit_is_refused_with_the_notes_there_are(context: ToolContext) -> None:
    pad = Pad([Note(NoteKey(3), "x" * 55), Note(NoteKey(4, 2), "y")])
    with pytest.raises(ToolError, match=r"at most 60 tokens.*Your notes: r3 'x+…'; r4\.2 'y'\."):
        await run(context, pad, text="The port is 80.")
    with pytest.raises(ToolError, match="it takes 99 tokens, and all notes together 60 at most"):
        await run(context, Pad(), text="z" * 99)


async def test_what_the_user_changed_is_not_replaced(context: ToolContext) -> None:
    pad = Pad([Note(NoteKey(3), "kept", by_user=True)])
    with pytest.raises(ToolError, match="The user changed r3"):
        await run(context, pad, text="other", replaces="r3")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "'text' is missing"),
        ({"text": " \n "}, "'text' is blank"),
        ({"text": "a", "replaces": "r8"}, "There is no note 'r8'. There are no notes yet."),
    ],
)
async def test_what_is_no_note_is_refused(context: ToolContext, arguments: dict[str, str], says: str) -> None:
    with pytest.raises(ToolError, match=says):
        await run(context, Pad(), **arguments)


async def test_without_a_conversation_nothing_is_noted(context: ToolContext) -> None:
    with pytest.raises(ToolError, match="no conversation"):
        await run(context, None, text="a")
