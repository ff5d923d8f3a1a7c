"""A session of 10,000 messages: opened, searched, undone, rewound, forked, beside one of 100."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rolling_chat.agent import Chat, Runtime
from rolling_chat.messages import Message
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import Settings

_MODEL = "demo/offline"
_TIMES = 7
_WORDS = [f"word{number}" for number in range(5_000)]


def run() -> Iterator[str]:
    """Milliseconds of each move (median of seven), on 100 and on 10,000 messages."""
    small, large = _figures(100), _figures(10_000)
    yield f"{'':<28}{'100':>10}{'10,000':>12}   messages"
    for name in small:
        yield f"{name:<28}{small[name]:>7.1f} ms{large[name]:>9.1f} ms"


def _figures(size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        runtime = _runtime(home)
        store = runtime.store
        session = store.create_session(folder=folder, model=_MODEL, rolling=True, title="benchmark")
        store.append_all(session.id, _conversation(size))
        figures: dict[str, float] = {}
        chat = Chat.open(runtime, session=store.session(session.id))
        chat.session.preview.report()
        chat.session.conversation.save_counts()  # as every request does
        middle = chat.session.history.turns()[len(chat.session.history.turns()) // 2].message.id
        figures["search, all words"] = _median(lambda: chat.search("word17 word1234"))
        figures["search, 50 hits of thousands"] = _median(lambda: chat.search("answer"))
        figures["undo"] = _median(chat.session.history.undo)
        figures["redo"] = _median(chat.session.history.redo)
        figures["rewind to the middle"] = _median(
            lambda: chat.session.history.rewind(middle), chat.session.history.redo
        )
        figures["the report after a rewind"] = _median(
            chat.session.preview.report, lambda: _there_and_back(chat, middle)
        )
        figures["list the branches left"] = _median(chat.session.history.branches)
        figures["fork"] = _median(lambda: store.fork(session.id))
        chat.close()
        figures["open, and its first report"] = _median(lambda: _open(runtime, session.id))
        runtime.store.close()
        return figures


def _runtime(home: Path) -> Runtime:
    environ = {"ROLLING_CHAT_HOME": str(home), "HOME": str(home)}
    return Runtime.create(Settings(model=_MODEL), find_paths(environ), home, environ)


def _open(runtime: Runtime, session: str) -> None:
    chat = Chat.open(runtime, session=runtime.store.session(session))
    chat.session.preview.report()
    chat.close()


def _there_and_back(chat: Chat, message: str) -> None:
    chat.session.history.rewind(message)
    chat.session.history.redo()


def _conversation(size: int) -> list[Message]:
    rng = random.Random(size)
    return [
        Message("assistant" if number % 2 else "user", f"{'answer' if number % 2 else 'question'} {number}: "
                + " ".join(rng.choices(_WORDS, k=60)))
        for number in range(size)
    ]  # fmt: skip


def _median(work: Callable[[], object], after: Callable[[], object] = lambda: None) -> float:
    times = []
    for _ in range(_TIMES):
        started = time.perf_counter()
        work()
        times.append(1_000 * (time.perf_counter() - started))
        after()
    return statistics.median(times)
