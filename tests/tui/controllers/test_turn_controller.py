"""Keys that come in one burst mean what they would mean one by one."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual import events

from rolling_chat.providers.protocol import ErrorKind, ProviderError, TextDelta
from rolling_chat.settings.schema import AgentSettings, ModelSettings, Settings
from rolling_chat.tui.widgets.prompt_box import PromptBox
from tests.support.tui import (
    MODEL,
    idle,
    make_app,
    make_chat,
    reads,
    says,
    screen_of,
    transcript,
    type_line,
    wait_until,
)


async def test_what_is_entered_right_behind_a_message_waits_and_is_sent_after_it(tmp_path: Path) -> None:
    gate = asyncio.Event()
    chat = make_chat(tmp_path, [TextDelta("one"), gate, *says("one")[1:]], says("two"))
    async with make_app(chat, tmp_path).run_test() as pilot:
        await reads(pilot, "rolling: off")
        for key, character in (("a", "a"), ("enter", "\r"), ("b", "b"), ("enter", "\r")):
            pilot.app.post_message(events.Key(key, character))
        await reads(pilot, "▍ one", "↳ with the next result: b")
        assert [message.text for message in chat.waiting] == ["b"]
        gate.set()
        await wait_until(pilot, lambda: len(chat.session.messages) == 4)
        await idle(pilot)
        assert [message.text for message in chat.session.messages] == ["a", "one", "b", "two"]
        assert "still answering" not in transcript(pilot)


async def test_a_command_typed_fast_leaves_nothing_of_it_in_the_gauge(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path, says("1")), tmp_path).run_test() as pilot:
        await reads(pilot, "rolling: off")
        screen = screen_of(pilot)
        await type_line(pilot, "word " * 300)
        await idle(pilot)
        await type_line(pilot, "/undo")
        await wait_until(pilot, lambda: screen._meter.draft_tokens)
        box = screen.query_one(PromptBox)
        for key in "/redo":
            box.post_message(events.Key("slash" if key == "/" else key, key))
        box.post_message(events.Key("enter", "\r"))
        await wait_until(pilot, lambda: len(screen.chat.session.messages) == 2)
        await wait_until(pilot, lambda: screen._meter.reading().draft == 0)


async def test_header_and_gauge_are_those_of_the_fallback_that_answers(tmp_path: Path) -> None:
    settings = Settings(
        model=MODEL, fallback=("openai/spare",), agent=AgentSettings(sandbox="off"),
        models={"openai/spare": ModelSettings(max_input_tokens=77_000)},
    )  # fmt: skip
    busy = [ProviderError(ErrorKind.OVERLOADED, "openai is overloaded (529).")]
    chat = make_chat(tmp_path, busy, says("Here."), settings=settings)
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await reads(pilot, MODEL, "/ 128k")
        await type_line(pilot, "hello")
        await reads(pilot, "Here.", "openai/spare answers instead", "/ 77k", "openai/spare · ")
        await idle(pilot)
        assert MODEL not in screen_of(pilot).query_one("Header").render().plain
