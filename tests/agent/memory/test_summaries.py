"""Summaries in a chat: made after a turn, in the background, and never in anybody's way."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.agent import Chat, ChatError, Runtime
from rolling_chat.agent.memory.pins import PinChange
from rolling_chat.agent.memory.summaries import EDITED
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.context import Fate, count_tokens
from rolling_chat.context.summary_text import HEAD
from rolling_chat.events import SummaryBegan, SummaryEnded
from rolling_chat.messages import Ending, Message, Usage
from rolling_chat.providers.protocol import Delta, ErrorKind, Finished, ProviderError, Request, TextDelta
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.schema import AgentSettings, ContextSettings, ModelSettings, Settings
from tests.support.agent import (
    MODEL,
    Gate,
    ScriptedProvider,
    assert_well_formed,
    call,
    calls,
    collect,
    make_runtime,
    says,
)

PAGE = "It is so with the lexer and the parser, and has been for as long as anybody can remember. " * 25
SHORT = "They talked of the lexer."


@dataclass
class Summarizing(ScriptedProvider):
    """Answers turns at length, and questions for a summary with what `summaries` says next.

    An Event among them is waited for before the default answer; the last one goes on forever.
    """

    summaries: Sequence[str | Exception | asyncio.Event] = (SHORT,)
    asked: list[Request] = field(default_factory=list)
    turns: list[Request] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.was_asked = asyncio.Event()
        self.open_questions = 0
        self.open_at_turns: list[int] = []  # the questions that a turn found its server busy with
        ScriptedProvider.__init__(self, says(PAGE))

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        if not request.messages[-1].text.startswith("Summarise a conversation"):
            self.turns.append(request)
            self.open_at_turns.append(self.open_questions)
            async for delta in super().stream(request):
                yield delta
            return
        step = self.summaries[min(len(self.asked), len(self.summaries) - 1)]
        self.asked.append(request)
        self.was_asked.set()
        self.open_questions += 1
        try:
            if isinstance(step, asyncio.Event):
                await step.wait()
                step = SHORT
            if isinstance(step, Exception):
                raise step
            yield TextDelta(step)
            ending = self.endings.pop(0) if self.endings else Ending.COMPLETE
            yield Finished(Message("assistant", step, ending=ending), Usage(500, 20, cost=0.25))
        finally:
            self.open_questions -= 1


Opened = Callable[..., tuple[Chat, Runtime, Summarizing]]


@pytest.fixture
def summarizing(tmp_path: Path) -> Iterator[Opened]:
    """A chat with rolling on, a history of 2,000 tokens at most, and turns of some 400."""
    runtimes: list[Runtime] = []

    def open_one(*summaries: str | Exception | asyncio.Event, address: str = "", **context: Any):
        keys = {"max_history_tokens": 2_000, "enabled": True, **context}
        settings = Settings(
            context=ContextSettings(**keys),
            agent=AgentSettings(tools=("read_file",)),
            models={MODEL: ModelSettings(api_base=address)},
        )
        provider = Summarizing(summaries=summaries or (SHORT,))
        runtime = make_runtime(tmp_path, provider, settings=settings)
        runtimes.append(runtime)
        return Chat.open(runtime), runtime, provider

    yield open_one
    for runtime in runtimes:
        runtime.store.close()


async def talk(chat: Chat, turns: int = 6, *, settle: bool = True) -> None:
    for number in range(turns):
        await collect(chat.send(f"Why is point {number:x} so?"))
        if settle:
            await chat.session.summaries.settled()


def generations(chat: Chat, runtime: Runtime) -> list[int]:
    return [one.generation for one in runtime.store.summaries(chat.session.info.id)]


def sent_system(provider: Summarizing) -> str:
    return provider.turns[-1].messages[0].text


async def test_it_is_made_after_a_turn_and_comes_into_the_prompt(summarizing: Opened) -> None:
    chat, runtime, provider = summarizing()
    await talk(chat, 3)
    assert provider.asked == []
    await talk(chat, 6)
    assert chat.session.summaries.current is not None
    assert chat.session.summaries.is_active
    assert f"{HEAD}\n" in sent_system(provider)
    assert SHORT in sent_system(provider)
    report = chat.session.preview.report()
    assert report.summary > 0
    assert report.count(Fate.SUMMARIZED) > 0
    assert chat.session.info.has_summary
    assert generations(chat, runtime) == [*range(1, len(provider.asked) + 1)]
    assert_well_formed(chat, runtime)


async def test_answers_that_were_cut_at_their_limit_are_summarized_as_well(summarizing: Opened) -> None:
    chat, _, provider = summarizing()
    provider.scripts = [says(PAGE, ending=Ending.LENGTH)] * 9
    await talk(chat, 9)
    assert chat.session.summaries.current is not None
    assert HEAD in sent_system(provider)


async def test_the_summarizer_is_asked_without_tools_and_extends_what_there_is(summarizing: Opened) -> None:
    chat, _, provider = summarizing(SHORT, "They also talked of the parser.")
    await talk(chat, 12)
    assert all(request.tools == () for request in provider.asked)
    assert "Why is point 0 so?" in provider.asked[0].messages[0].text
    second = provider.asked[1].messages[0].text
    assert f"<summary>\n{SHORT}\n</summary>" in second
    assert "Why is point 0 so?" not in second


async def test_its_cost_is_counted_and_its_request_is_in_the_log_and_can_be_built_again(
    summarizing: Opened,
) -> None:
    chat, runtime, provider = summarizing()
    await talk(chat)
    records = runtime.store.requests(chat.session.info.id)
    made = [record for record in records if record.purpose == "summary"]
    assert len(made) == len(provider.asked) > 0
    assert [record.usage.cost for record in made] == [0.25] * len(made)
    assert chat.usage.cost == 0.25 * len(made)
    assert all(rebuild_request(runtime.store, record).is_same for record in records)
    assert made[0].plan is None


async def test_an_extract_costs_nothing(summarizing: Opened) -> None:
    chat, runtime, provider = summarizing(summarize="extract")
    await talk(chat)
    current = chat.session.summaries.current
    assert current is not None
    assert current.made_by == "extract"
    assert "Why is point 0 so?" in current.text
    assert provider.asked == []
    assert {record.purpose for record in runtime.store.requests(chat.session.info.id)} == {"answer"}


async def test_another_model_may_make_it(summarizing: Opened) -> None:
    chat, _, provider = summarizing(summary_model="openai/small")
    await talk(chat)
    assert {request.model for request in provider.asked} == {"openai/small"}
    assert chat.session.summaries.current is not None
    assert chat.session.summaries.current.made_by == "openai/small"


@pytest.mark.parametrize("how", ["off", "rolling off"])
async def test_off_makes_none(summarizing: Opened, how: str) -> None:
    context = {"enabled": False} if how == "rolling off" else {"summarize": "off"}
    chat, runtime, provider = summarizing(**context)
    await talk(chat)
    assert (provider.asked, generations(chat, runtime)) == ([], [])


async def test_switched_off_it_is_laid_aside_and_comes_back(summarizing: Opened) -> None:
    chat, _, provider = summarizing()
    await talk(chat)
    for key, off, on in (("enabled", "false", "true"), ("summarize", "off", "model")):
        chat.session.overrides.set(key, off)
        await collect(chat.send("And?"))
        assert HEAD not in sent_system(provider)
        chat.session.overrides.set(key, on)
        await collect(chat.send("And?"))
        await chat.session.summaries.settled()
        assert chat.session.summaries.current is not None
    await talk(chat, 6)
    assert HEAD in sent_system(provider)


async def test_a_summarizer_that_never_answers_keeps_nobody_waiting(summarizing: Opened) -> None:
    never = asyncio.Event()
    chat, runtime, provider = summarizing(never)
    await talk(chat, 10, settle=False)
    await provider.was_asked.wait()
    await talk(chat, 3, settle=False)
    assert len(chat.session.messages) == 26
    assert chat.session.summaries.busy
    assert len(provider.asked) == 1
    await chat.disconnect()
    assert provider.asked
    assert not chat.session.summaries.busy
    (record,) = (one for one in runtime.store.requests(chat.session.info.id) if one.purpose == "summary")
    assert record.error == "cancelled"


async def test_what_was_made_while_the_person_went_on_is_published_between_turns(summarizing: Opened) -> None:
    gate = asyncio.Event()
    chat, runtime, provider = summarizing(gate, "The lexer and the parser.")
    await talk(chat, 5, settle=False)
    await provider.was_asked.wait()
    turn = chat.send("And then?")
    await anext(turn)
    gate.set()
    async for _ in turn:
        assert chat.session.summaries.current is None or not chat.busy
    await chat.session.summaries.settled()
    assert chat.session.summaries.current is not None
    assert runtime.store.summaries(chat.session.info.id)[0].text == SHORT


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ProviderError(ErrorKind.OVERLOADED, "the model is overloaded"), id="refused"),
        pytest.param(ValueError("?"), id="broken"),
    ],
)
async def test_failures_keep_what_there_was_and_wait_twice_as_long_each_time(
    summarizing: Opened, answer: str | Exception
) -> None:
    chat, runtime, provider = summarizing(SHORT, answer)
    now = 1_000.0
    runtime.clock = lambda: now
    told: list[str] = []
    chat.listener.on_summary = lambda event: isinstance(event, SummaryEnded) and told.append(event.notice)
    await talk(chat, 8)
    before = chat.session.summaries.current
    assert before is not None
    await talk(chat, 6)
    assert chat.session.summaries.current == before
    assert len(provider.asked) == 3  # the second failure in a row is waited for
    for waited, said in ((60, "2 min"), (120, "4 min"), (240, "8 min")):
        now += waited - 1
        await talk(chat, 1)
        asked = len(provider.asked)
        now += 1
        await talk(chat, 2)
        assert len(provider.asked) == asked + 1
        assert said in told[-1]
    lines = [line for line in told if line]
    assert [line.partition("Next try in ")[2] for line in lines] == [
        f"{minutes} min at the earliest." for minutes in (1, 2, 4, 8)
    ]
    provider.summaries = [SHORT]
    now += 480
    await talk(chat, 1)
    assert chat.session.summaries.current.generation > before.generation
    assert_well_formed(chat, runtime)


async def test_a_time_out_is_a_failure(summarizing: Opened) -> None:
    chat, runtime, _ = summarizing(asyncio.Event())
    chat.session.summaries._summarizer.patience = 0.01
    await talk(chat)
    assert chat.session.summaries.current is None
    assert {
        record.error for record in runtime.store.requests(chat.session.info.id) if record.purpose == "summary"
    } == {"no answer within 0.01 seconds"}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("", id="empty"),
        pytest.param(" \n", id="blank"),
        pytest.param("word " * 5_000, id="one endless line"),
        pytest.param("The lexer is so.\n" * 3_000, id="a loop of lines"),
        pytest.param("\n".join(f"The lexer was so, {at}." for at in range(3_000)), id="much too long"),
        pytest.param("Der Lexer war also wie gehabt, und alle Punkte desgleichen.", id="another language"),
    ],
)
async def test_whatever_a_model_answers_there_is_a_summary_within_its_cap(
    summarizing: Opened, answer: str
) -> None:
    chat, runtime, provider = summarizing(answer)
    await talk(chat, 10)
    current = chat.session.summaries.current
    assert current is not None
    assert 0 < count_tokens(current.text, MODEL) <= chat.session.summaries.max_tokens
    assert len(provider.asked) <= 2 * len(generations(chat, runtime))
    assert_well_formed(chat, runtime)


async def test_a_rewind_stops_what_is_made_and_falls_back(summarizing: Opened) -> None:
    gate = asyncio.Event()
    chat, runtime, provider = summarizing(SHORT, gate)
    while chat.session.summaries.current is None:
        await talk(chat, 1)
    first = chat.session.summaries.current
    provider.was_asked.clear()
    while not provider.was_asked.is_set():
        await talk(chat, 1, settle=False)
        waits = {
            asyncio.create_task(chat.session.summaries.settled()),
            asyncio.create_task(provider.was_asked.wait()),
        }
        _, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
    chat.session.history.undo()
    assert not chat.session.summaries.busy
    gate.set()
    assert chat.session.summaries.current == first
    chat.session.history.rewind(chat.session.history.turns()[1].message.id)
    assert chat.session.summaries.current is None
    assert not chat.session.info.has_summary
    chat.session.history.redo()
    assert chat.session.summaries.current == first
    assert generations(chat, runtime) == [1]


async def test_a_fork_has_what_it_was_forked_with_and_goes_its_own_way(summarizing: Opened) -> None:
    chat, runtime, _ = summarizing()
    await talk(chat)
    original, kept = chat.session.info.id, chat.session.summaries.current
    chat.fork()
    assert chat.session.summaries.current == kept
    chat.session.summaries.edit("They talked of the fork.")
    assert runtime.store.summary(original) == kept
    await collect(chat.send("And?"))
    runtime.store.delete(chat.session.info.id)
    assert runtime.store.summary(original) == kept


async def test_a_second_process_makes_none_and_reads_what_the_first_made(
    summarizing: Opened, tmp_path: Path
) -> None:
    chat, runtime, _ = summarizing()
    await talk(chat, 6)
    other = replace(runtime, store=open_store(runtime.paths.database))
    follower = Chat.open(other, session=runtime.store.session(chat.session.info.id))
    assert follower.session.holder
    assert follower.session.summaries.current == chat.session.summaries.current
    follower.session.summaries.dismiss()
    assert not follower.session.summaries.is_worth_saying(follower.session.preview.report())
    assert chat.session.summaries.is_worth_saying(chat.session.preview.report())
    with pytest.raises(ChatError, match="open in another terminal"):
        await follower.session.summaries.propose()
    with pytest.raises(ChatError, match="open in another terminal"):
        follower.session.summaries.edit("mine")
    await talk(chat, 6)
    follower.session.refresh()
    assert follower.session.summaries.current == chat.session.summaries.current
    chat.session.summaries.edit("They talked of one thing.")
    chat.close()
    follower.session.refresh()
    assert follower.session.summaries.current.text == "They talked of one thing."
    follower.session.summaries.edit("And of another.")
    follower.close()
    other.store.close()


async def test_resuming_makes_no_new_one_and_sends_the_same(summarizing: Opened) -> None:
    chat, runtime, provider = summarizing()
    await talk(chat, 8)
    made, report = generations(chat, runtime), chat.session.preview.report()
    chat.close()
    again = Chat.open(runtime, session=runtime.store.session(chat.session.info.id))
    await again.session.summaries.settled()
    assert again.session.preview.report() == report
    assert generations(again, runtime) == made
    await collect(again.send("Where were we?"))
    assert SHORT in sent_system(provider)


async def test_it_yields_to_a_turn_at_a_server_that_may_have_one_slot(summarizing: Opened) -> None:
    chat, runtime, provider = summarizing(
        asyncio.Event(), "They went on about the parser, long.", address="http://127.0.0.1:1/v1"
    )
    await talk(chat, 5, settle=False)
    await provider.was_asked.wait()
    await talk(chat, 1)
    assert provider.open_at_turns == [0] * 6
    assert [request.messages[0].text for request in provider.asked[:2]] == [
        provider.asked[0].messages[0].text
    ] * 2
    assert chat.session.summaries.current is not None
    assert chat.session.summaries.current.text == "They went on about the parser, long."
    records = [one for one in runtime.store.requests(chat.session.info.id) if one.purpose == "summary"]
    assert [one.error for one in records[:2]] == ["cancelled", ""]


async def test_it_waits_for_the_end_of_the_turn(summarizing: Opened) -> None:
    chat, _, provider = summarizing(asyncio.Event(), address="http://127.0.0.1:1/v1")
    await talk(chat, 5, settle=False)
    await provider.was_asked.wait()
    gate = Gate()
    provider.scripts = [[gate, *says("ok")]]
    turn = asyncio.create_task(collect(chat.send("And?")))
    await gate.reached.wait()
    assert (len(provider.asked), provider.open_questions) == (1, 0)
    assert chat.session.summaries.busy
    chat.stop()
    await turn
    provider.was_asked.clear()
    await provider.was_asked.wait()
    assert len(provider.asked) == 2
    await chat.disconnect()


@pytest.mark.parametrize(
    "context",
    [
        pytest.param({}, id="a hosted provider"),
        pytest.param(
            {"summary_model": "anthropic/small", "address": "http://127.0.0.1:1/v1"}, id="another server"
        ),
    ],
)
async def test_it_goes_on_beside_a_turn_that_it_keeps_from_nothing(
    summarizing: Opened, context: dict[str, str]
) -> None:
    chat, _, provider = summarizing(asyncio.Event(), **context)
    await talk(chat, 5, settle=False)
    await provider.was_asked.wait()
    await talk(chat, 1, settle=False)
    assert provider.open_at_turns[-1] == 1
    assert len(provider.asked) == 1
    await chat.disconnect()


async def test_an_open_turn_with_tools_sees_no_new_summary(summarizing: Opened) -> None:
    chat, runtime, provider = summarizing()
    provider.scripts = [*[says(PAGE)] * 5, calls(call("read_file", '{"path": "no"}')), says("done")]
    await talk(chat, 5, settle=False)
    events = [type(event) async for event in chat.send("go")]
    await chat.session.summaries.settled()
    assert events
    assert all(
        rebuild_request(runtime.store, one).is_same for one in runtime.store.requests(chat.session.info.id)
    )


async def test_a_session_that_is_left_takes_its_summarizer_along(summarizing: Opened) -> None:
    chat, _, provider = summarizing(asyncio.Event())
    await talk(chat, 6, settle=False)
    await provider.was_asked.wait()
    chat.start_new()
    assert not chat.session.summaries.busy
    assert chat.session.summaries.current is None


async def test_it_says_when_it_begins_and_ends(summarizing: Opened) -> None:
    chat, _, _ = summarizing()
    told: list[object] = []
    chat.listener.on_summary = told.append
    await talk(chat, 6)
    assert told[:2] == [SummaryBegan(), SummaryEnded()]


# -- asked for


async def test_a_proposal_changes_nothing_until_it_is_taken(summarizing: Opened) -> None:
    chat, runtime, provider = summarizing()
    await talk(chat, 3)
    proposal = await chat.session.summaries.propose("the lexer")
    assert "kept in mind above all: the lexer" in provider.asked[0].messages[0].text
    assert chat.session.summaries.current is None
    assert proposal.summary.covers == 4
    assert proposal.after.token_count < proposal.before.token_count
    chat.session.summaries.take(proposal)
    assert chat.session.summaries.is_active
    assert chat.session.preview.report().token_count == proposal.after.token_count
    await collect(chat.send("And?"))
    assert SHORT in sent_system(provider)
    assert all(
        rebuild_request(runtime.store, one).is_same for one in runtime.store.requests(chat.session.info.id)
    )


async def test_what_the_person_excluded_is_in_no_summary_and_pins_stay(summarizing: Opened) -> None:
    chat, _, provider = summarizing(max_history_tokens=0)
    await talk(chat, 4)
    chat.session.pins.make(PinChange("exclude"), "r3")
    chat.session.pins.make(PinChange("pin"), "r5")
    chat.session.summaries.take(await chat.session.summaries.propose())
    asked = provider.asked[-1].messages[0].text
    assert "Why is point 0 so?" in asked
    assert "Why is point 1 so?" not in asked
    fates = [row.fate for row in chat.session.preview.report().rows]
    assert (fates[3], fates[5]) == (Fate.EXCLUDED, Fate.SENT)


async def test_undo_goes_back_to_the_one_before_and_to_none(summarizing: Opened) -> None:
    chat, runtime, provider = summarizing("The lexer first.", "The parser.", max_history_tokens=0)
    await talk(chat, 3)
    whole = chat.session.preview.report()
    chat.session.summaries.take(await chat.session.summaries.propose())
    await talk(chat, 2)
    chat.session.summaries.take(await chat.session.summaries.propose())
    assert chat.session.summaries.undo().text == "The lexer first."
    assert "The lexer first." in chat.session.summaries.current.text
    chat.session.summaries.edit("The lexer first, edited.")
    assert chat.session.summaries.current.made_by == EDITED
    assert chat.session.summaries.undo().text == "The lexer first."
    assert chat.session.summaries.undo() is None
    assert not chat.session.info.has_summary
    assert chat.session.preview.report().fates.get(Fate.SUMMARIZED, 0) == 0
    assert chat.session.preview.report().token_count > whole.token_count
    with pytest.raises(ChatError, match="no summary to undo"):
        chat.session.summaries.undo()
    await collect(chat.send("And?"))
    assert HEAD not in sent_system(provider)
    assert len(generations(chat, runtime)) == 6


async def test_an_edit_is_in_force_with_the_next_request(summarizing: Opened) -> None:
    chat, _, provider = summarizing()
    await talk(chat, 8)
    chat.session.summaries.edit("They talked of nothing but \ud800 the lexer.")
    await collect(chat.send("And?"))
    assert "nothing but" in sent_system(provider)
    with pytest.raises(ChatError, match="cannot be empty"):
        chat.session.summaries.edit(" ")


async def test_an_overtaken_proposal_is_not_taken(summarizing: Opened) -> None:
    chat, _, _ = summarizing()
    await talk(chat, 3)
    proposal = await chat.session.summaries.propose()
    chat.session.history.undo()
    chat.session.history.undo()
    with pytest.raises(ChatError, match="has changed"):
        chat.session.summaries.take(proposal)


@pytest.mark.parametrize("leave", [Chat.start_new, lambda chat: chat.session.history.undo()])
async def test_a_proposal_that_is_being_made_ends_with_what_it_is_about(
    summarizing: Opened, leave: Callable[[Chat], object]
) -> None:
    chat, _, _ = summarizing()
    await talk(chat, 3)
    told: asyncio.Queue[object] = asyncio.Queue()
    chat.listener.on_summary = told.put_nowait
    proposing = asyncio.create_task(chat.session.summaries.propose())
    assert await told.get() == SummaryBegan()
    leave(chat)
    with pytest.raises(ChatError, match="was stopped"):
        await proposing
    assert await told.get() == SummaryEnded()


async def test_there_may_be_nothing_to_summarize(summarizing: Opened) -> None:
    chat, _, _ = summarizing()
    with pytest.raises(ChatError, match="nothing to summarize"):
        await chat.session.summaries.propose()
    chat.session.overrides.set_rolling(False)
    with pytest.raises(ChatError, match="Rolling context is off"):
        await chat.session.summaries.propose()


async def test_the_line_that_says_so_can_be_dismissed_for_good(summarizing: Opened) -> None:
    chat, runtime, _ = summarizing()
    assert not chat.session.summaries.is_worth_saying(chat.session.preview.report())
    await talk(chat, 6)
    assert chat.session.summaries.is_worth_saying(chat.session.preview.report())
    chat.session.summaries.dismiss()
    assert not chat.session.summaries.is_worth_saying(chat.session.preview.report())
    assert runtime.store.session(chat.session.info.id).summary_noted


async def test_it_is_said_only_while_a_summary_is_in_the_prompt(summarizing: Opened) -> None:
    chat, _, _ = summarizing()
    await talk(chat, 12)
    assert chat.session.summaries.is_worth_saying(chat.session.preview.report())
    for key, off, on in (("enabled", "false", "true"), ("summarize", "off", "model")):
        chat.session.overrides.set(key, off)
        assert not chat.session.summaries.is_worth_saying(chat.session.preview.report())
        chat.session.overrides.set(key, on)
        assert chat.session.summaries.is_worth_saying(chat.session.preview.report())


async def test_a_summary_that_is_only_ready_is_not_said_to_be_there(summarizing: Opened) -> None:
    chat, _, _ = summarizing()
    while chat.session.summaries.current is None:
        await talk(chat, 1)
    assert chat.session.preview.report().count(Fate.OMITTED) == 0
    assert not chat.session.summaries.is_worth_saying(chat.session.preview.report())


# -- what a model may answer


async def test_an_answer_about_something_else_is_asked_for_again_then_extracted_and_said(
    summarizing: Opened,
) -> None:
    chat, runtime, provider = summarizing("Anagrams: add_numbers sorts letters.")
    told: list[str] = []
    chat.listener.on_summary = lambda event: isinstance(event, SummaryEnded) and told.append(event.notice)
    while chat.session.summaries.current is None:
        await talk(chat, 1)
    assert len(provider.asked) == 2
    assert "add_numbers" in provider.asked[1].messages[0].text
    assert chat.session.summaries.current.made_by == "extract"
    assert "Why is point 0 so?" in chat.session.summaries.current.text
    assert "add_numbers" not in chat.session.summaries.current.text
    assert told[-1] == (
        'The model\'s summary was not used (it names "add_numbers", which nobody mentioned); '
        "it was extracted by rule."
    )
    assert_well_formed(chat, runtime)


async def test_a_proposal_says_that_it_is_not_the_model_s(summarizing: Opened) -> None:
    chat, _, _ = summarizing("Anagrams rearrange letters.")
    await talk(chat, 3)
    proposal = await chat.session.summaries.propose()
    assert proposal.refused == "it is about something else"
    assert proposal.summary.made_by == "extract"


async def test_a_question_asks_for_an_answer_of_twice_what_a_summary_may_take(summarizing: Opened) -> None:
    chat, _, provider = summarizing()
    await talk(chat, 6)
    assert {request.max_tokens for request in provider.asked} == {2 * chat.session.summaries.max_tokens}


async def test_the_model_s_own_limit_holds_for_a_summary_too(summarizing: Opened) -> None:
    chat, runtime, provider = summarizing()
    runtime.settings = replace(runtime.settings, models={MODEL: ModelSettings(max_output_tokens=700)})
    await talk(chat, 6)
    assert {request.max_tokens for request in provider.asked} == {700}


async def test_an_answer_that_was_all_thinking_is_asked_for_with_more_room(summarizing: Opened) -> None:
    chat, _, provider = summarizing("<think>Well, let me see.", SHORT)
    provider.endings = [Ending.LENGTH]
    while chat.session.summaries.current is None:
        await talk(chat, 1)
    assert chat.session.summaries.current.text == SHORT
    assert [request.max_tokens for request in provider.asked] == [1_600, None]


async def test_where_no_model_may_be_asked_what_is_due_is_extracted(summarizing: Opened) -> None:
    chat, _, provider = summarizing()
    chat.session.summaries.extract_only()
    await talk(chat, 6)
    assert provider.asked == []
    assert chat.session.summaries.current is not None
    assert chat.session.summaries.current.made_by == "extract"


# -- races and kills

KILLED = """
import asyncio, sys
from pathlib import Path
from rolling_chat.agent import Chat
from rolling_chat.settings.schema import ContextSettings, Settings
from tests.agent.memory.test_summaries import Summarizing, talk
from tests.support.agent import make_runtime

async def main():
    settings = Settings(context=ContextSettings(enabled=True, max_history_tokens=2_000))
    provider = Summarizing(summaries=("They talked of the lexer.", asyncio.Event()))
    chat = Chat.open(make_runtime(Path(sys.argv[1]), provider, settings=settings))
    while len(provider.asked) < 2:
        await talk(chat, 1, settle=False)
        await asyncio.sleep(0)
    print("asked", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_kill_while_a_summary_is_being_made_leaves_the_one_before_and_it_is_made_again(
    summarizing: Opened, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, str(tmp_path),
        cwd=Path(__file__).parents[3], stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert await process.stdout.readline() == b"asked\n"
    process.kill()
    await process.wait()
    chat, runtime, _ = summarizing("They went on about the parser.")
    chat.close()
    opened = Chat.open(runtime, session=min(runtime.store.sessions(), key=lambda info: info.created_at))
    assert opened.session.holder == ""
    assert generations(opened, runtime) == [1]
    before = opened.session.summaries.current
    assert before is not None
    await talk(opened, 4)
    after = opened.session.summaries.current
    assert after is not None
    assert after.generation > 1
    assert after.text.startswith(f"{before.text}\nThey went on about the parser.")
    assert_well_formed(opened, runtime)


async def test_a_line_of_what_was_lost_is_not_put_into_another_branch(summarizing: Opened) -> None:
    chat, _, provider = summarizing()
    provider.scripts = [says(f"{PAGE} See src/part_{at}.py.") for at in range(8)]
    await talk(chat, 8)
    line = (await chat.session.left_out.lost(chat.session.preview.report()))[-1]
    chat.session.history.rewind(chat.session.messages[line.index - 2].id)
    await talk(chat, 1)
    with pytest.raises(ChatError, match="has changed"):
        chat.session.left_out.put_back(line)


async def test_a_line_is_not_put_in_while_a_turn_runs_nor_from_a_second_process(
    summarizing: Opened,
) -> None:
    chat, runtime, provider = summarizing()
    provider.scripts = [says(f"{PAGE} See src/part_{at}.py.") for at in range(8)]
    await talk(chat, 8)
    report = chat.session.preview.report()
    line = (await chat.session.left_out.lost(report))[0]
    before = chat.session.summaries.current
    turn = chat.send("And?")
    await anext(turn)
    with pytest.raises(ChatError):
        chat.session.left_out.put_back(line)
    chat.stop()
    async for _ in turn:
        pass
    other = replace(runtime, store=open_store(runtime.paths.database))
    follower = Chat.open(other, session=runtime.store.session(chat.session.info.id))
    with pytest.raises(ChatError, match="open in another terminal"):
        follower.session.left_out.put_back(line)
    follower.close()
    other.store.close()
    assert chat.session.summaries.current == before
    chat.session.left_out.put_back(line)
    assert line.names[0] in chat.session.summaries.current.text


async def test_a_fork_has_the_line_that_was_put_in_and_undo_takes_it_out_of_one_alone(
    summarizing: Opened,
) -> None:
    chat, runtime, provider = summarizing()
    provider.scripts = [says(f"{PAGE} See src/part_{at}.py.") for at in range(8)]
    await talk(chat, 8)
    original = chat.session.info.id
    chat.session.left_out.put_back((await chat.session.left_out.lost(chat.session.preview.report()))[0])
    longer = chat.session.summaries.current
    assert longer is not None
    chat.fork()
    assert chat.session.summaries.current == longer
    chat.session.summaries.undo()
    assert chat.session.summaries.current.text != longer.text
    assert runtime.store.summary(original).text == longer.text
