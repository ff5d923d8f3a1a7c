"""Sessions of many messages, built straight in the store."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator

from rolling_chat.messages import MadeBy, Message, ToolCall
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.paths import find_paths
from tests.benchmarks.screen.windows import Desk
from tests.support.answers import mixed_markdown
from tests.support.mixed_text import mixed_text
from tests.support.program import program_environment

LAST_WORDS = "These are the last words."
_MADE_BY = MadeBy("demo", "demo/offline")
_KINDS = 200  # different texts; a session says them again and again
_CHUNK = 5_000  # messages a transaction


def build_session(
    place: Desk, messages: int, said: Iterable[Message] | None = None, *, rolling: bool = True
) -> str:
    """A session of so many messages, some 600 characters each, one in five with a tool; returns its id.

    `said` are other messages to put into it.
    """
    paths = find_paths(program_environment(place.home))
    paths.data_dir.mkdir(parents=True, exist_ok=True)
    store = open_store(paths.database)
    try:
        title = f"{messages:,} messages"
        made = store.create_session(
            folder=str(place.folder), model=_MADE_BY.model, rolling=rolling, title=title
        )
        whole = list(conversation(messages) if said is None else said)
        for at in range(0, messages, _CHUNK):
            store.append_all(made.id, whole[at : at + _CHUNK])
        return made.id
    finally:
        store.close()


def conversation(messages: int) -> Iterator[Message]:
    """Yield so many messages, the same every time."""
    rng = random.Random(messages)
    answers = [mixed_markdown(900, seed) for seed in range(_KINDS)]
    results = [mixed_text(rng, 900) for _ in range(_KINDS)]
    written = turn = 0
    while written < messages:
        turn += 1
        call = ToolCall(f"c{turn}", "read_file", json.dumps({"path": f"src/part_{turn}.py"}))
        with_tool = [
            Message("assistant", "I look.", tool_calls=(call,), made_by=_MADE_BY),
            Message("tool", rng.choice(results), tool_call_id=call.id),
        ]
        parts = [
            Message("user", f"Question {turn}: {mixed_text(rng, 150)}"),
            *(with_tool if turn % 3 == 0 else ()),
            Message("assistant", f"Answer {turn}. {rng.choice(answers)}", made_by=_MADE_BY),
        ]
        if written + len(parts) >= messages - 1:
            rest = messages - written
            parts = [Message("user", "And?")] * (rest - 1) + [
                Message("assistant", LAST_WORDS, made_by=_MADE_BY)
            ]
        written += len(parts)
        yield from parts
