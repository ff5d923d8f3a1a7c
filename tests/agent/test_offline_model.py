"""The whole road with nothing scripted: Runtime.create, litellm, the offline model, real tools."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rolling_chat.agent import Chat, Runtime
from rolling_chat.events import Outcome, Permission, PermissionAnswer, PermissionRequest, TextAdded, ToolEnded
from rolling_chat.messages import Ending
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import Settings
from tests.support.agent import assert_well_formed, collect, of_kind

pytestmark = pytest.mark.xdist_group("litellm")


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    environ = {"ROLLING_CHAT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("The lighthouse was built in 1874 by Anna Berg.\n")
    runtime = Runtime.create(Settings(model="demo/offline"), find_paths(environ), folder, environ)
    yield runtime
    runtime.store.close()


async def test_a_session_with_tools_is_counted_as_the_model_counts(runtime: Runtime) -> None:
    asked: list[str] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request.detail)
        return PermissionAnswer(Permission.ONCE)

    chat = Chat.open(runtime, ask=ask)
    await chat.warm_up()
    await collect(chat.send("list the files"))
    await collect(chat.send("read notes.txt"))
    events = await collect(chat.send("run the command echo hello"))
    assert asked == ["echo hello"]
    assert of_kind(events, ToolEnded)[0].message.text == "hello\n[exit code 0]"
    events = await collect(chat.send("Who built the lighthouse?"))
    assert "Anna Berg" in "".join(event.text for event in of_kind(events, TextAdded))
    records = runtime.store.requests(chat.session.info.id)
    assert len(records) == 7
    assert [record.estimated for record in records] == [record.usage.input_tokens for record in records]
    assert_well_formed(chat, runtime)


async def test_a_stop_in_mid_answer_leaves_order(runtime: Runtime) -> None:
    (runtime.folder / "long.txt").write_text("".join(f"Line {n} is about fish.\n" for n in range(900)))
    chat = Chat.open(runtime)
    events = []
    async for event in chat.send("read long.txt"):
        events.append(event)
        if isinstance(event, TextAdded):
            chat.stop()
    assert events[-1].outcome in {Outcome.CANCELLED, Outcome.DONE}
    assert events[-1].outcome is Outcome.DONE or chat.session.messages[-1].ending is Ending.CANCELLED
    assert_well_formed(chat, runtime)
    assert (await collect(chat.send("list the files")))[-1].outcome is Outcome.DONE


async def test_a_long_session_goes_on_for_ever_once_rolling_is_on(runtime: Runtime) -> None:
    chat = Chat.open(runtime, rolling=True)
    for number in range(12):
        events = await collect(chat.send(f"Note {number}: " + f"the number {number} is a good one. " * 80))
        assert events[-1].outcome is Outcome.DONE, events[-1].error
    assert any(record.totals["fates"]["omitted"] for record in runtime.store.requests(chat.session.info.id))
