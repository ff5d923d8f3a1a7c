"""/rolling-context against a real chat: on and off in mid-session, settings tried, set and taken back."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest

from rolling_chat.agent import Chat
from rolling_chat.commands import parse, run_command
from rolling_chat.context.report import Fate
from rolling_chat.settings.schema import ContextSettings, ModelSettings, Settings
from tests.support.commands import PlainContext
from tests.support.tui import MODEL, make_chat, says

_QUESTION = "What of this? " * 100


async def test_status_when_off_says_what_would_leave_now(tmp_path: Path) -> None:
    context = await _long_session(tmp_path)
    await _run(context, "/rolling-context status")
    (line,) = context.said
    assert line.startswith("Rolling context is off")
    assert "messages omitted in the next request" in line
    assert not context.chat.session.rolling


async def test_on_and_off_in_mid_session_take_the_plan_up_and_lay_it_aside(tmp_path: Path) -> None:
    context = await _long_session(tmp_path, rolling=True)
    chat = context.chat
    rolled = _fates(chat)
    assert Fate.OMITTED in rolled
    await _run(context, "/rolling-context off")
    assert Fate.OMITTED not in _fates(chat)
    await _run(context, "/rolling-context on")
    assert _fates(chat) == rolled
    assert "messages omitted, and kept on disk" in context.said[-1]


async def test_preview_shows_what_would_leave_and_changes_nothing(tmp_path: Path) -> None:
    context = await _long_session(tmp_path)
    before = _fates(context.chat)
    await _run(context, "/rolling-context preview")
    assert context.said[0] == "What would leave the next request"
    assert context.said[1].startswith("Rolling context on: ")
    assert {row[3].split(" ")[0] for row in context.tables[0].rows} == {"omitted"}
    assert not context.chat.session.rolling
    assert _fates(context.chat) == before


async def test_preview_under_another_setting(tmp_path: Path) -> None:
    context = await _long_session(tmp_path)
    await _run(context, "/rolling-context preview max_history_tokens=0 trim_to=1.0")
    (line,) = context.said
    assert line.startswith(
        "Rolling context on with max_history_tokens = 0 with trim_to = 1.0: nothing leaves"
    )
    assert line.endswith("Nothing was changed.")
    await _run(context, "/rolling-context preview much")
    assert context.warned == ["/rolling-context preview takes settings as KEY=VALUE, not 'much'."]
    assert await _cap(context.chat) == 2_000


@pytest.mark.parametrize(
    "spelt", ["max_history_tokens 0", "max_history_tokens=0", "context.max_history_tokens = 0"]
)
async def test_set_brings_back_what_there_is_room_for_at_once(tmp_path: Path, spelt: str) -> None:
    context = await _long_session(tmp_path, rolling=True)
    gone = context.chat.session.preview.report().count(Fate.OMITTED)
    await _run(context, f"/rolling-context set {spelt}")
    assert context.said[0].startswith(
        f"For this session, max_history_tokens is 0, it was 2000: {gone} messages come back; "
    )
    assert context.chat.session.preview.report().count(Fate.OMITTED) == 0
    assert context.done[-1] == "report"


async def test_a_smaller_cap_takes_more_and_what_had_left_stays_away(tmp_path: Path) -> None:
    context = await _long_session(tmp_path, rolling=True)
    gone = _omitted(context.chat)
    await _run(context, "/rolling-context set max_history_tokens 700")
    # the first request may come back where what pushed it out no longer fits either
    assert gone - {1} < _omitted(context.chat)
    assert "leave" in context.said[0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("set max_history_tokens -1", 'max_history_tokens = -1: must be "auto" or a whole number from 0'),
        ("set max_histroy_tokens 1", "did you mean context.max_history_tokens?"),
        ("set trim_to 2", "must be a number above 0 and at most 1"),
        ("set tools.read_file.truncation middle", 'must be one of "auto", "head", "tail", "both"'),
        ("set max_history_tokens", "set takes a key and a value"),
        ("set", "set takes a key and a value"),
        ("set tools 1", "unknown key"),
        ("set . 1", "unknown key"),
        ("preview trim_to=2", "must be a number above 0 and at most 1"),
        ("undo", "There is nothing to undo"),
        ("on now", "takes on, off, status, preview, set or undo"),
    ],
)
async def test_what_cannot_be_done_is_one_line_and_changes_nothing(
    tmp_path: Path, line: str, said: str
) -> None:
    context = PlainContext(make_chat(tmp_path))
    before = context.chat.session.preview.report()
    await _run(context, f"/rolling-context {line}")
    (warned,) = context.warned
    assert said in warned
    assert "\n" not in warned
    assert context.chat.session.preview.report() == before


async def test_one_tool_and_the_switch_itself_can_be_set(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    await _run(context, "/rolling-context set tools.read_file.truncation both")
    assert 'tools.read_file.truncation is "both", it was ""' in context.said[0]
    await _run(context, "/rolling-context set enabled true")
    assert context.chat.session.rolling
    assert context.chat.session.info.rolling


async def test_undo_takes_changes_back_the_last_one_first(tmp_path: Path) -> None:
    context = await _long_session(tmp_path)
    chat = context.chat
    start = _fates(chat)
    await _run(context, "/rolling-context on")
    rolled = _fates(chat)
    await _run(context, "/rolling-context on")  # no change, nothing to undo
    await _run(context, "/rolling-context set max_history_tokens 0")
    context.said.clear()
    await _run(context, "/rolling-context undo")
    assert _fates(chat) == rolled
    await _run(context, "/rolling-context undo")
    assert _fates(chat) == start
    assert context.said == [
        "Undone: max_history_tokens is 2000 again.",
        "Undone: rolling context is off again.",
    ]
    await _run(context, "/rolling-context undo")
    assert len(context.warned) == 1


async def test_undo_returns_to_the_plan_before_the_change(tmp_path: Path) -> None:
    context = await _long_session(tmp_path, rolling=True)
    before = _omitted(context.chat)
    await _run(context, "/rolling-context set max_history_tokens 700")
    await _say(context.chat, "and?")
    assert before - {1} < _omitted(context.chat)
    await _run(context, "/rolling-context undo")
    assert _omitted(context.chat) >= before
    assert len(_omitted(context.chat)) < len(context.chat.session.messages) - 4


async def _long_session(home: Path, *, rolling: bool = False) -> PlainContext:
    """Twelve turns of some 400 tokens with a cap of 2,000 on history."""
    settings = Settings(
        model=MODEL,
        models=MappingProxyType({MODEL: ModelSettings(max_input_tokens=32_000)}),
        context=ContextSettings(enabled=rolling, max_history_tokens=2_000, summarize="off"),
    )
    chat = make_chat(home, *[says("It is so. " * 30)] * 16, settings=settings)
    for _ in range(12):
        await _say(chat, _QUESTION)
    return PlainContext(chat)


async def _say(chat: Chat, text: str) -> None:
    async for _ in chat.send(text):
        pass


async def _run(context: PlainContext, line: str) -> None:
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context)


def _fates(chat: Chat) -> list[Fate]:
    return [row.fate for row in chat.session.preview.report().rows]


def _omitted(chat: Chat) -> set[int]:
    return {row.index for row in chat.session.preview.report().rows if row.fate is Fate.OMITTED}


async def _cap(chat: Chat) -> int:
    return (await chat.session.overrides.preview()).history_budget
