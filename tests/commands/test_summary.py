"""/compact and /summary: a preview, a way back, an edit."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.commands import parse, run_command
from rolling_chat.settings.schema import ContextSettings, ModelSettings, Settings
from tests.support.commands import PlainContext
from tests.support.tui import MODEL, make_chat, says

SUMMARY = "They talked of the lexer."
TOLD = "The summary covers the first 4 messages of this session"


@pytest.fixture
async def context(tmp_path: Path) -> PlainContext:
    """Three turns, and a model that summarises them when it is asked."""
    settings = Settings(
        model=MODEL,
        models={MODEL: ModelSettings(max_input_tokens=32_000)},
        context=ContextSettings(enabled=True),
    )
    answers = [says("It is so. " * 100)] * 3
    chat = make_chat(tmp_path, *answers, *[says(SUMMARY)] * 3, settings=settings, folder=tmp_path)
    for number in range(3):
        async for _ in chat.send(f"What of the lexer, {number}?"):
            pass
    return PlainContext(chat)


async def run(context: PlainContext, line: str) -> None:
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context)


async def test_compact_shows_what_would_be_and_leaves_it_at_that(context: PlainContext) -> None:
    await run(context, "/compact the lexer")
    ((question, text),) = context.shown
    assert question.startswith(f"{TOLD}; the next request goes from ~")
    assert text == SUMMARY
    assert context.said == ["The summary was not used; nothing was changed."]
    assert context.chat.session.summaries.current is None
    asked = context.chat._runtime.provider.requests[-1].messages[0].text
    assert "kept in mind above all: the lexer" in asked


async def test_compact_takes_it_and_undo_goes_back(context: PlainContext) -> None:
    whole = context.chat.session.preview.report().token_count
    context.picks = ["yes"]
    await run(context, "/compact")
    assert context.said == [f"{TOLD}, from the next request on; /compact undo goes back."]
    assert context.chat.session.preview.report().token_count < whole
    await run(context, "/compact undo")
    assert context.said[-1] == "Undone: there is no summary of older messages now."
    assert context.chat.session.preview.report().token_count == whole
    await run(context, "/compact undo")
    assert context.warned == ["There is no summary to undo."]


async def test_summary_says_what_there_is_and_keeps_an_edit(context: PlainContext) -> None:
    await run(context, "/summary")
    assert context.said[-1].startswith("There is no summary yet")
    context.picks = ["yes", "They talked of a parser.", None]
    await run(context, "/compact")
    await run(context, "/summary")
    lead, text = context.shown[-1]
    assert lead.startswith(f"covers the first 4 messages · ~6 tokens · made by {MODEL}, ")
    assert lead.endswith(" · in the prompt")
    assert text == SUMMARY
    assert context.said[-1].startswith("The summary is as you wrote it")
    await run(context, "/summary")
    lead, text = context.shown[-1]
    assert "edited by you" in lead
    assert text == "They talked of a parser."


async def test_an_edit_that_is_too_long_is_told(context: PlainContext) -> None:
    context.picks = ["yes", "word word word\n" * 600]
    await run(context, "/compact")
    await run(context, "/summary")
    assert "only the lines within 800 are sent" in context.said[-1]


async def test_with_rolling_off_there_is_nothing_to_compact(context: PlainContext) -> None:
    context.chat.session.overrides.set_rolling(False)
    await run(context, "/compact")
    assert context.warned == ["Rolling context is off, and summaries with it: /rolling-context on first."]
