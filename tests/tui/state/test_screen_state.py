"""Events come to a plain state; no terminal needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rolling_chat.events import (
    CallForming,
    Event,
    Outcome,
    PermissionAnswered,
    PermissionAsked,
    PermissionRequest,
    ReasoningAdded,
    ReplyEnded,
    RequestStarted,
    RetryWaiting,
    Steered,
    TaskEvent,
    TextAdded,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from rolling_chat.messages import TEXT_CALLS, Ending, Message, ToolCall, Usage
from rolling_chat.permissions.rules import PermissionRule
from rolling_chat.task_record import TaskRecord
from rolling_chat.tui.state.items import Kind, Status
from rolling_chat.tui.state.screen_state import WELCOME, Activity, ScreenState

CALL = ToolCall("c1", "run_command", '{"command": "ls"}')
REQUEST = PermissionRequest(CALL, "run", "ls", PermissionRule("run_command"))
ASKED = TurnStarted(Message("user", "hello", id="u1"))
SENT = RequestStarted("gpt", 1, "r1")


def _after(*events: Event, state: ScreenState | None = None) -> ScreenState:
    state = state or ScreenState()
    state.begin(0.0)
    for second, event in enumerate(events):
        state.apply(event, float(second))
    return state


def _ended(outcome: Outcome, error: str = "", usage: Usage | None = None) -> TurnEnded:
    return TurnEnded(outcome, usage or Usage(), 3.0, error)


def test_it_is_busy_from_the_first_moment() -> None:
    state = ScreenState()
    state.begin(10.0)
    assert state.busy
    assert state.status(12.0) == "waiting · 2 s"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (SENT, "waiting for gpt · 9 s"),
        (RetryWaiting(2, 290.0, 12.0, "throttled."), "throttled; trying again in 3 s · 9 s"),
        (CallForming("r1", "write_file", 1200), "writing a tool call write_file (1,200 characters) · 9 s"),
        (
            PermissionAsked(REQUEST),
            "asking permission for run_command · 9 s",
        ),
        (ToolStarted(CALL), "running run_command ls · 9 s"),
    ],
)
def test_the_status_line_says_what_is_being_done(event: Event, words: str) -> None:
    assert _after(event).status(9.0) == words


def test_calls_that_run_at_once_are_all_in_sight() -> None:
    reads = tuple(ToolCall("c", "read_file", f'{{"path": "{name}"}}') for name in "abb")
    answer = Message("assistant", "", id="r1", tool_calls=reads)
    state = _after(SENT, ReplyEnded(answer, Usage(), 1.0), *map(ToolStarted, reads))
    assert [item.status for item in state.items] == [Status.LIVE] * 3
    assert state.status(9.0) == "running read_file a and 2 more · 9 s"
    state.apply(ToolEnded(reads[0], Message("tool", "text", name="read_file"), 1.0), 9.0)
    assert state.status(9.0) == "running read_file b and 1 more · 9 s"
    assert [item.status for item in state.items] == [Status.DONE, Status.LIVE, Status.LIVE]


def test_a_question_comes_before_what_runs_beside_it_and_goes_with_its_answer() -> None:
    read = ToolCall("c", "read_file", '{"path": "a"}')
    answer = Message("assistant", "", id="r1", tool_calls=(read, CALL))
    state = _after(SENT, ReplyEnded(answer, Usage(), 1.0), ToolStarted(read), PermissionAsked(REQUEST))
    assert state.status(9.0) == "asking permission for run_command · 9 s"
    state.apply(PermissionAnswered(CALL), 9.0)
    assert state.status(9.0) == "running read_file a · 9 s"
    assert [item.status for item in state.items] == [Status.LIVE, Status.FORMING]


def test_thinking_and_answering_say_how_fast() -> None:
    state = _after(SENT, ReasoningAdded("r1", "x" * 400))
    assert state.status(11.0) == "thinking · 11 s · ~10 tokens/s"
    state.apply(TextAdded("r1", "y"), 12.0)
    assert state.activity is Activity.ANSWERING


def test_text_that_streams_is_one_item_that_grows() -> None:
    state = _after(ASKED, SENT, TextAdded("r1", "Good "), TextAdded("r1", "day"))
    assert [(item.kind, item.text, item.status) for item in state.items] == [
        (Kind.USER, "hello", Status.DONE),
        (Kind.ASSISTANT, "Good day", Status.LIVE),
    ]


def test_an_item_that_did_not_change_stays_the_same_object() -> None:
    state = _after(ASKED, SENT, TextAdded("r1", "Good "))
    first = state.items[0]
    state.apply(TextAdded("r1", "day"), 4.0)
    assert state.items[0] is first


def test_the_sealed_reply_takes_the_place_of_what_streamed() -> None:
    sealed = Message("assistant", "Good day.", id="r1")
    state = _after(SENT, TextAdded("r1", "Good day"), ReplyEnded(sealed, Usage(), 1.0))
    assert [(item.text, item.status) for item in state.items] == [("Good day.", Status.DONE)]


def test_thinking_settles_when_the_answer_begins() -> None:
    state = _after(SENT, ReasoningAdded("r1", "hmm"), TextAdded("r1", "yes"))
    assert [(item.kind, item.status) for item in state.items] == [
        (Kind.REASONING, Status.DONE),
        (Kind.ASSISTANT, Status.LIVE),
    ]


def test_a_reply_cut_off_keeps_its_text_and_says_so() -> None:
    sealed = Message("assistant", "half of", id="r1", ending=Ending.CANCELLED)
    state = _after(
        SENT, TextAdded("r1", "half of"), ReplyEnded(sealed, Usage(), 1.0), _ended(Outcome.CANCELLED)
    )
    assert [(item.text, item.status) for item in state.items] == [("half of", Status.CANCELLED)]
    assert state.last == "stopped after 3.0 s"


def test_a_tool_goes_from_asked_to_done_on_one_line() -> None:
    reply = Message("assistant", tool_calls=(CALL,), id="r1")
    state = _after(SENT, ReplyEnded(reply, Usage(), 1.0))
    seen = [state.items[0].status]
    for event in (
        PermissionAsked(REQUEST),
        ToolStarted(CALL),
        ToolEnded(CALL, Message("tool", "a.py", id="t1"), 2.0),
    ):
        state.apply(event, 5.0)
        seen.append(state.items[0].status)
    assert seen == [Status.FORMING, Status.ASKING, Status.LIVE, Status.DONE]
    assert len(state.items) == 1
    assert (state.items[0].note, state.items[0].took) == ("~1 tokens", "2 s")


@pytest.mark.parametrize("ending", [Ending.FAILED, Ending.REFUSED, Ending.CANCELLED])
def test_a_tool_that_did_not_work_says_how(ending: Ending) -> None:
    state = _after(ToolStarted(CALL), ToolEnded(CALL, Message("tool", "no", id="t", ending=ending), 0.1))
    assert state.items[0].status.value == ending.value


def test_the_same_call_twice_in_one_reply_is_two_lines() -> None:
    again = replace(CALL, id="c1")
    reply = Message("assistant", tool_calls=(CALL, again), id="r1")
    state = _after(
        SENT,
        ReplyEnded(reply, Usage(), 1.0),
        ToolEnded(CALL, Message("tool", "first", id="t1"), 0.0),
        ToolEnded(again, Message("tool", "second", id="t2"), 0.0),
    )
    assert [item.detail for item in state.items] == ["first", "second"]


def test_a_turn_that_dies_leaves_nothing_running() -> None:
    reply = Message("assistant", tool_calls=(CALL,), id="r1")
    state = _after(SENT, ReplyEnded(reply, Usage(), 1.0), ToolStarted(CALL), _ended(Outcome.FAILED, "gone"))
    assert [item.status for item in state.items] == [Status.CANCELLED, Status.WARNING]
    assert not state.busy


@pytest.mark.parametrize(
    ("outcome", "can_carry_on", "last"),
    [
        (Outcome.DONE, False, "done in 3.0 s"),
        (Outcome.CUT, True, "cut at the answer's limit"),
        (Outcome.BROKEN, True, "the answer broke off"),
        (Outcome.CANCELLED, False, "stopped after 3.0 s"),
        (Outcome.FAILED, False, "failed after 3.0 s"),
        (Outcome.FULL, False, "nothing was sent"),
    ],
)
def test_how_a_turn_ended_stays_on_the_status_line(outcome: Outcome, can_carry_on: bool, last: str) -> None:
    state = _after(ASKED, _ended(outcome))
    said = f"{last} · enter on an empty prompt continues" if can_carry_on else last
    assert (state.can_carry_on, state.status(99.0)) == (can_carry_on, said)


def test_what_was_used_is_said_at_the_end() -> None:
    sealed = Message("assistant", "ok", id="r1")
    state = _after(ReplyEnded(sealed, Usage(900, 90), 2.0), _ended(Outcome.DONE, usage=Usage(12_345, 90)))
    assert state.last == "done in 3.0 s · 45 tokens/s · 12k in, 90 out"


def test_an_error_is_one_line_in_the_transcript() -> None:
    state = _after(ASKED, _ended(Outcome.FAILED, "The key was refused: set OPENAI_API_KEY."))
    assert (state.items[-1].text, state.items[-1].status) == (
        "The key was refused: set OPENAI_API_KEY.",
        Status.WARNING,
    )


def test_what_goes_into_the_turn_stands_where_it_went_in() -> None:
    state = _after(ASKED, SENT, TextAdded("r1", "I look."))
    state.apply(Steered(Message("user", "with tabs", id="u2", extras={"turn": "same"})), 3.0)
    state.apply(TextAdded("r2", "Tabs."), 4.0)
    assert [item.text for item in state.items] == ["hello", "I look.", "with tabs", "Tabs."]


def test_loading_another_session_forgets_the_offer_of_the_last() -> None:
    state = _after(ASKED, _ended(Outcome.CUT))
    state.load([Message("user", "other", id="u9")])
    assert (state.can_carry_on, [item.text for item in state.items]) == (False, ["other"])


def test_the_welcome_is_gone_with_the_first_message() -> None:
    state = ScreenState()
    state.notice("model: a model")
    state.welcome()
    state.notice("the draft is back")
    assert [item.text for item in state.items][1:-1] == list(WELCOME)
    state.apply(ASKED, 0.0)
    assert [item.text for item in state.items] == ["model: a model", "the draft is back", "hello"]


def test_a_reply_of_written_calls_shows_its_prose_and_its_calls_marked() -> None:
    written = '```json\n{"name": "run_command", "arguments": {"command": "ls"}}\n```'
    for prose, kinds in (("", [Kind.TOOL]), ("I look.\n\n", [Kind.ASSISTANT, Kind.TOOL])):
        reply = Message("assistant", prose + written, (CALL,), id="r1", extras={TEXT_CALLS: len(prose)})
        streamed = [ASKED, SENT, TextAdded("r1", prose), TextAdded("r1", written)]
        state = _after(*streamed, ReplyEnded(reply, Usage(), 1.0), ToolStarted(CALL))
        assert [item.kind for item in state.items[1:]] == kinds
        assert [item.text for item in state.items[1:-1]] == ["I look."] * (len(kinds) - 1)
        result = Message("tool", "a.txt", tool_call_id="c1", name="run_command", id="t1")
        state.apply(ToolEnded(CALL, result, 1.0), 9.0)
        assert (state.items[-1].form, state.items[-1].status) == ("as text", Status.DONE)
        again = ScreenState()
        again.load([ASKED.message, reply, result])
        assert [(item.id, item.text) for item in again.items] == [
            (item.id, item.text) for item in state.items
        ]


TASK = ToolCall("t1", "task", '{"prompt": "find callers"}')
TASKS = ReplyEnded(Message("assistant", "", id="r1", tool_calls=(TASK, TASK)), Usage(), 1.0)


def _in_task(*events: Event, session: str = "s1", call: ToolCall = TASK) -> list[TaskEvent]:
    return [TaskEvent(call, session, event) for event in events]


def test_a_task_shows_what_it_does_and_its_figures() -> None:
    asked = TurnStarted(Message("user", "find callers"))
    look = Message("assistant", "I look.", tool_calls=(CALL,))
    state = _after(SENT, TASKS, ToolStarted(TASK), *_in_task(asked, RequestStarted("gpt", 1, "r9")))
    item = state.items[0]
    assert (item.status, item.live, item.detail) == (Status.LIVE, "waiting for gpt", "❯ find callers")
    for event in _in_task(TextAdded("r9", "I lo"), TextAdded("r9", "ok.")):
        state.apply(event, 9.0)
    assert state.items[0].detail == "❯ find callers\nI look."
    for event in _in_task(ReplyEnded(look, Usage(100, 5, cost=0.25), 1.0), ToolStarted(CALL)):
        state.apply(event, 9.0)
    item = state.items[0]
    assert item.live == "run_command ls"
    assert item.detail == "❯ find callers\nI look.\n⚙ run_command ls"
    assert item.task == TaskRecord("s1", "gpt", requests=1, cost=0.25)
    assert state.status(9.0) == "running task find callers · 9 s"


def test_a_task_that_asks_shows_it_until_it_is_answered() -> None:
    events = _in_task(RequestStarted("gpt", 1, "r9"), PermissionAsked(REQUEST))
    state = _after(SENT, TASKS, ToolStarted(TASK), *events)
    assert state.items[0].status is Status.ASKING
    assert state.status(9.0) == "asking permission for task · 9 s"
    for event in _in_task(PermissionAnswered(CALL)):
        state.apply(event, 9.0)
    assert state.items[0].status is Status.LIVE


def test_equal_tasks_side_by_side_have_a_line_each() -> None:
    state = _after(SENT, TASKS, ToolStarted(TASK), ToolStarted(TASK))
    for session in ("s1", "s2"):
        for event in _in_task(RequestStarted(f"model of {session}", 1, "r9"), session=session):
            state.apply(event, 9.0)
    assert [item.live for item in state.items] == ["waiting for model of s1", "waiting for model of s2"]


def test_a_task_that_ended_keeps_its_figures_and_its_conversation() -> None:
    record = TaskRecord("s1", "gpt", 3, 1_200, 8_000, 0.5)
    extras = {"task": record.as_json(), "shown": "❯ find callers\nNobody."}
    result = Message("tool", "Nobody.", name="task", extras=extras)
    state = _after(SENT, TASKS, ToolStarted(TASK), *_in_task(SENT), ToolEnded(TASK, result, 2.0))
    item = state.items[0]
    assert (item.status, item.live, item.detail) == (Status.DONE, "", "❯ find callers\nNobody.")
    assert item.task == record
    loaded = ScreenState()
    loaded.load([Message("assistant", "", id="r1", tool_calls=(TASK,)), result])
    assert loaded.items[0].task == record


def test_a_task_that_is_stopped_does_nothing_any_more() -> None:
    state = _after(SENT, TASKS, ToolStarted(TASK), *_in_task(SENT), _ended(Outcome.CANCELLED))
    assert {item.status for item in state.items} == {Status.CANCELLED}
    assert {item.live for item in state.items} == {""}
