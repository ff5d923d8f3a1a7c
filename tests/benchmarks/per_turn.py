"""Processor time of one more turn in sessions of 100 to 100,000 messages, rolling on, without a screen.

A turn is a question, a call of a tool with its result, and the answer: two requests, the summary that may
be due behind them, and the report of the next request. The first turn of a session without a summary is
measured by itself, with all passes that it needs. The model is scripted, so that nothing of a wire is
in the figures; messages are those of the screen's benchmarks. What is read and counted when a session is
opened comes before.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from rolling_chat.agent import Chat, Runtime
from rolling_chat.messages import Message
from rolling_chat.sessions.records import StoredSummary
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.schema import Settings
from tests.benchmarks.screen.sessions import conversation
from tests.support.agent import MODEL, ScriptedProvider, call, calls, make_runtime, says

SIZES = (100, 1_000, 10_000, 100_000)
_TURNS = 12
_WARM = 3  # turns before it is measured
_WINDOW = 128_000
_UNSUMMARIZED = 20  # messages


def run() -> Iterator[str]:
    """A line a size: the median turn and the worst, and each median against the first."""
    first = 0.0
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            times = asyncio.run(_turns(Path(folder), size))
        median = statistics.median(times)
        first = first or median
        with tempfile.TemporaryDirectory() as folder:
            (alone,) = asyncio.run(_turns(Path(folder), size, is_summarized=False))
        beside = f"{median / first:.2f} times the first"
        caught_up = f"the first without a summary {alone:6.1f}"
        yield f"{size:>7,} messages: {median:6.1f} ms a turn, worst {max(times):6.1f}, {beside}; {caught_up}"


async def _turns(folder: Path, size: int, *, is_summarized: bool = True) -> list[float]:
    answer = says("I have looked. " * 40)
    turns = ((calls(call("list_files", id=f"look{number}")), answer) for number in range(_TURNS + _WARM))
    provider = ScriptedProvider(*chain.from_iterable(turns))
    settings = Settings()
    settings = replace(settings, context=replace(settings.context, enabled=True, summarize="extract"))
    runtime = make_runtime(folder, provider, settings=settings, window=_WINDOW)
    try:
        return await _measured(runtime, size, is_summarized=is_summarized)
    finally:
        runtime.store.close()


async def _measured(runtime: Runtime, size: int, *, is_summarized: bool) -> list[float]:
    store = runtime.store
    info = store.create_session(folder=str(runtime.folder), model=MODEL, rolling=True, title=f"{size:,}")
    store.append_all(info.id, list(conversation(size)))
    if is_summarized:
        _summarize(store, info.id, store.branch(info.id))
    chat = Chat.open(runtime, session=store.session(info.id))
    await chat.session.preview.ready()
    times = []
    for number in range(_TURNS + _WARM if is_summarized else 1):
        began = time.process_time()
        async for _ in chat.send(f"Question {number}, what now?"):
            pass
        await chat.session.summaries.settled()
        await chat.session.preview.ready()
        times.append(1_000 * (time.process_time() - began))
    chat.close()
    return times[_WARM:] if is_summarized else times


def _summarize(store: SessionStore, session: str, stored: Sequence[Message]) -> None:
    """Publish a summary of all but the newest messages: to catch up is not what is measured."""
    *_, last = (index for index, message in enumerate(stored[:-_UNSUMMARIZED]) if message.role == "user")
    summary = StoredSummary(
        text="The user asked questions; the files were looked at.", through=stored[last - 1].id, digest="",
        made_by="extract", made_from=0, tokens_before=10_000, tokens_after=100, place=last,
    )  # fmt: skip
    store.publish_summary(session, summary, expected=0)
