"""Every request of a session can be built again from the store, and is the same to the byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rolling_chat.agent import Chat, Runtime
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.events import Outcome
from rolling_chat.sessions.records import RequestRecord, StoreError
from rolling_chat.settings.schema import ContextSettings, Settings
from tests.support.agent import Script, ScriptedProvider, call, calls, collect, make_runtime, says


async def test_every_request_has_the_hash_it_had(tmp_path: Path) -> None:
    runtime = _runtime(tmp_path, window=32_000)
    chat = Chat.open(runtime)
    for number in range(4):
        assert (await collect(chat.send(f"Question {number}")))[-1].outcome is Outcome.DONE

    records = runtime.store.requests(chat.session.info.id)
    assert len(records) == 8
    for record in records:
        assert _facts(_rebuilt(runtime, record)) == _facts(record)
    runtime.store.close()


async def test_also_where_old_turns_had_left_the_prompt(tmp_path: Path) -> None:
    runtime = _runtime(tmp_path, window=4_000)
    chat = Chat.open(runtime, rolling=True)
    for number in range(12):
        assert (await collect(chat.send(f"Question {number}")))[-1].outcome is Outcome.DONE

    records = runtime.store.requests(chat.session.info.id)
    assert chat.session.preview.report().totals() != records[0].totals
    assert any(record.plan != records[0].plan for record in records)
    for record in records:
        assert _facts(_rebuilt(runtime, record)) == _facts(record)
    runtime.store.close()


async def test_another_history_has_another_hash(tmp_path: Path) -> None:
    runtime = _runtime(tmp_path, window=32_000)
    chat = Chat.open(runtime)
    await collect(chat.send("Question"))
    first, second = runtime.store.requests(chat.session.info.id)
    assert _rebuilt(runtime, replace(first, head=second.head)).wire_hash != first.wire_hash
    runtime.store.close()


async def test_also_after_settings_tools_and_instructions_have_changed(tmp_path: Path) -> None:
    runtime = _runtime(tmp_path, window=8_000)
    chat = Chat.open(runtime, rolling=True)
    await collect(chat.send("Question"))
    (runtime.folder / "AGENTS.md").write_text("Be verbose, and rhyme.\n")
    chat.session.overrides.set("max_tool_result_tokens", "60")
    chat.session.overrides.set_rolling(False)
    await collect(chat.send("Another"))

    records = runtime.store.requests(chat.session.info.id)
    assert len({record.settings_digest for record in records}) > 1
    for record in records:
        assert _facts(_rebuilt(runtime, record)) == _facts(record)
    runtime.store.close()


async def test_what_an_older_version_sent_is_said_to_be_beyond_rebuilding(tmp_path: Path) -> None:
    runtime = _runtime(tmp_path, window=32_000)
    chat = Chat.open(runtime)
    await collect(chat.send("Question"))
    record = replace(runtime.store.requests(chat.session.info.id)[0], settings_digest="of another time")
    with pytest.raises(StoreError, match=f"{record.short} cannot be built again"):
        rebuild_request(runtime.store, record)
    runtime.store.close()


def _runtime(tmp_path: Path, *, window: int) -> Runtime:
    """A model that reads a file of some 400 tokens at every question, thinks, and answers."""
    turn: list[Script] = [
        calls(call("read_file", '{"path": "a.txt"}'), call("read_file", '{"path": "b.txt"}'), text="I look."),
        says("It says so in a.txt. " * 10, reasoning="Hm."),
    ]
    settings = Settings(context=ContextSettings(max_history_tokens=0))
    runtime = make_runtime(tmp_path, ScriptedProvider(*turn * 20), settings=settings, window=window)
    (runtime.folder / "a.txt").write_text("some words of a file\n" * 80)
    (runtime.folder / "AGENTS.md").write_text("Be brief.\n")
    return runtime


def _facts(record: RequestRecord) -> tuple[object, ...]:
    return record.wire_hash, record.estimated, record.bound, record.totals


def _rebuilt(runtime: Runtime, record: RequestRecord) -> RequestRecord:
    """The record as it would be of the request that the store builds again."""
    rebuilt = rebuild_request(runtime.store, record)
    report = rebuilt.report
    return replace(
        record,
        wire_hash=rebuilt.wire_hash,
        estimated=report.token_count,
        bound=report.bound,
        totals=report.totals(),
    )
