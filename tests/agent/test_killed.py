"""kill -9 in the middle of an answer: all that was told is there when the session is opened again."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from rolling_chat.agent import Chat
from rolling_chat.events import Outcome
from rolling_chat.messages import SHOWN, Ending
from rolling_chat.task_record import record_in
from tests.support.agent import ScriptedProvider, assert_well_formed, collect, make_runtime, says

PROGRAM = """
import asyncio, sys
from pathlib import Path
from rolling_chat.agent import Chat
from rolling_chat.events import TextAdded
from tests.support.agent import Gate, ScriptedProvider, make_runtime, says

async def main():
    words = " ".join(f"word{n}" for n in range(500))
    provider = ScriptedProvider([*says(words)[:-1], Gate()])
    chat = Chat.open(make_runtime(Path(sys.argv[1]), provider))
    async for event in chat.send("go"):
        if isinstance(event, TextAdded):
            print(event.text, end="", flush=True)

asyncio.run(main())
"""


async def test_what_was_told_survives(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(tmp_path),
        cwd=Path(__file__).parents[2], stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    told = await process.stdout.readuntil(b"word99 ")
    process.kill()
    told += await process.stdout.read()
    await process.wait()
    runtime = make_runtime(tmp_path, ScriptedProvider(says("Here I am again.")))
    session = runtime.store.newest(str(runtime.folder))
    chat = Chat.open(runtime, session=session)
    assert chat.session.holder == ""
    assert chat.session.messages[-1].text.startswith(told.decode())
    assert chat.session.messages[-1].ending is Ending.CANCELLED
    assert_well_formed(chat, runtime)
    assert (await collect(chat.send("and?")))[-1].outcome is Outcome.DONE
    assert_well_formed(chat, runtime)
    runtime.store.close()


IN_A_TASK = """
import asyncio, sys
from pathlib import Path
from rolling_chat.agent import Chat
from rolling_chat.events import TaskEvent, TextAdded
from tests.support.agent import Gate, ScriptedProvider, call, calls, make_runtime, says

async def main():
    words = " ".join(f"word{n}" for n in range(500))
    provider = ScriptedProvider(
        calls(call("task", '{"prompt": "look"}', "t1"), call("list_files", id="t2")),
        calls(call("list_files")), [*says(words)[:-1], Gate()],
    )
    chat = Chat.open(make_runtime(Path(sys.argv[1]), provider))
    async for event in chat.send("go"):
        if isinstance(event, TaskEvent) and isinstance(event.event, TextAdded):
            print(event.event.text, end="", flush=True)

asyncio.run(main())
"""


async def test_a_task_that_was_killed_is_kept_with_its_call(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", IN_A_TASK, str(tmp_path),
        cwd=Path(__file__).parents[2], stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    told = await process.stdout.readuntil(b"word99 ")
    process.kill()
    told += await process.stdout.read()
    await process.wait()
    runtime = make_runtime(tmp_path, ScriptedProvider(says("Here I am again.")))
    chat = Chat.open(runtime, session=runtime.store.newest(str(runtime.folder)))
    task, listing = chat.session.messages[-2:]
    assert (task.ending, listing.ending) == (Ending.CANCELLED, Ending.CANCELLED)
    record = record_in(task)
    assert record is not None
    assert record.requests == 2
    assert "⚙ list_files\n" in (task.extras or {})[SHOWN]
    assert told.decode() in (task.extras or {})[SHOWN]
    assert record_in(listing) is None
    assert (await collect(chat.send("and?")))[-1].outcome is Outcome.DONE
    chat.resume(record.session)
    assert chat.session.messages[-1].text.startswith(told.decode())
    assert chat.session.messages[-1].ending is Ending.CANCELLED
    assert_well_formed(chat, runtime)
    runtime.store.close()
