"""/notes lists what the model has noted, and lets the user change and remove it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rolling_chat.commands import parse, run_command
from rolling_chat.messages import Message, ToolCall, Usage
from rolling_chat.providers.protocol import Finished
from rolling_chat.settings.schema import ContextSettings, ModelSettings, Settings
from tests.support.commands import PlainContext
from tests.support.tui import MODEL, make_chat, says


def noting(text: str) -> list[Finished]:
    call = ToolCall("c1", "note", json.dumps({"text": text}))
    return [Finished(Message("assistant", "", tool_calls=(call,)), Usage(100, 20))]


@pytest.fixture
async def context(tmp_path: Path) -> PlainContext:
    """A turn in which the model makes two notes."""
    settings = Settings(
        model=MODEL,
        models={MODEL: ModelSettings(max_input_tokens=32_000)},
        context=ContextSettings(enabled=True),
    )
    notes = (noting("The port is 8080."), noting("Ann decides."))
    chat = make_chat(tmp_path, *notes, says("Noted."), settings=settings, folder=tmp_path)
    async for _ in chat.send("Note both."):
        pass
    return PlainContext(chat)


async def run(context: PlainContext, line: str) -> None:
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context)


async def test_a_note_is_chosen_and_changed(context: PlainContext) -> None:
    context.picks = ["r2", "The port is 9090."]
    await run(context, "/notes")
    assert [choice.label for choice in context.offered] == ["r2 · The port is 8080.", "r4 · Ann decides."]
    assert context.said == ["r2 is as you wrote it, from the next request on."]
    context.picks = [None]
    await run(context, "/notes")
    assert [choice.label for choice in context.offered] == ["r2 · The port is 9090.", "r4 · Ann decides."]
    assert context.offered[0].note == "changed by you"


async def test_a_note_is_removed_by_its_id_and_by_an_empty_text(context: PlainContext) -> None:
    await run(context, "/notes delete r4")
    assert context.said == ["Removed r4: Ann decides."]
    context.picks = [" "]
    await run(context, "/notes edit r2")
    assert context.said[-1] == "Removed r2: The port is 8080."
    await run(context, "/notes")
    assert context.said[-1].startswith("There are no notes on this branch")


async def test_what_is_cancelled_or_no_note_changes_nothing(context: PlainContext) -> None:
    context.picks = ["r2", None]
    await run(context, "/notes")
    await run(context, "/notes delete r9")
    await run(context, "/notes drop")
    assert context.said == []
    assert context.warned == [
        "There is no note 'r9'; the notes are r2, r4.",
        "Use /notes, /notes edit ID or /notes delete ID, not 'drop'.",
    ]
    assert [note.text for note in context.chat.session.notes.notes] == ["The port is 8080.", "Ann decides."]
