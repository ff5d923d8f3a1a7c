"""/lost, and what /compact leaves out: listed, and put back into the summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.commands import parse, run_command
from rolling_chat.context import count_tokens
from rolling_chat.settings.schema import ContextSettings, ModelSettings, Settings
from tests.support.commands import PlainContext
from tests.support.tui import MODEL, make_chat, says

SUMMARY = "Facts:\n- They talked of Kestrel on port 8471."
BOTH = "The log has E4417 in src/app_1.py."


async def open_context(folder: Path, **keys: object) -> PlainContext:
    """Three turns, and a model that summarizes them when it is asked."""
    settings = Settings(
        model=MODEL,
        models={MODEL: ModelSettings(max_input_tokens=32_000)},
        context=ContextSettings(enabled=True, **keys),
    )
    chat = make_chat(
        folder,
        *[says(f"{BOTH} {'It is so. ' * 60}")] * 2,
        says("So."),
        *[says(SUMMARY)] * 3,
        settings=settings,
        folder=folder,
    )
    for text in ("Kestrel listens on port 8471.", "What of it?", "And now?"):
        async for _ in chat.send(text):
            pass
    return PlainContext(chat)


@pytest.fixture
async def context(tmp_path: Path) -> PlainContext:
    return await open_context(tmp_path)


async def run(context: PlainContext, line: str) -> None:
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context)


async def test_compact_says_what_is_left_out_and_a_line_comes_in_before_it_is_taken(
    context: PlainContext,
) -> None:
    context.picks = ["other", "0", "yes"]
    await run(context, "/compact")
    first, second = context.shown
    assert first[0].endswith("It does not mention E4417, src/app_1.py.")
    assert "not mention" not in second[0]
    assert second[1] == f"{SUMMARY}\n- {BOTH} (r4)"
    assert context.offered[0].note == "r4 assistant"
    current = context.chat.session.summaries.current
    assert current is not None
    assert (current.text, current.made_by) == (second[1], MODEL)
    assert current.tokens_after == count_tokens(second[1], MODEL)


async def test_who_chooses_no_line_is_asked_again(context: PlainContext) -> None:
    context.picks = ["other", None, None]
    await run(context, "/compact")
    assert [text for _, text in context.shown] == [SUMMARY] * 2
    assert context.said == ["The summary was not used; nothing was changed."]


async def test_what_was_lost_is_listed_and_put_back_and_undone(context: PlainContext) -> None:
    context.picks = ["yes", "0"]
    await run(context, "/compact")
    await run(context, "/lost")
    current = context.chat.session.summaries.current
    assert current is not None
    assert current.text.endswith(f"- {BOTH} (r4)")
    assert context.said[-1].startswith("The summary has the line of r4 from the next request on")
    await run(context, "/lost")
    assert context.said[-1] == "The summary mentions all names, numbers and files of the messages that left."
    await run(context, "/compact undo")
    current = context.chat.session.summaries.current
    assert current is not None
    assert current.text == SUMMARY


async def test_before_anything_has_left_nothing_is_lost(context: PlainContext) -> None:
    await run(context, "/lost")
    assert context.said == ["Nothing was lost: no message has left the prompt."]


async def test_a_line_that_has_no_room_is_not_put_in(tmp_path: Path) -> None:
    context = await open_context(tmp_path)
    context.picks = ["yes", "0"]
    await run(context, "/compact")
    context.chat.session.summaries.edit(
        "Facts:\n" + "\n".join(f"- They talked of part {at}." for at in range(200))
    )
    await run(context, "/lost")
    assert "The line does not fit: the summary has ~" in context.warned[-1]


async def test_of_what_is_in_no_summary_the_message_is_shown(tmp_path: Path) -> None:
    context = await open_context(tmp_path, summarize="off", max_history_tokens=200)
    context.picks = ["0"]
    await run(context, "/lost")
    assert context.offered[0].note == "r4 assistant"
    assert context.landed == [(context.chat.session.messages[3].id, "E4417")]
    assert context.said[-1] == "r4 is not in the summary; /pin r4 keeps it in the prompt."
