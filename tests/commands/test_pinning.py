"""/pin, /unpin, /exclude and /include: each says what it costs and which command takes it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.agent import Chat
from rolling_chat.commands import parse, run_command
from tests.support.commands import PlainContext
from tests.support.tui import make_chat, says


async def _context(tmp_path: Path, *picks: str | None) -> PlainContext:
    chat = make_chat(tmp_path, says("It is 8443."), says("Nothing."))
    for text in ("Which port?", "And now?"):
        async for _event in chat.send(text):
            pass
    return PlainContext(chat, picks=list(picks))


async def _run(context: PlainContext, line: str) -> None:
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context)


def _tokens(chat: Chat, *places: int) -> int:
    return sum(chat.session.preview.report().rows[place].tokens_before for place in places)


async def test_pin_says_the_price_and_what_comes_along(tmp_path: Path) -> None:
    context = await _context(tmp_path)
    await _run(context, "/pin r2")
    tokens = _tokens(context.chat, 1, 2)
    assert context.said == [
        f"Pinned r2 with its request: {tokens} tokens, always in the prompt. /unpin r2 takes it back."
    ]
    assert context.done == ["report"]
    await _run(context, "/unpin r2")
    assert context.said[-1].endswith("tokens, free to leave the prompt. /pin r2 takes it back.")
    assert not context.chat.session.pins.scope


async def test_exclude_says_what_the_next_request_becomes(tmp_path: Path) -> None:
    context = await _context(tmp_path)
    before = context.chat.session.preview.report().token_count
    await _run(context, "/exclude r2")
    after = context.chat.session.preview.report().token_count
    # without the answer the requests before and after it need one in between, which may cost more
    tokens = max(0, before - after)
    difference = f"the next request goes from ~{before:,} to ~{after:,} tokens"
    assert context.said == [
        f"Excluded r2: {tokens} tokens, no longer sent; {difference}. /include r2 takes it back."
    ]
    await _run(context, "/include r2")
    assert context.said[-1].startswith(f"Included again r2: {tokens} tokens, sent again; ")
    assert context.chat.session.preview.report().token_count == before


@pytest.mark.parametrize("line", ["/pin r9", "/exclude r9", "/unpin r2", "/include last", "/pin what?"])
async def test_what_cannot_be_done_is_one_line(tmp_path: Path, line: str) -> None:
    context = await _context(tmp_path)
    await _run(context, line)
    assert len(context.warned) == 1
    assert context.said == context.done == []


async def test_pin_alone_lists_what_is_pinned_and_excluded(tmp_path: Path) -> None:
    context = await _context(tmp_path)
    await _run(context, "/pin")
    assert context.said[-1].startswith("Nothing is pinned or excluded on this branch. /pin and /exclude take")
    await _run(context, "/pin r2")
    await _run(context, "/exclude r4")
    await _run(context, "/pin")
    rows = context.tables[-1].rows
    assert [row[:2] for row in rows] == [("r2", "◆ pinned"), ("r4", "∅ excluded")]
    assert rows[0][-1] == "It is 8443."
    context.chat.session.history.undo()
    await _run(context, "/pin")
    assert "1 more on other branches." in context.said


async def test_what_is_to_be_taken_back_is_picked_and_esc_changes_nothing(tmp_path: Path) -> None:
    context = await _context(tmp_path, None, "r2", "r4", "r4")
    await _run(context, "/unpin")
    assert context.said == ["Nothing is pinned on this branch."]
    await _run(context, "/pin r2")
    await _run(context, "/unpin")
    assert [choice.value for choice in context.offered] == ["r2"]
    assert context.chat.session.pins.scope.pinned
    await _run(context, "/unpin")
    assert not context.chat.session.pins.scope.pinned
    await _run(context, "/exclude")
    assert [choice.value for choice in context.offered] == ["r4", "r3", "r2", "r1"]
    assert context.chat.session.pins.scope.excluded == {context.chat.session.messages[3].id}
    await _run(context, "/include")
    assert not context.chat.session.pins.scope


async def test_context_marks_what_is_pinned_and_excluded_by_sign_and_word(tmp_path: Path) -> None:
    context = await _context(tmp_path)
    await _run(context, "/pin r2")
    await _run(context, "/exclude r4")
    await _run(context, "/context")
    assert context.inspected is not None
    assert [(row[0], row[3]) for row in context.inspected.tables[-1].rows] == [
        ("∅ r4", "excluded"),
        ("r3", "sent"),
        ("◆ r2", "sent, pinned"),
        ("◇ r1", "sent, stays with a pin"),
        ("r0", "sent"),
    ]
    assert list(context.inspected.indexes) == [4, 3, 2, 1, 0]
