"""A long session that is gone on with before all of it was read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.agent import Chat, Runtime, conversation
from rolling_chat.agent.memory.pins import PinChange
from rolling_chat.agent.memory.summarizer import EXTRACT
from rolling_chat.context import Fate, branch_parts, summary_due
from rolling_chat.messages import Message
from rolling_chat.partly_read import NotReadError, PartlyRead, read_parts, with_last
from tests.support.agent import (
    FEW_TOOLS,
    Opened,
    ScriptedProvider,
    assert_well_formed,
    call,
    calls,
    collect,
    says,
)

LONG = 400  # messages
WINDOW = 6_000


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "_FIRST", 20)
    monkeypatch.setattr(conversation, "_SLICE", 10)
    monkeypatch.setattr(conversation, "_SOON", 50)
    monkeypatch.setattr(branch_parts, "MIN_SKIPPED", 0)


@pytest.fixture
def runtime(opened: Opened) -> Runtime:
    """A store with one session of LONG messages, rolling on, which nobody has counted."""
    chat, runtime, _ = opened(says("fine"))
    for turn in range(LONG // 2):
        runtime.store.append(chat.session.info.id, Message("user", f"question {turn} " * 20))
        runtime.store.append(chat.session.info.id, Message("assistant", f"answer {turn} " * 20))
    runtime.store.update_session(chat.session.info.id, rolling=True)
    chat.close()
    context = replace(runtime.settings.context, max_context_tokens=WINDOW)
    agent = replace(runtime.settings.agent, tools=FEW_TOOLS)
    return replace(runtime, settings=replace(runtime.settings, context=context, agent=agent))


def _say_much(runtime: Runtime, session: str) -> None:
    for turn in range(LONG // 2):
        runtime.store.append(session, Message("user", f"question {turn}"))
        runtime.store.append(session, Message("assistant", f"answer {turn}"))
    runtime.store.update_session(session, rolling=True)


def reopened(runtime: Runtime) -> Chat:
    (info,) = runtime.store.sessions()
    return Chat.open(runtime, session=runtime.store.session(info.id))


def sent(runtime: Runtime) -> list[str]:
    provider = runtime.provider
    assert isinstance(provider, ScriptedProvider)
    return [message.text for message in provider.requests[-1].messages[1:]]


async def test_the_report_needs_the_newest_part_and_the_task(runtime: Runtime) -> None:
    chat = reopened(runtime)
    await chat.session.preview.warm()
    assert chat.session.preview.is_ready
    assert not chat.session.conversation.is_whole
    partly = chat.session.preview.report()
    assert len(partly.rows) == LONG + 1
    await chat.session.preview.ready()
    assert chat.session.conversation.is_whole
    whole = chat.session.preview.report()
    assert whole == partly
    assert [row.fate for row in whole.rows].count(Fate.OMITTED) == partly.count(Fate.OMITTED) > LONG / 2


@pytest.mark.parametrize("turns", [1, 3])
async def test_the_same_is_sent_whether_or_not_all_was_read(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    monkeypatch.setattr("rolling_chat.agent.memory.summaries.Summaries.begin_due", lambda _: None)
    chat = reopened(runtime)
    chat.session.setup.note_try()  # from a first answer on more may have to leave
    head, requests = chat.session.head, []
    for _ in range(turns):
        await collect(chat.send("and now?"))
        requests.append(sent(runtime))
        assert not chat.session.conversation.is_whole
    planned = chat.session.planner.forecast.report(chat.session.conversation.branch)
    runtime.store.move_head(chat.session.info.id, head, chat.session.model)
    chat.close()
    monkeypatch.setattr(conversation, "_SOON", 10 * LONG)
    chat = reopened(runtime)
    for request in requests:
        await collect(chat.send("and now?"))
        assert chat.session.conversation.is_whole
        assert sent(runtime) == request
    assert chat.session.planner.forecast.report(chat.session.messages).fates == planned.fates
    assert_well_formed(chat, runtime)


async def test_reopened_after_a_trim_it_goes_on_where_it_was(runtime: Runtime) -> None:
    chat = reopened(runtime)
    await collect(chat.send("and now?"))
    await chat.session.summaries.settled()
    await chat.session.preview.ready()
    foreseen = chat.session.preview.report()
    chat.close()
    again = reopened(runtime)
    await again.session.preview.warm()
    assert not again.session.conversation.is_whole
    assert again.session.preview.report().fates == foreseen.fates
    assert again.session.preview.report().token_count == foreseen.token_count


@pytest.mark.parametrize("summarize", ["extract", "model"])
async def test_a_first_summary_reads_and_takes_up_the_newest_part_only(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, summarize: str
) -> None:
    monkeypatch.setattr(summary_due, "MAX_BACKLOG_MESSAGES", 40)
    runtime.settings = replace(
        runtime.settings, context=replace(runtime.settings.context, summarize=summarize)
    )
    chat = reopened(runtime)
    await collect(chat.send("and now?"))
    await chat.session.summaries.settled()
    session = chat.session
    assert not session.conversation.is_whole
    current = session.summaries.current
    assert current is not None
    assert current.made_by == EXTRACT  # what the model says is about something else
    ((start, stop),) = current.skipped
    assert (start, current.covers) == (1, current.place - stop + 1)
    assert 40 <= current.covers <= 42
    passes = -(-current.covers // 30)
    assert len(runtime.store.summaries(session.info.id)) == passes
    await collect(chat.send("and then?"))
    await session.summaries.settled()
    assert not session.conversation.is_whole
    report = session.preview.report()
    assert report.count(Fate.SUMMARIZED) >= 40
    assert report.count(Fate.OMITTED) >= stop - 2  # the task stays
    await session.preview.ready()
    rows = session.preview.report().rows
    assert {row.fate for row in rows[2:stop]} == {Fate.OMITTED}
    assert {row.fate for row in rows[stop : current.place + 1]} == {Fate.SUMMARIZED}
    assert sum(session.preview.report().fates.values()) == len(rows)
    assert_well_formed(chat, runtime)


async def test_calls_find_the_whole_branch(runtime: Runtime) -> None:
    provider = runtime.provider
    assert isinstance(provider, ScriptedProvider)
    provider.scripts = [calls(call("recall", '{"search": "question 3"}')), says("found")]
    chat = reopened(runtime)
    await collect(chat.send("what was it?"))
    assert chat.session.conversation.is_whole
    assert "question 3" in chat.session.messages[-2].text


async def test_calls_that_ask_for_no_old_message_read_none(runtime: Runtime) -> None:
    provider = runtime.provider
    assert isinstance(provider, ScriptedProvider)
    (runtime.folder / "a.txt").write_text("alpha\n")
    reading = call("read_file", '{"path": "a.txt"}', "c2")
    provider.scripts = [calls(call("list_files"), reading), says("seen")]
    chat = reopened(runtime)
    await collect(chat.send("what is there?"))
    assert not chat.session.conversation.is_whole
    listed, read, _ = chat.session.conversation.recent[-3:]
    assert "a.txt" in listed.text
    assert "alpha" in read.text
    assert_well_formed(chat, runtime)


async def test_a_file_that_was_read_far_above_can_be_written(opened: Opened) -> None:
    writing = call("write_file", '{"path": "a.txt", "content": "beta\\n"}')
    unread = call("write_file", '{"path": "b.txt", "content": "beta\\n"}', "c2")
    scripts = [
        calls(call("read_file", '{"path": "a.txt"}')),
        says("seen"),
        calls(writing, unread),
        says("ok"),
    ]
    chat, runtime, _ = opened(*scripts, approvals="all")
    for name in ("a.txt", "b.txt"):
        (runtime.folder / name).write_text("alpha\n")
    await collect(chat.send("read it"))
    _say_much(runtime, chat.session.info.id)
    again = reopened(runtime)
    await collect(again.send("write both"))
    assert not again.session.conversation.is_whole
    assert (runtime.folder / "a.txt").read_text() == "beta\n"
    assert (runtime.folder / "b.txt").read_text() == "alpha\n"


async def test_a_kept_file_that_was_named_far_above_can_be_read(opened: Opened) -> None:
    chat, runtime, provider = opened()
    session = chat.session.info.id
    named, unnamed = (runtime.attachments.keep(session, f"{word}\n") for word in ("alpha", "beta"))
    runtime.store.append(session, Message("user", f"The rest is in {named}"))
    _say_much(runtime, session)
    reading = [call("read_file", json.dumps({"path": str(path)}), path.name) for path in (named, unnamed)]
    provider.scripts = [calls(*reading), says("seen")]
    again = reopened(runtime)
    await collect(again.send("read both"))
    assert not again.session.conversation.is_whole
    first, second, _ = again.session.conversation.recent[-3:]
    assert "alpha" in first.text
    assert "outside the working folder" in second.text


async def test_with_rolling_off_it_is_refused_without_reading_all(runtime: Runtime) -> None:
    chat = reopened(runtime)
    chat.session.overrides.set_rolling(False)
    await chat.session.preview.warm()
    report = chat.session.preview.report()
    assert not report.within_budget
    assert report.count(Fate.SENT) == LONG + 1
    await collect(chat.send("and now?"))
    assert not runtime.provider.requests  # type: ignore[attr-defined]


async def test_what_is_pinned_far_above_is_sent(runtime: Runtime) -> None:
    chat = reopened(runtime)
    pinned = chat.session.messages[101]
    chat.session.pins.make(PinChange.PIN, "r102")
    chat.close()
    again = reopened(runtime)
    await collect(again.send("and now?"))
    assert pinned.text in sent(runtime)


async def test_another_branch_has_nothing_of_what_was_found_on_the_one_before(runtime: Runtime) -> None:
    chat = reopened(runtime)
    await chat.session.preview.warm()
    first = chat.session.conversation.branch[0]
    runtime.store.move_head(chat.session.info.id, "", chat.session.model)
    chat.session.conversation.move_to("")
    assert list(chat.session.conversation.branch) == []
    said = runtime.store.append(chat.session.info.id, Message("user", "anew"))
    chat.session.conversation.reload()
    assert [message.id for message in chat.session.conversation.branch] == [said.id] != [first.id]


@given(st.integers(0, 20), st.sets(st.integers(0, 19)), st.integers(1, 10), st.data())
def test_a_part_is_the_whole_where_it_was_read(
    unread: int, found: set[int], newest: int, data: st.DataObject
) -> None:
    whole = [Message("user", str(number)) for number in range(unread + newest)]
    kept = {index: whole[index] for index in found if index < unread}
    part = PartlyRead(unread, kept, whole[unread:])
    assert len(part) == len(whole)
    assert dict(read_parts(part)) == {**kept, **dict(enumerate(whole[unread:], unread))}
    start, stop = data.draw(st.integers(-30, 30)), data.draw(st.none() | st.integers(-30, 30))
    missing = [index for index in range(len(whole))[start:stop] if index < unread and index not in kept]
    if missing:
        with pytest.raises(NotReadError) as raised:
            part[start:stop]
        assert raised.value.index == missing[0]
    else:
        assert list(part[start:stop]) == whole[start:stop]
    more = with_last(part, Message("user", "more"))
    assert (len(more), more[-1].text, part[-1]) == (len(whole) + 1, "more", whole[-1])
