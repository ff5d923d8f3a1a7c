"""A turn costs the same however long its session is."""

from __future__ import annotations

import itertools
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from rolling_chat.agent import Chat, conversation
from rolling_chat.messages import Message
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.schema import Settings
from tests.support.agent import MODEL, ScriptedProvider, call, calls, collect, make_runtime, says

SHORT, LONG = 400, 3_400  # messages
_WARM, _TURNS = 6, 5


@pytest.fixture(autouse=True)
def packed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "_PLAIN", 100)
    monkeypatch.setattr(conversation, "_SLICE", 50)
    monkeypatch.setattr(conversation, "_MAX_PACKED", 100)


async def _costs(folder: Path, size: int) -> tuple[int, int]:
    """Return the bytes that a turn has allocated at most, and SQLite's steps, both of the cheapest turn."""
    turns = [(calls(call("list_files")), says("I have looked.", tokens=2_000))] * (_WARM + _TURNS)
    settings = Settings()
    rolling = replace(settings.context, enabled=True, summarize="extract")
    provider = ScriptedProvider(*itertools.chain.from_iterable(turns))
    runtime = make_runtime(folder, provider, settings=replace(settings, context=rolling), window=9_000)
    made = runtime.store.create_session(folder=str(runtime.folder), model=MODEL, rolling=True, title="said")
    said = (Message("user", "What now?"), Message("assistant", "This."))
    runtime.store.append_all(made.id, said * (size // 2))
    chat = Chat.open(runtime, session=runtime.store.session(made.id))
    await chat.session.preview.ready()

    costs = [await _cost_of_turn(chat, runtime.store) for _ in range(_WARM + _TURNS)][_WARM:]
    chat.close()
    runtime.store.close()
    return min(memory for memory, _ in costs), min(steps for _, steps in costs)


async def _cost_of_turn(chat: Chat, store: SessionStore) -> tuple[int, int]:
    connection, steps = store._database._connection, itertools.count()
    connection.set_progress_handler(lambda: int(next(steps) < 0), 100)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        await collect(chat.send("And now?"))
        await chat.session.summaries.settled()
        await chat.session.preview.ready()
        return tracemalloc.get_traced_memory()[1] - before, next(steps)
    finally:
        tracemalloc.stop()
        connection.set_progress_handler(None, 0)


async def test_a_turn_copies_no_branch_and_reads_no_more_of_the_store(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    memory, steps = await _costs(tmp_path_factory.mktemp("short"), SHORT)
    more_memory, more_steps = await _costs(tmp_path_factory.mktemp("long"), LONG)
    assert more_memory - memory < 8 * (LONG - SHORT)  # a copy of the branch has eight bytes for each message
    assert more_steps < 1.5 * steps
