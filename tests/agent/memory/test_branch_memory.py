"""Recall in a chat: offered while rolling is on, reading this branch and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.messages import Ending
from rolling_chat.providers.offline.offline_provider import DELAY_VARIABLE
from tests.benchmarks.memory import MOST_CALLS, remember
from tests.support.agent import Opened, ScriptedProvider, assert_well_formed, call, calls, collect, says


def offered(provider: ScriptedProvider) -> list[bool]:
    return [
        any(tool["function"]["name"] == "recall" for tool in request.tools) for request in provider.requests
    ]


async def test_it_is_offered_from_the_first_request_while_rolling_is_on(opened: Opened) -> None:
    chat, runtime, provider = opened(says("ok"))
    await collect(chat.send("one"))
    foretold = await chat.session.overrides.preview()
    assert (
        foretold.tools > chat.session.preview.report().tools
    )  # what it costs is in what /rolling-context foretells
    chat.session.overrides.set_rolling(True)
    await collect(chat.send("two"))
    assert offered(provider) == [False, True]
    assert "recall" in str(
        runtime.store.basis(runtime.store.requests(chat.session.info.id)[-1].settings_digest)
    )


async def test_tools_that_are_named_are_those_and_no_others(opened: Opened) -> None:
    chat, _, provider = opened(says("ok"), tools=("read_file",))
    chat.session.overrides.set_rolling(True)
    await collect(chat.send("one"))
    assert offered(provider) == [False]


async def test_it_reads_the_branch_back_without_asking_for_leave(opened: Opened) -> None:
    chat, runtime, _ = opened(
        says("Noted."), calls(call("recall", '{"id": "r1"}')), says("It is in ops."),
        calls(call("recall", '{"search": "deploy keys"}')), says("As I said."),
    )  # fmt: skip
    chat.session.overrides.set_rolling(True)
    for text in ("The deploy key is in ops/keys.txt.", "Where is it?", "Once more?"):
        await collect(chat.send(text))
    results = [message for message in chat.session.messages if message.role == "tool"]
    assert [message.ending for message in results] == [Ending.COMPLETE] * 2
    assert all("The deploy key is in ops/keys.txt." in message.text for message in results)
    assert_well_formed(chat, runtime)


async def test_an_id_that_there_is_not_is_one_line_to_the_model(opened: Opened) -> None:
    chat, _, _ = opened(calls(call("recall", '{"id": "r99"}')), says("ok"))
    chat.session.overrides.set_rolling(True)
    await collect(chat.send("go"))
    (result,) = (message for message in chat.session.messages if message.role == "tool")
    assert (result.ending, result.text) == (
        Ending.FAILED, "There is no 'r99' here: this conversation has r1 to r2."
    )  # fmt: skip


async def test_files_that_were_read_are_known_with_what_became_of_them(opened: Opened) -> None:
    reads = [call("read_file", f'{{"path": "{name}.txt"}}', name) for name in "abc"]
    chat, runtime, _ = opened(calls(*reads), says("ok"))
    for name in "abc":
        (runtime.folder / f"{name}.txt").write_text(name)
    await collect(chat.send("read them"))
    (runtime.folder / "b.txt").write_text("other")
    (runtime.folder / "c.txt").unlink()
    files = {
        Path(file.path).name: (file.action, file.since.value) for file in await chat.session.files.states()
    }
    assert files == {
        "a.txt": ("read", "unchanged"), "b.txt": ("read", "changed since"), "c.txt": ("read", "gone")
    }  # fmt: skip


@pytest.mark.parametrize("recall", [True, False])
async def test_what_was_said_early_is_remembered_with_recall_and_lost_by_trimming_alone(
    recall: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DELAY_VARIABLE, "0")
    outcomes = await remember(1_000, recall=recall, summarize="off", turns=25, facts=6)
    remembered = [one for one in outcomes if one.right and one.calls <= MOST_CALLS]
    assert len(remembered) == len(outcomes) if recall else len(remembered) < len(outcomes) / 2
