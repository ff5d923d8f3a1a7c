"""No request leaves that is not counted on its wire form and proved to fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from rolling_chat.agent import Chat
from rolling_chat.context import prompt_bound
from rolling_chat.events import Noticed, Outcome, PromptPlanned
from rolling_chat.messages import Json
from rolling_chat.providers.protocol import Request
from rolling_chat.settings.schema import ContextSettings, ModelSettings, Settings
from tests.support.agent import (
    MODEL,
    Opened,
    ScriptedProvider,
    call,
    calls,
    collect,
    make_runtime,
    of_kind,
    says,
)


class TalkativeProvider(ScriptedProvider):
    """Its wire copy says more than was planned, as one that bridges messages does."""

    added = 400  # words

    def wire_form(self, request: Request) -> Sequence[dict[str, Json]]:
        first, *rest = super().wire_form(request)
        return [first, {"role": "user", "content": "more " * self.added}, *rest]


async def test_what_is_sent_fits_on_the_wire_however_long_the_conversation(opened: Opened) -> None:
    turn = [calls(call("list_files")), says("answer " * 300)]
    chat, runtime, provider = opened(*turn * 12, window=9_000)
    (runtime.folder / "file.txt").touch()
    chat.session.overrides.set_rolling(True)
    for number in range(12):
        events = await collect(chat.send(f"question {number} " * 40))
        assert events[-1].outcome is Outcome.DONE
        for event in of_kind(events, PromptPlanned):
            assert event.report.within_budget
    for request in provider.requests:
        bound = prompt_bound(provider.wire_form(request), tools=request.tools, model=MODEL)
        assert bound + 3_000 + 900 <= 9_000
    logged = runtime.store.requests(chat.session.info.id)
    assert [record.bound for record in logged] == [
        prompt_bound(provider.wire_form(request), tools=request.tools, model=MODEL)
        for request in provider.requests
    ]
    assert any(record.totals["fates"]["omitted"] for record in logged)


async def test_a_wire_form_longer_than_planned_is_planned_again(tmp_path: Path) -> None:
    provider = TalkativeProvider(says("answer " * 700))
    settings = Settings(context=ContextSettings(summarize="off"))
    chat = Chat.open(make_runtime(tmp_path, provider, window=9_000, settings=settings), rolling=True)
    for number in range(6):
        events = await collect(chat.send(f"question {number} " * 50))
        assert events[-1].outcome is Outcome.DONE, events[-1]
        (planned,) = of_kind(events, PromptPlanned)
        report = planned.report
        assert report.bound + report.reserve + report.margin <= report.window
        assert report.bound == prompt_bound(
            provider.wire_form(provider.requests[-1]), tools=provider.requests[-1].tools, model=MODEL
        )
    assert report.reserve == 3_000


async def test_a_wire_form_that_cannot_be_made_to_fit_is_not_sent(tmp_path: Path) -> None:
    provider = TalkativeProvider(says("never"))
    provider.added = 9_000
    chat = Chat.open(make_runtime(tmp_path, provider, window=9_000), rolling=True)
    ended = (await collect(chat.send("hi")))[-1]
    assert ended.outcome is Outcome.FULL
    assert "Cannot fit request within context limit" in ended.error
    assert provider.requests == []


async def test_the_prefix_stands_still_while_nothing_has_to_leave(opened: Opened) -> None:
    chat, _, provider = opened(*[calls(call("list_files")), says("ok")] * 3)
    for text in ("one", "two", "three"):
        await collect(chat.send(text))
    forms = [provider.wire_form(request) for request in provider.requests]
    for before, after in pairwise(forms):
        assert list(after[: len(before)]) == list(before)


async def test_rolling_on_and_off_send_the_same_while_all_of_it_fits(tmp_path: Path) -> None:
    sent, offered = [], []
    (tmp_path / "seen").mkdir()
    for rolling in (True, False):
        provider = ScriptedProvider(calls(call("list_files")), says("ok"))
        folder = tmp_path / str(rolling)
        folder.mkdir()
        runtime = make_runtime(folder, provider)
        runtime.folder = tmp_path / "seen"
        await collect(Chat.open(runtime, rolling=rolling).send("go"))
        sent.append([provider.wire_form(request)[1:] for request in provider.requests])
        offered.append({tool["function"]["name"] for tool in provider.requests[0].tools})
        runtime.store.close()
    assert sent[0] == sent[1]
    assert offered[0] - offered[1] == {"recall", "note"}  # which the system message names too


async def test_edited_instructions_wait_for_the_next_turn(opened: Opened) -> None:
    edit = calls(call("run_command", '{"command": "echo B > AGENTS.md"}'))
    chat, runtime, provider = opened(edit, says("ok"), says("ok"), approvals="all", sandbox="off")
    (runtime.folder / "AGENTS.md").write_text("A\n")
    await collect(chat.send("one"))
    await collect(chat.send("two"))
    systems = [request.messages[0].text for request in provider.requests]
    assert systems[0] == systems[1]
    assert systems[0].endswith("\n\nA")
    assert systems[2].endswith("\n\nB")


async def test_long_instructions_leave_room_in_a_small_window(opened: Opened) -> None:
    chat, runtime, provider = opened(says("ok"), window=8_000)
    (runtime.folder / "AGENTS.md").write_text("rule " * 20_000)
    assert (await collect(chat.send("one")))[-1].outcome is Outcome.DONE
    assert "[cut: " in provider.requests[0].messages[0].text


@pytest.mark.parametrize(
    ("model", "most", "expected"),
    [
        (MODEL, 0, None),
        (MODEL, 500, 500),
        ("anthropic/scripted", 0, 32_000),
        ("anthropic/scripted", 500, 500),
    ],
)
async def test_max_tokens_is_sent_where_it_is_needed_or_set(
    model: str, most: int, expected: int | None, tmp_path: Path
) -> None:
    provider = ScriptedProvider(says("ok"))
    settings = Settings(models={model: ModelSettings(max_input_tokens=100_000, max_output_tokens=most)})
    runtime = make_runtime(tmp_path, provider, settings=settings)
    await collect(Chat.open(runtime, model=model).send("hi"))
    assert provider.requests[0].max_tokens == expected
    small = Settings(models={model: ModelSettings(max_input_tokens=9_000, max_output_tokens=most)})
    runtime.settings = replace(small, model=model)
    await collect(Chat.open(runtime, model=model).send("hi"))
    sent = provider.requests[1]
    if expected is not None:
        assert sent.max_tokens is not None
        bound = prompt_bound(provider.wire_form(sent), tools=sent.tools, model=model)
        assert sent.max_tokens == min(expected, 9_000 - 900 - bound)  # the margin is not for the answer
    runtime.store.close()


async def test_what_was_counted_once_is_not_counted_by_the_next_process(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(call("list_files")), says("ok"))
    await collect(chat.send("one"))
    chat.session.preview.report()
    await collect(chat.send("two"))
    stored = runtime.store.stretch(chat.session.info.id, None)
    memo = chat.session.state.counts.memo
    raw = [_raw_counts(stored.counts[message.id]) for message in stored.messages[:-1]]
    assert raw == [memo.counts_of(message) for message in chat.session.messages[:-1]]
    assert all(raw)
    resumed = Chat.open(runtime, session=runtime.store.session(chat.session.info.id)).session
    read = resumed.state.counts.memo
    assert [read.counts_of(message) for message in resumed.messages[:-1]] == raw


def _raw_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts that no model reported."""
    return {name: count for name, count in counts.items() if not name.startswith(("=", "+", "@"))}


async def test_the_prefix_stands_still_over_a_restart(opened: Opened) -> None:
    chat, runtime, provider = opened(says("answer " * 100), window=9_000)
    chat.session.overrides.set_rolling(True)
    chat.session.overrides.set("summarize", "off")  # a summary that is ready comes in
    while not any(
        record.totals["fates"]["omitted"] for record in runtime.store.requests(chat.session.info.id)
    ):
        await collect(chat.send("question " * 100))
    before = provider.wire_form(provider.requests[-1])
    chat.close()
    again = Chat.open(runtime, session=runtime.store.session(chat.session.info.id))
    await collect(again.send("and?"))
    assert list(provider.wire_form(provider.requests[-1])[: len(before)]) == list(before)


async def test_an_idle_session_trims_while_the_providers_cache_is_cold_anyway(tmp_path: Path) -> None:
    provider = ScriptedProvider(*[says("answer " * 100)] * 20)
    runtime = make_runtime(tmp_path, provider, window=9_000)
    now = 1_000.0
    runtime.clock = lambda: now
    chat = Chat.open(runtime, rolling=True)
    # up to above the threshold, where nothing has to leave yet
    while chat.session.preview.report().bound < 0.85 * (9_000 - 3_000 - 900):
        await collect(chat.send("question " * 60))
    now += 60.0
    (warm,) = of_kind(await collect(chat.send("soon after")), PromptPlanned)
    now += 600.0
    (cold,) = of_kind(await collect(chat.send("long after")), PromptPlanned)
    assert not warm.report.trimmed
    assert cold.report.trimmed


async def test_instructions_that_turn_up_in_a_folder_are_named_once_and_not_read(opened: Opened) -> None:
    chat, runtime, provider = opened(says("ok"))
    runtime.trust.everything = False
    (runtime.folder / "AGENTS.md").write_text("Rhyme.\n")
    told = [
        [event.text for event in await collect(chat.send("go")) if isinstance(event, Noticed)] for _ in "ab"
    ]
    assert [len(lines) for lines in told] == [1, 0]
    assert told[0][0].startswith("Not read: AGENTS.md")
    assert "Rhyme" not in provider.requests[-1].messages[0].text
