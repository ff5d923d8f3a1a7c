"""The model is told when little room is left, once between two trims, and never in the prompt's beginning."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rolling_chat.message_lines import without_room_line
from rolling_chat.messages import Message
from tests.support.agent import Opened, ScriptedProvider, call, calls, collect, says

TOLD = re.compile(
    r"\[room: about [\d,]+ tokens are left before older messages leave your prompt; note what must stay\]"
)
AFTER = re.compile(r"\[about [\d,]+ tokens of room after this\]")


def told(messages: Sequence[Message]) -> list[int]:
    return [at for at, one in enumerate(messages) if TOLD.search(f"{one.text}\n{one.note}")]


def sent(provider: ScriptedProvider) -> list[Sequence[Message]]:
    return [request.messages for request in provider.requests if request.messages[0].role == "system"]


async def test_it_is_told_once_before_a_trim_and_the_beginning_stays(opened: Opened) -> None:
    chat, _, provider = opened(says("words " * 110), window=4_000, tools=("note", "recall"))
    chat.session.overrides.set_rolling(on=True)
    before: Sequence[Message] = ()
    trims, seen = 0, 0
    for number in range(14):
        await collect(chat.send(f"question {number}"))
        messages = sent(provider)[-1]
        if before and messages[0] != before[0]:
            trims += 1
            assert AFTER.search(messages[0].text)
        elif before:
            assert [one.text for one in messages[: len(before)]] == [one.text for one in before]
        before = messages
        seen = len(told(chat.session.messages))
    assert trims >= 2
    assert 1 <= seen <= trims + 1  # not where one turn takes all of the rest


async def test_it_comes_with_the_result_of_a_tool(
    opened: Opened,
) -> None:
    big = "x = 1  # a line of code\n" * 160
    chat, runtime, _ = opened(
        calls(call("read_file", '{"path": "a.py"}')), says("done"),
        window=4_000, tools=("note", "recall", "read_file"),
    )  # fmt: skip
    (runtime.folder / "a.py").write_text(big)
    chat.session.overrides.set_rolling(on=True)
    await collect(chat.send("words " * 950 + "read a.py"))
    roles = [chat.session.messages[at].role for at in told(chat.session.messages)]
    assert roles == ["tool"]


async def test_with_rolling_off_nothing_is_told(opened: Opened) -> None:
    chat, _, _ = opened(says("words " * 100), window=4_000, tools=("note", "recall"))
    for number in range(6):
        await collect(chat.send(f"question {number}"))
    assert told(chat.session.messages) == []


def test_a_summary_is_made_without_the_line() -> None:
    line = "[room: about 370 tokens are left before older messages leave your prompt; note what must stay]"
    assert without_room_line(f"why?\n\n{line}") == "why?"
    assert without_room_line(f"{line}\nthe result") == "\nthe result"
    assert without_room_line("a [room: about that] of mine") == "a [room: about that] of mine"
