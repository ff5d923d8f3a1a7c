"""The window that the model's server names is the one that is planned with, from the first request on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.agent import Chat
from rolling_chat.events import Noticed, PromptPlanned
from rolling_chat.settings.schema import ModelSettings
from tests.support.agent import ScriptedProvider, collect, make_runtime, of_kind, says
from tests.support.json_server import JsonServer, json_server

LISTED = {"data": [{"id": "tiny", "max_model_len": 8_192}]}


@pytest.fixture
def server() -> Iterator[JsonServer]:
    with json_server({"/v1/models": LISTED}) as running:
        yield running


def _chat(folder: Path, address: str, **model: Any) -> Chat:
    name = "openai/tiny"
    runtime = make_runtime(folder, ScriptedProvider(says("one"), says("two")))
    models = {name: ModelSettings(api_base=f"{address}/v1", **model)}
    runtime.settings = replace(runtime.settings, model=name, models=models)
    return Chat.open(runtime)


async def test_the_first_request_is_planned_for_the_window_that_the_server_names(
    tmp_path: Path, server: JsonServer
) -> None:
    chat = _chat(tmp_path, server.address)
    assert not any("window" in line for line in chat.session.notices)
    events = await collect(chat.send("hello"))
    assert [one.report.window for one in of_kind(events, PromptPlanned)] == [8_192]
    assert [one.text for one in of_kind(events, Noticed)] == [
        "The window of openai/tiny is 8,192 tokens (from its list of models)."
    ]
    asked = len(server.asked)
    assert of_kind(await collect(chat.send("and again")), Noticed) == []
    assert len(server.asked) == asked


async def test_a_window_of_the_users_own_beats_that_of_the_server(tmp_path: Path, server: JsonServer) -> None:
    chat = _chat(tmp_path, server.address, max_input_tokens=16_384)
    events = await collect(chat.send("hello"))
    assert [one.report.window for one in of_kind(events, PromptPlanned)] == [16_384]
    assert of_kind(events, Noticed) == []


async def test_where_the_server_says_nothing_the_window_is_assumed_and_a_line_says_so(tmp_path: Path) -> None:
    chat = _chat(tmp_path, "http://127.0.0.1:9")
    events = await collect(chat.send("hello"))
    assert [one.report.window for one in of_kind(events, PromptPlanned)] == [128_000]
    assert "128,000 tokens are assumed" in of_kind(events, Noticed)[0].text
