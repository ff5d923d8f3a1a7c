"""The gauge and /context show one report: the same figures after every kind of event, and in its midst."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from textual.pilot import Pilot

from rolling_chat import figures
from rolling_chat.agent import Chat
from rolling_chat.context.report import PromptReport
from rolling_chat.messages import Message, Usage
from rolling_chat.providers.protocol import Finished, TextDelta, ToolCallDelta
from rolling_chat.settings.schema import ContextSettings, ModelSettings, Settings
from rolling_chat.tui.controllers import painting
from rolling_chat.tui.dialogs.inspector import InspectorScreen
from rolling_chat.tui.widgets.gauge import Gauge
from tests.support.tui import (
    MODEL,
    Reply,
    calls,
    idle,
    make_app,
    make_chat,
    reads,
    says,
    screen_of,
    shown,
    tells,
    thinks,
    transcript,
    type_line,
    wait_until,
)

WIDE = (160, 40)
Do = Callable[[Pilot[None]], Awaitable[None]]


@dataclass(frozen=True)
class Figures:
    """What either of them shows."""

    used: str
    percent: str
    turns: str
    rolling: str
    left_out: str
    cost: str


def _on_gauge(pilot: Pilot[None]) -> Figures:
    (line,) = [row for row in shown(pilot).split("\n") if "rolling: o" in row and " / " in row]
    size = re.search(r"(~?[\d.]+[kM]?)(?: ±\d+%)? / [\d.]+[kM]?  (<?\d+ %)", line)
    assert size, line
    return Figures(size[1], size[2], *_words(line), _found(r"(\$[\d.]+)", line))


def _in_context(pilot: Pilot[None]) -> Figures:
    text = " ".join(" ".join(shown(pilot).replace("│", " ").split()).split())
    size = re.search(r"the next request is (~?)([\d,]+)(?: ±\d+%)? of [\d,]+ tokens, (<?\d+ %)", text)
    assert size, text
    total = int(size[2].replace(",", ""))
    names = ("system prompt", "tools", "summary", "history", "current turn", "draft")
    parts = [int(_found(rf"{name} ([\d,]+) ", text).replace(",", "")) for name in names]
    told = ("notes", "names of what left")  # rows of their own, if there are any
    parts += [int((_found(rf"{name} ([\d,]+) ", text) or "0").replace(",", "")) for name in told]
    assert sum(parts) == total
    return Figures(
        size[1] + figures.tokens(total), size[3], *_words(text.replace("context is", "rolling:")),
        _found(r"the session has cost (\$[\d.]+)", text),
    )  # fmt: skip


def _words(text: str) -> tuple[str, str, str]:
    turns = _found(r"(≈ [\d.k]+ turns? left|<1 turn left)", text)
    left_out = _found(r"([\d,]+) (?:messages? )?left out", text)
    return turns, _found(r"rolling: (on|off)", text), left_out


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1] if match else ""


async def _agree(pilot: Pilot[None]) -> Figures:
    """Both show the same, and go on to after the inspector is closed."""
    await _painted(pilot)
    gauge = _on_gauge(pilot)
    await pilot.press("ctrl+g")
    await wait_until(
        pilot, lambda: isinstance(pilot.app.screen, InspectorScreen) and "safety margin" in shown(pilot)
    )
    assert _in_context(pilot) == gauge
    await pilot.press("escape")
    await wait_until(pilot, lambda: pilot.app.screen is screen_of(pilot))
    await _painted(pilot)
    assert _on_gauge(pilot) == gauge
    return gauge


async def _painted(pilot: Pilot[None]) -> None:
    screen = screen_of(pilot)
    # a text that came back into the box is counted a moment later
    await wait_until(pilot, lambda: not screen.prompt.text.strip() or screen._meter.draft_tokens)
    # a summary that is made in the background has its price
    await wait_until(pilot, lambda: not screen.chat.session.summaries.busy)
    await wait_until(pilot, lambda: screen.query_one(Gauge)._report is not None)
    await pilot.pause()
    await wait_until(pilot, lambda: screen.query_one(Gauge)._report == screen._meter.reading())
    await pilot.pause()


def _settings(**context: object) -> Settings:
    window = {MODEL: ModelSettings(max_input_tokens=8192)}
    return Settings(model=MODEL, models=window, context=ContextSettings(**context))  # type: ignore[arg-type]


def _answers(count: int, words: int = 60) -> list[Reply]:
    return [says("word " * words + f"of answer {at}", usage=Usage(cost=0.02)) for at in range(count)]


async def _talk(pilot: Pilot[None], turns: int) -> None:
    for at in range(turns):
        await type_line(pilot, f"question {at}")
        await idle(pilot)


_UNDO = ("/undo", "Took back turn 3; 2 turns left.")
_ON = ("/rolling-context on", "Rolling context is on:")
_LEAST_HISTORY = ("/rolling-context set max_history_tokens 150", "For this session, max_history_tokens")


def _lines(*lines: tuple[str, str]) -> Do:
    """Lines that are sent, each with what the transcript says once it has done its work."""

    async def do(pilot: Pilot[None]) -> None:
        for line, words in lines:
            assert words not in transcript(pilot)
            await type_line(pilot, line)
            await tells(pilot, words)
            await idle(pilot)

    do.__name__ = ", ".join(line for line, _ in lines)
    return do


async def _draft(pilot: Pilot[None]) -> None:
    screen_of(pilot).prompt.put("a draft of some words " * 20)
    await reads(pilot, "this message +")


async def _nothing(pilot: Pilot[None]) -> None:
    await idle(pilot)


@pytest.mark.parametrize(
    "do",
    [
        _nothing,
        _draft,
        _lines(_UNDO),
        _lines(_UNDO, ("/redo", "Back where you were: 6 messages on this branch.")),
        _lines(("/model demo/offline", "demo/offline")),
        _lines(_ON),
        _lines(_ON, _LEAST_HISTORY),
        _lines(_LEAST_HISTORY, _ON, ("and now?", "of answer 3")),
        _lines(("/pin r1", "Pinned r1")),
        _lines(("/exclude r2", "Excluded r2")),
        _lines(("/new", "A new session. The one before is kept:")),
        _lines(("/retry", "of answer 3")),
        _lines(("/rewind 2", "Back to before turn 2:")),
        _lines(("/fork", "This is a copy of session")),
    ],
    ids=lambda do: getattr(do, "__name__", ""),
)
async def test_they_agree_after(tmp_path: Path, do: Do) -> None:
    chat = make_chat(tmp_path, *_answers(6), settings=_settings())
    async with make_app(chat, tmp_path).run_test(size=WIDE) as pilot:
        await reads(pilot, "/ 8.2k")
        if do is _nothing:
            await _agree(pilot)
        await _talk(pilot, 3)
        await do(pilot)
        await _agree(pilot)


async def test_they_agree_under_a_summary(tmp_path: Path) -> None:
    settings = _settings(enabled=True, max_history_tokens=900, summarize="extract", preserve_recent_turns=1)
    facts = [says(*(f"Port {at}{n} is open in src/part_{n}.py. " for n in range(30))) for at in range(9)]
    chat = make_chat(tmp_path, *facts, settings=settings)
    async with make_app(chat, tmp_path).run_test(size=WIDE) as pilot:
        await _talk(pilot, 9)
        await wait_until(pilot, lambda: not screen_of(pilot).state.is_summarizing)
        assert (await _agree(pilot)).left_out
        assert chat.session.preview.report().summary


@pytest.mark.parametrize("rolling", [False, True])
async def test_they_agree_right_after_a_resume_and_with_what_was_shown_before(
    tmp_path: Path, rolling: bool
) -> None:
    settings = _settings(enabled=rolling, max_history_tokens=400)
    chat = make_chat(tmp_path, *_answers(6), settings=settings)
    async with make_app(chat, tmp_path).run_test(size=WIDE) as pilot:
        await _talk(pilot, 6)
        before = await _agree(pilot)
    session = chat.session.info.id
    again = Chat.open(chat._runtime, session=chat._runtime.store.session(session))
    async with make_app(again, tmp_path).run_test(size=WIDE) as pilot:
        await reads(pilot, "/ 8.2k")
        assert await _agree(pilot) == before
        assert before.used.startswith("~"), "the model has confirmed nothing"


async def test_after_a_resume_a_count_is_an_estimate_or_the_one_that_was_confirmed(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("word " * 60, usage=Usage(700, 60)), settings=_settings())
    async with make_app(chat, tmp_path).run_test(size=WIDE) as pilot:
        await _talk(pilot, 1)
        before = await _agree(pilot)
    assert not before.used.startswith("~")
    again = Chat.open(chat._runtime, session=chat._runtime.store.session(chat.session.info.id))
    async with make_app(again, tmp_path).run_test(size=WIDE) as pilot:
        await reads(pilot, "/ 8.2k")
        after = await _agree(pilot)
    assert after.used.startswith("~") or after.used == before.used


def _forming(gate: asyncio.Event) -> Reply:
    pieces = [ToolCallDelta(0, "c", "read_file", ""), ToolCallDelta(0, "", "", '{"path": "' + "x" * 2000)]
    return [*pieces, gate, Finished(Message("assistant", "I gave up."), Usage())]


@pytest.mark.parametrize("kind", ["asked", "text", "thought", "call", "tool", "second text", "queued"])
async def test_they_agree_while_a_turn_runs(tmp_path: Path, kind: str) -> None:
    gate, lexer = asyncio.Event(), tmp_path / "a.txt"
    lexer.write_text("a line of it\n" * 300)
    read = calls("read_file", path="a.txt")
    held: dict[str, Sequence[Reply]] = {
        "asked": [[gate, *says("ok")]],
        "text": [[TextDelta("word " * 300), gate, *says("word " * 300)[1:]]],
        "thought": [thinks("well " * 300, [gate, *says("ok")])],
        "call": [_forming(gate)],
        "tool": [read, [gate, *says("read")]],
        "second text": [read, [TextDelta("word " * 300), gate, *says("word " * 300)[1:]]],
        "queued": [[TextDelta("word " * 300), gate, *says("word " * 300)[1:]], says("ok")],
    }
    chat = make_chat(tmp_path, *held[kind], folder=tmp_path, settings=_settings())
    async with make_app(chat, tmp_path).run_test(size=WIDE) as pilot:
        await reads(pilot, "/ 8.2k")
        before = screen_of(pilot).query_one(Gauge)._report
        await type_line(pilot, "go")
        provider = chat._runtime.provider
        await wait_until(pilot, lambda: len(provider.requests) == len(held[kind]) - (kind == "queued"))
        # what is thought is not sent back to this model
        least = {"asked": 1, "thought": 1}.get(kind, 250)
        assert before is not None
        gauge, small = screen_of(pilot).query_one(Gauge), before.used + least
        await wait_until(pilot, lambda: gauge._report is not None and gauge._report.used >= small)
        if kind == "queued":
            await type_line(pilot, "and then " * 30)
        during = await _agree(pilot)
        assert during.used.startswith("~")
        gate.set()
        await idle(pilot)
        await _agree(pilot)


async def test_it_never_jumps_back_while_a_turn_with_tools_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(painting, "_ROWS_EVERY", 0.0)  # so that every frame has its figure
    (tmp_path / "a.txt").write_text("ok")
    gates: list[asyncio.Event] = []

    def gate() -> asyncio.Event:
        gates.append(asyncio.Event())
        return gates[-1]

    called = calls("read_file", text="I look. ", path="a.txt")[-1]
    assert isinstance(called, Finished)
    forming = [ToolCallDelta(0, "c", "read_file", ""), gate(), ToolCallDelta(0, "", "", '{"path": "a.txt"}')]
    words = ["some words of it, and ", "più è meglio, 中文 ", "more_of_them();\n"] * 12
    replies: list[Reply] = [
        [gate(), TextDelta("I look. "), gate(), *forming, gate(), Finished(called.message, Usage())],
        [gate(), *(step for word in words for step in (TextDelta(word), gate()))],
    ]
    replies[1] = [*replies[1], Finished(Message("assistant", "".join(words)), Usage())]
    seen: list[int] = []
    frames = 0
    chat = make_chat(tmp_path, *replies, folder=tmp_path, settings=_settings())
    async with make_app(chat, tmp_path).run_test(size=WIDE) as pilot:
        await reads(pilot, "/ 8.2k")
        screen = screen_of(pilot)
        gauge, show = screen.query_one(Gauge), Gauge.show

        def watch(report: PromptReport | None, usage: Usage, mode: str = "", cache: str = "") -> None:
            nonlocal frames
            frames += 1
            if report is not None and (not seen or seen[-1] != report.used):
                seen.append(report.used)
            show(gauge, report, usage, mode, cache)

        gauge.show = watch  # type: ignore[method-assign]
        screen.prompt.put("look at a.txt, please")
        await reads(pilot, "this message +")
        await pilot.press("enter")
        for one in gates:
            soon = frames + 2  # whatever came of the step before is painted
            await wait_until(pilot, lambda soon=soon: frames >= soon)  # type: ignore[misc]
            one.set()
        await reads(pilot, "done in")
        await idle(pilot)
    # words that join those before them may be fewer tokens than they were apart
    assert all(after >= before - 2 for before, after in pairwise(seen)), seen
    assert len(seen) > 20


@pytest.mark.parametrize(
    ("rolling", "words", "says_so"),
    [
        (True, 20, "this message +2"),
        (True, 2400, "messages leave"),
        (True, 40_000, "does not fit"),
        (False, 20, "this message +2"),
        (False, 40_000, "does not fit"),
    ],
)
async def test_the_draft_says_what_it_pushes_out(
    tmp_path: Path, rolling: bool, words: int, says_so: str
) -> None:
    chat = make_chat(tmp_path, *_answers(6, 200), settings=_settings(enabled=rolling, max_history_tokens=0))
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await _talk(pilot, 6)
        screen_of(pilot).prompt.put("word " * words)
        await reads(pilot, says_so)
        if words == 20:
            assert "leave" not in shown(pilot)
            assert "does not fit" not in shown(pilot)


@pytest.mark.parametrize(("columns", "words"), [(40, "does not fit"), (60, "tokens · does not fit")])
async def test_what_a_draft_does_is_said_in_any_width(tmp_path: Path, columns: int, words: str) -> None:
    chat = make_chat(tmp_path, *_answers(1), settings=_settings())
    async with make_app(chat, tmp_path).run_test(size=(columns, 20)) as pilot:
        await _talk(pilot, 1)
        screen_of(pilot).prompt.put("word " * 9000)
        await reads(pilot, words)


async def test_a_price_that_is_unknown_is_on_neither(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("free?", usage=Usage(100, 20)), settings=_settings())
    async with make_app(chat, tmp_path).run_test(size=WIDE) as pilot:
        await _talk(pilot, 1)
        assert (await _agree(pilot)).cost == ""
        assert "$" not in shown(pilot)
