"""A disk that is full in the middle of a turn ends it in one line; with room again the chat goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.agent import Runtime
from rolling_chat.events import Outcome
from tests.support.agent import (
    Opened,
    Script,
    assert_well_formed,
    call,
    calls,
    collect,
    says,
)

LONG = "word " * 4_000


def _set_pages(runtime: Runtime, most: int) -> None:
    runtime.store._database._connection.execute(f"PRAGMA max_page_count = {most}")


@pytest.mark.parametrize("by_carrying_on", [True, False])
@pytest.mark.parametrize("where", ["in the answer", "at its end", "in a result"])
async def test_the_turn_ends_in_one_line_and_the_chat_goes_on(
    opened: Opened, where: str, by_carrying_on: bool
) -> None:
    runtimes: list[Runtime] = []

    def fill() -> None:
        _set_pages(runtimes[0], 1)  # SQLite takes the size that the file has by now

    scripts: dict[str, list[Script]] = {
        "in the answer": [[fill, *says(LONG)]],
        "at its end": [[*says(LONG)[:-1], fill, says(LONG)[-1]]],
        "in a result": [[fill, *calls(call("read_file", '{"path": "long.txt"}'))]],
    }
    chat, runtime, _ = opened(*scripts[where], says("Here I am."))
    runtimes.append(runtime)
    (Path(runtime.folder) / "long.txt").write_text(LONG)

    end = (await collect(chat.send("go")))[-1]
    assert end.outcome is Outcome.FAILED
    assert "the disk is full" in end.error
    assert "\n" not in end.error

    _set_pages(runtime, 1_000_000)
    again = chat.carry_on() if by_carrying_on else chat.send("and now?")
    assert (await collect(again))[-1].outcome is Outcome.DONE
    assert chat.session.messages[-1].text == "Here I am."
    assert_well_formed(chat, runtime)
