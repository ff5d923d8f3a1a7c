"""/effort changes how much the model may think, for this session."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rolling_chat.commands import parse, run_command
from rolling_chat.settings.catalog import ModelCatalog
from tests.support.commands import PlainContext
from tests.support.tui import MODEL, make_chat, says


def _context(folder: Path, *, reasons: bool) -> PlainContext:
    chat = make_chat(folder, says("yes"))
    entry = {"mode": "chat", "max_input_tokens": 32_000, "supports_reasoning": reasons}
    runtime = chat._runtime
    runtime.catalog = ModelCatalog({MODEL: entry})
    return PlainContext(chat)


async def _run(context: PlainContext, line: str) -> None:
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context)


async def test_requests_ask_for_it_and_reserve_room_for_the_thoughts(tmp_path: Path) -> None:
    context = _context(tmp_path, reasons=True)
    setup = context.chat.session.setup
    before = setup.config.reserved_output_tokens
    await _run(context, "/effort high")
    assert (setup.effort, setup.config.reserved_output_tokens - before) == ("high", 4_096)
    assert context.said[-1].startswith("Reasoning effort of this session: high; ")
    async for _ in context.chat.send("hello"):
        pass
    assert context.chat._runtime.provider.requests[-1].effort == "high"
    await _run(context, "/effort default")
    assert setup.effort == ""


async def test_a_model_that_does_not_reason_is_sent_none(tmp_path: Path) -> None:
    context = _context(tmp_path, reasons=False)
    await _run(context, "/effort high")
    assert context.chat.session.setup.effort == ""
    assert context.warned == [f"{MODEL} does not reason; the effort counts for a model that does."]


async def test_another_word_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    context = _context(tmp_path, reasons=True)
    await _run(context, "/effort much")
    assert context.warned[0].startswith("/effort takes default, none, minimal, low, medium, high")


async def test_the_setting_of_the_model_counts_until_then(tmp_path: Path) -> None:
    context = _context(tmp_path, reasons=True)
    runtime = context.chat._runtime
    models = {MODEL: replace(runtime.settings.for_model(MODEL), reasoning_effort="low")}
    runtime.settings = replace(runtime.settings, models=models)
    assert context.chat.session.setup.effort == "low"
    await _run(context, "/effort none")
    assert context.chat.session.setup.effort == "none"


async def test_a_session_keeps_it_when_it_is_resumed_and_its_fork_too(tmp_path: Path) -> None:
    context = _context(tmp_path, reasons=True)
    chat = context.chat
    async for _ in chat.send("hello"):
        pass
    await _run(context, "/effort high")
    first = chat.session.info.id
    chat.fork()
    assert chat.session.setup.effort == "high"
    chat.start_new()
    assert chat.session.setup.effort == ""
    chat.resume(first)
    assert chat.session.setup.effort == "high"
    await _run(context, "/effort default")
    chat.start_new()
    chat.resume(first)
    assert chat.session.setup.effort == "", "its default was chosen"


async def test_more_than_a_model_takes_is_the_most_that_it_takes(tmp_path: Path) -> None:
    context = _context(tmp_path, reasons=True)
    context.chat.session.set_model("gemini/gemini-3-pro-preview")
    await _run(context, "/effort max")
    assert context.chat.session.setup.effort == "high"
    assert "high (gemini/gemini-3-pro-preview takes no more)" in context.said[-1]
