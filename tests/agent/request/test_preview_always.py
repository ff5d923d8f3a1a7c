"""Whoever looks at the report between two requests gets the requests that they would have got anyway."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from dataclasses import replace
from itertools import count
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from rolling_chat.agent import Chat, ChatError, PinChange
from rolling_chat.settings.schema import ContextSettings, Settings
from tests.support.agent import ScriptedProvider, call, calls, collect, make_runtime, says
from tests.support.prompt_rules import broken_rules

PAGE = "a line of output that says very little\n" * 30
TURNS = {
    "talk": [says(f"an answer {PAGE}")],
    "work": [
        calls(call("read_file", '{"path": "page.txt"}', "a"), call("list_files", "{}", "b")),
        says("worked"),
    ],
}
ACTS = st.lists(
    st.one_of(
        st.sampled_from(["talk", "work", "talk", "reopen", "reopen", "undo", "redo", "roll", "wait"]),
        st.tuples(st.sampled_from([*PinChange]), st.integers(1, 20).map(lambda place: f"r{place}")),
        st.sampled_from([0, 4_000, 5_000]),
    ),
    min_size=4,
    max_size=16,
)
Act = str | int | tuple[PinChange, str]


@settings(max_examples=max(5, settings().max_examples // 8))  # each is two whole sessions on disk
@given(ACTS)
@example(
    [*["talk"] * 4, "reopen", "talk", "reopen", (PinChange.EXCLUDE, "r9"), "talk", "roll", "reopen", "talk"]
)
def test_looking_changes_no_request(acts: list[Act]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        unseen, seen = (
            asyncio.run(_play(Path(folder), ["talk", "work", *acts, "talk"], number, looks=looks))
            for number, looks in enumerate((False, True))
        )
    assert seen == unseen


async def _play(folder: Path, acts: list[Act], number: int, *, looks: bool) -> list[object]:
    """Every request of a session with these acts in it; nothing is summarized, which takes its own time."""
    provider, seconds = ScriptedProvider(), count(1_000)
    runtime = make_runtime(
        folder, provider, settings=Settings(context=ContextSettings(summarize="off")), window=6_000,
        database=folder / f"{number}.db",
    )  # fmt: skip
    runtime = replace(runtime, clock=lambda: float(next(seconds)))
    (runtime.folder / "page.txt").write_text(PAGE)
    chat = Chat.open(runtime, rolling=True)
    for act in acts:
        if looks:
            await chat.session.preview.warm()
            chat.session.preview.report()
        with contextlib.suppress(ChatError):
            match act:
                case "talk" | "work":
                    provider.scripts = [*provider.scripts[: len(provider.requests)], *TURNS[act]]
                    await collect(chat.send(f"a message {len(provider.requests)}"))
                case "reopen":
                    chat.close()
                    chat = Chat.open(runtime, session=runtime.store.session(chat.session.info.id))
                case "undo":
                    chat.session.history.undo()
                case "redo":
                    chat.session.history.redo()
                case "roll":
                    chat.session.overrides.set_rolling(not chat.session.rolling)
                case "wait":
                    seconds = count(next(seconds) + 1_000)
                case int(window):
                    chat.session.overrides.set("max_context_tokens", str(window))
                case (change, words):
                    chat.session.pins.make(change, words)
    chat.close()
    runtime.store.close()
    sent = [[message.to_dict() for message in request.messages] for request in provider.requests]
    assert all(broken_rules(messages) == [] for messages in sent)
    return [sent, [request.max_tokens for request in provider.requests]]
