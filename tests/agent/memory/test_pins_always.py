"""Whatever is said, taken back, pinned and excluded in a chat: every request is as it was asked for."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rolling_chat.agent import Chat, ChatError, PinChange, Runtime
from rolling_chat.agent.memory.pin_scope import ids_at, placed
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.context import ContextPlan, Fate
from rolling_chat.context.pins import EXCLUDED_RESULT, resolve_pins
from rolling_chat.settings.schema import AgentSettings, Settings
from tests.support.agent import ScriptedProvider, call, calls, collect, make_runtime, says
from tests.support.prompt_rules import broken_rules

PAGE = "a line of output that says very little\n" * 30
TURNS = {
    "talk": [says(f"an answer {PAGE}")],
    "work": [
        calls(call("read_file", '{"path": "page.txt"}', "a"), call("list_files", "{}", "b")),
        calls(call("read_file", '{"path": "page.txt"}', "c"), text="once more"),
        says("worked"),
    ],
}
NAMED = st.one_of(
    st.sampled_from(["last", "turn", "turn 1", "r1"]), st.integers(0, 30).map(lambda place: f"r{place}")
)
ACTS = st.lists(
    st.one_of(
        st.sampled_from(["talk", "work", "work"]),
        st.tuples(st.sampled_from([*PinChange]), NAMED),
        st.tuples(st.sampled_from([*PinChange]), NAMED),
        st.sampled_from(["undo", "redo", "fork", "roll"]),
    ),
    min_size=3,
    max_size=12,
)


@settings(max_examples=max(5, settings().max_examples // 8))  # each is a whole session on disk
@given(ACTS)
def test_every_request_is_well_formed_and_holds_what_is_pinned_and_nothing_that_is_excluded(
    acts: list[str | tuple[PinChange, str]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_play(Path(folder), ["work", *acts, "talk"]))


async def _play(folder: Path, acts: list[str | tuple[PinChange, str]]) -> None:
    provider = ScriptedProvider()
    runtime = make_runtime(folder, provider, settings=Settings(agent=AgentSettings()), window=6_000)
    (runtime.folder / "page.txt").write_text(PAGE)
    chat = Chat.open(runtime, rolling=True)
    for act in acts:
        with contextlib.suppress(ChatError):
            match act:
                case "talk" | "work":
                    provider.scripts = [*provider.scripts[: len(provider.requests)], *TURNS[act]]
                    await collect(chat.send(f"a message {len(provider.requests)}"))
                case "undo":
                    chat.session.history.undo()
                case "redo":
                    chat.session.history.redo()
                case "fork":
                    chat.fork()
                case "roll":
                    chat.session.overrides.set_rolling(not chat.session.rolling)
                case (change, words):
                    _change(chat, change, words)
        _check(chat)
    for request in provider.requests:
        assert broken_rules([message.to_dict() for message in request.messages]) == []
    _check_records(chat, runtime)
    chat.close()
    runtime.store.close()


def _change(chat: Chat, change: PinChange, words: str) -> None:
    """Make a change; its undo would bring back what was before."""
    before = chat.session.pins.scope
    price = chat.session.pins.make(change, words)
    after = chat.session.pins.scope
    undo, _, name = price.undo[1:].partition(" ")
    chat.session.pins.make(PinChange(undo), name)
    assert chat.session.pins.scope == before
    chat.session.pins.make(change, words)
    assert chat.session.pins.scope == after


def _check(chat: Chat) -> None:
    """Every message has one fate; what is pinned is whole, what is excluded is not sent."""
    branch, rows = list(chat.session.messages), chat.session.preview.report().rows
    assert [row.index for row in rows] == list(range(len(branch) + 1))
    held = chat.session.pins.scope
    for row in rows[1:]:
        message = branch[row.index - 1]
        if message.id in held.excluded:
            # a result that leaves with its turn has gone where the turn went
            assert row.fate in {Fate.EXCLUDED, Fate.OMITTED, Fate.SUMMARIZED}
            continue
        assert row.fate is not Fate.EXCLUDED
        if message.id in held.pinned | held.along:
            assert row.fate in {Fate.SENT, Fate.REPAIRED}
            assert row.tokens_after >= row.tokens_before


def _check_records(chat: Chat, runtime: Runtime) -> None:
    """What was sent can be built again, and held what its own pins say."""
    for record in runtime.store.requests(chat.session.info.id):
        if record.purpose != "answer":
            continue
        rebuilt = rebuild_request(runtime.store, record)
        assert rebuilt.is_same
        messages = placed(runtime.store.branch(chat.session.info.id, record.head))
        plan = ContextPlan.from_json(record.plan)
        assert plan is not None
        held = resolve_pins(messages, plan.pins)
        sent = {message.id: message.text for message in rebuilt.messages if message.id}
        assert not sent.keys() & ids_at(messages, held.excluded)
        for place in held.emptied:
            assert sent.get(messages[place].id, EXCLUDED_RESULT) == EXCLUDED_RESULT
        for place in held.pinned - held.emptied:
            assert sent[messages[place].id] == messages[place].text
