"""Ten tasks of 10 to 60 calls over HTTP: a scripted model, real tools, a small window that is rolled.

Of every task: the files are right at the end, byte for byte; no request is over the server's window, and
none has a call without its result; nothing was refused that the script did not mean to be.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import pytest

from rolling_chat.agent import Chat, Runtime
from rolling_chat.events import Outcome, ToolEnded, TurnEnded
from rolling_chat.messages import Ending, Json
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.catalog import load_catalog
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import AgentSettings, ContextSettings, ModelSettings, Settings
from tests.support.agent import assert_well_formed, collect, of_kind
from tests.support.servers import Call, OpenAIServer, Reply

MODEL, KEY, WINDOW = "openai/gpt-4o", "sk-right-key", 8_000

Files: TypeAlias = dict[str, bytes]
Steps: TypeAlias = Sequence[Sequence[tuple[str, dict[str, Json]]]]


@dataclass(frozen=True)
class Task:
    """The files before and after, the calls reply by reply, and how many of them fail on purpose."""

    name: str
    before: Files
    after: Files
    steps: Steps
    failing: int = 0

    @property
    def calls(self) -> int:
        return sum(map(len, self.steps))


def _lines(count: int, text: str) -> bytes:
    return "".join(f"{text} {number}\n" for number in range(1, count + 1)).encode()


def _rename() -> Task:
    """A function is renamed in a dozen files, each of them searched, read and edited."""
    before = {
        f"src/part{n}.py": b"# part\n" * 60 + b"def use():\n    return old_name(%d)\n" % n for n in range(12)
    }
    after = {name: data.replace(b"old_name", b"new_name") for name, data in before.items()}
    steps: list[list[tuple[str, dict[str, Json]]]] = [[("search_files", {"pattern": "old_name"})]]
    for name in before:
        steps.append([("read_file", {"path": name})])
        steps.append([("edit_file", {"path": name, "old": "old_name(", "new": "new_name("})])
    return Task("rename", before, after, steps)


def _create() -> Task:
    """Twenty files are written, some with what a shell or a parser could trip over."""
    texts = {
        f"out/{n:02}.md": f"# {n}\n\n```\n$HOME \\n {{}} 'é' \u2028 😀\n```\n" * (n + 1) for n in range(20)
    }
    steps = [[("write_file", {"path": name, "content": text})] for name, text in texts.items()]
    return Task("create", {}, {name: text.encode() for name, text in texts.items()}, steps)


def _move() -> Task:
    """Fifteen files move into folders that are not there yet, looked at before and after."""
    before = {f"a{n}.txt": _lines(30, f"file {n}") for n in range(15)}
    after = {f"kept/{n % 3}/a{n}.txt": before[f"a{n}.txt"] for n in range(15)}
    moves = [[("move_file", {"path": f"a{n}.txt", "to": f"kept/{n % 3}/a{n}.txt"})] for n in range(15)]
    return Task("move", before, after, [[("list_files", {})], *moves, [("list_files", {"path": "kept"})]])


def _delete() -> Task:
    """A dozen files are read, and every other one is deleted."""
    before = {f"log/{n}.txt": _lines(120, f"entry of {n}") for n in range(24)}
    after = {name: data for n, (name, data) in enumerate(before.items()) if n % 2}
    steps: list[list[tuple[str, dict[str, Json]]]] = []
    for n, name in enumerate(before):
        if n % 2 == 0:
            steps += [[("read_file", {"path": name})], [("delete_file", {"path": name})]]
    return Task("delete", before, after, steps)


def _windows_line_ends() -> Task:
    """A file with line ends of Windows, a BOM and no final newline keeps them over thirty edits."""
    text = "\ufeff" + "\r\n".join(f"key{n} = {n}" for n in range(60))
    wanted = text
    steps: list[list[tuple[str, dict[str, Json]]]] = [[("read_file", {"path": "app.ini"})]]
    for n in range(0, 60, 2):
        new = f"key{n} = {n * n + 1}"
        wanted = wanted.replace(f"key{n} = {n}\r\n", f"{new}\r\n")
        edit = {"path": "app.ini", "old": f"key{n} = {n}\nkey", "new": f"{new}\nkey"}
        steps.append([("edit_file", dict(edit))])
    return Task("line ends", {"app.ini": text.encode()}, {"app.ini": wanted.encode()}, steps)


def _find() -> Task:
    """A fact among two hundred files: searches, reads around it, and the answer in a file."""
    before = {f"notes/{n:03}.md": _lines(40, f"note {n} says nothing, line") for n in range(200)}
    before["notes/137.md"] += b"The port of the heron is 4711.\n"
    steps: list[list[tuple[str, dict[str, Json]]]] = [[("list_files", {"path": "notes"})]]
    steps += [[("search_files", {"pattern": word})] for word in ("says nothing", "line 40", "heron")]
    steps += [[("read_file", {"path": f"notes/{n}.md"})] for n in range(134, 140)]
    steps += [[("write_file", {"path": "answer.txt", "content": "4711\n"})]]
    return Task("find", before, before | {"answer.txt": b"4711\n"}, steps)


def _fix() -> Task:
    """A test fails, is read, is fixed and run again, until all of five faults are gone."""
    broken = "".join(f"def f{n}(x):\n    return x + {n + 1}\n\n\n" for n in range(5))
    fixed = broken
    check = "from faulty import *\nfor n in range(5):\n    assert globals()[f'f{n}'](1) == 1 + n, n\n"
    run = ("run_command", {"command": f"{sys.executable} -B check.py"})
    steps: list[list[tuple[str, dict[str, Json]]]] = []
    for n in range(5):
        old, new = f"def f{n}(x):\n    return x + {n + 1}\n", f"def f{n}(x):\n    return x + {n}\n"
        fixed = fixed.replace(old, new)
        steps += [[run], [("read_file", {"path": "faulty.py"})]]
        steps += [[("edit_file", {"path": "faulty.py", "old": old, "new": new})]]
    before = {"faulty.py": broken.encode(), "check.py": check.encode()}
    return Task("fix", before, before | {"faulty.py": fixed.encode()}, [*steps, [run]])


def _journal() -> Task:
    """Sixty edits of one file, each of which quotes what the one before it wrote."""
    entries = [f"- step {n}\n" for n in range(61)]
    steps = [
        [("edit_file", {"path": "journal.md", "old": before, "new": before + after})]
        for before, after in itertools.pairwise(entries)
    ]
    wanted = "".join(entries).encode()
    return Task("journal", {"journal.md": entries[0].encode()}, {"journal.md": wanted}, steps)


def _mistakes() -> Task:
    """Every second call is wrong, and the file is as if it had never been made."""
    before = {"a.py": b"x = 1\nx = 1\ny = 2\n" + b"# filler\n" * 100}
    wrong: list[tuple[str, dict[str, Json]]] = [
        ("edit_file", {"path": "a.py", "old": "z = 3\n", "new": ""}),
        ("edit_file", {"path": "a.py", "old": "x = 1\n", "new": "x = 2\n"}),
        ("edit_file", {"path": "b.py", "old": "y", "new": "z"}),
        ("write_file", {"path": "../out.py", "content": "no"}),
        ("write_file", {"path": "a.py", "content": "all gone"}),
        ("no_such_tool", {}),
        ("edit_file", {"old": "y"}),
        ("move_file", {"path": "a.py", "to": "a.py"}),
        (
            "multi_edit",
            {"path": "a.py", "edits": [{"old": "y = 2", "new": "y = 0"}, {"old": "w", "new": ""}]},
        ),
        ("delete_file", {"path": "b.py"}),
    ]
    steps: list[list[tuple[str, dict[str, Json]]]] = []
    for n, call in enumerate(wrong):
        steps += [[call], [("edit_file", {"path": "a.py", "old": f"y = {n + 2}\n", "new": f"y = {n + 3}\n"})]]
    return Task("mistakes", before, {"a.py": before["a.py"].replace(b"y = 2", b"y = 12")}, steps, len(wrong))


def _digest() -> Task:
    """Ten files that are each larger than the window are read by parts, three calls a reply, and reported."""
    before = {f"big/{n}.log": _lines(4_000, f"request {n} took a while, number") for n in range(10)}
    steps: list[list[tuple[str, dict[str, Json]]]] = []
    for n, name in enumerate(before):
        parts = [("read_file", {"path": name, "start": at, "end": at + 400}) for at in (1, 2_000, 3_600)]
        steps += [[*parts], [("write_file", {"path": f"report/{n}.txt", "content": f"{n}: 4,000 lines\n"})]]
    reports = {f"report/{n}.txt": f"{n}: 4,000 lines\n".encode() for n in range(10)}
    return Task("digest", before, before | reports, steps)


TASKS: dict[str, Callable[[], Task]] = {
    "create": _create,
    "move": _move,
    "rename": _rename,
    "delete": _delete,
    "line ends": _windows_line_ends,
    "find": _find,
    "fix": _fix,
    "journal": _journal,
    "mistakes": _mistakes,
    "digest": _digest,
}
_FAST = {"move", "mistakes"}


@pytest.mark.parametrize(
    "name", [name if name in _FAST else pytest.param(name, marks=pytest.mark.slow) for name in TASKS]
)
async def test_a_task_is_carried_out_to_the_byte_within_the_window(tmp_path: Path, name: str) -> None:
    task = TASKS[name]()
    assert 10 <= task.calls <= 60
    folder = tmp_path / "work"
    _write(folder, task.before)
    async with OpenAIServer(_model(task.steps), window=WINDOW, key=KEY) as server:
        runtime = _runtime(tmp_path, folder, server.api_base)
        chat = Chat.open(runtime, rolling=True)
        events = await collect(chat.send(f"Carry out the task {name!r}."))
        await runtime.provider.close()

    end = events[-1]
    assert isinstance(end, TurnEnded)
    assert (end.outcome, end.error) == (Outcome.DONE, "")
    assert chat.session.messages[-1].text == "All done."
    assert _read(folder) == task.after
    results = [event.message for event in of_kind(events, ToolEnded)]
    assert len(results) == task.calls
    assert sum(result.ending is not Ending.COMPLETE for result in results) == task.failing
    assert [request.refused for request in server.requests] == [""] * (len(task.steps) + 1)
    assert max(request.tokens for request in server.requests) <= WINDOW
    records = runtime.store.requests(chat.session.info.id)
    for record, request in zip(records, server.requests, strict=True):
        assert request.tokens <= record.bound <= WINDOW
        assert f"Carry out the task {name!r}." in [message["content"] for message in request.messages]
    assert_well_formed(chat, runtime)
    runtime.store.close()


def _model(steps: Steps) -> Callable[[dict[str, Any]], Reply]:
    """A model that makes the calls step by step, whatever it is sent."""
    left = iter(steps)

    def reply(_body: dict[str, Any]) -> Reply:
        step = next(left, None)
        if step is None:
            return Reply("All done.")
        made = (Call(name, json.dumps(given), f"c{at}") for at, (name, given) in enumerate(step))
        return Reply("Next.", tuple(made))

    return reply


def _runtime(tmp_path: Path, folder: Path, api_base: str) -> Runtime:
    environ = {
        "ROLLING_CHAT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "OPENAI_API_KEY": KEY
    }  # fmt: skip
    paths, catalog = find_paths(environ), load_catalog()
    settings = Settings(
        model=MODEL,
        models=MappingProxyType({MODEL: ModelSettings(max_input_tokens=WINDOW, api_base=api_base)}),
        agent=AgentSettings(approvals="all", max_tool_iterations=70),
        context=ContextSettings(summarize="off"),
    )
    provider = ModelProvider(environ=environ, catalog=catalog)
    return Runtime(settings, paths, catalog, open_store(paths.database), provider, folder, environ)


def _write(folder: Path, files: Files) -> None:
    folder.mkdir()
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _read(folder: Path) -> Files:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
