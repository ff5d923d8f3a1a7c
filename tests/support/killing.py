"""Processes that write to a store until they are killed, many of them a second."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

# Writes to the store whatever can be written, and acknowledges what the store has taken, never before.
STORE_WRITER = """
import json, os, random
from rolling_chat.messages import MadeBy, Message
from rolling_chat.sessions.records import RequestRecord, StoredSummary
from rolling_chat.sessions.opening import open_store

def write(database, acks, seed):
    def say(**what):
        os.write(acks, json.dumps(what).encode() + b"\\n")
    rng = random.Random(seed)
    store = open_store(database)
    say(op="opened")
    sessions = [info.id for info in store.sessions()]
    while len(sessions) < 2:
        sessions.append(store.create_session(folder="/w", model="m", rolling=True).id)
        said = store.append(sessions[-1], Message("user", "begin " + "x" * rng.randrange(3000)))
        say(op="said", session=sessions[-1], id=said.id, parent="", text=said.text)
    for session in sessions:
        store.claim(session)
    for turn in range(10_000):
        session = rng.choice(sessions)
        branch = store.branch(session)
        parent = branch[-1].id if branch else ""
        match rng.randrange(8):
            case 0 | 1 | 2:
                text = f"{seed}.{turn} " + "word " * rng.randrange(400)
                said = store.append(session, Message("user", text))
                say(op="said", session=session, id=said.id, parent=parent, text=said.text)
            case 3 | 4:
                reply = store.begin_reply(session, MadeBy("demo", "m"))
                text = ""
                for piece in range(rng.randrange(1, 5)):
                    store.grow_reply(reply, f"<{seed}.{turn}.{piece}>")
                    text += f"<{seed}.{turn}.{piece}>"
                    say(op="grown", session=session, id=reply, parent=parent, text=text)
                store.seal_reply(reply, Message("assistant", text))
                say(op="said", session=session, id=reply, parent=parent, text=text)
            case 5:
                head = rng.choice(["", *(message.id for message in branch)])
                store.move_head(session, head, "m")
                say(op="moved", session=session, id=head)
            case 6:
                record = RequestRecord("", session, parent, "m", {"n": turn}, "d", 1, "h", 1, 1)
                say(op="logged", id=store.log_request(record))
            case 7:
                if branch:
                    before = store.summary(session)
                    made = StoredSummary(f"{seed}.{turn}", rng.choice(branch).id)
                    kept = store.publish_summary(session, made, expected=before.generation if before else 0)
                    say(op="summed", session=session, id=kept.through, text=kept.text, n=kept.generation)
"""

# A chat that answers and answers; says what a screen would paint by then, in the moment it is told.
CHATTER = """
import asyncio, json, os, random
from pathlib import Path
from rolling_chat.agent import Chat
from rolling_chat.events import ReasoningAdded, TextAdded, TurnStarted
from rolling_chat.messages import Message, Usage
from rolling_chat.providers.protocol import Finished, ReasoningDelta, TextDelta
from rolling_chat.sessions.opening import open_store
from tests.support.tui import ScriptedProvider, make_chat

class Talker(ScriptedProvider):
    def __init__(self, rng, turns):
        super().__init__()
        self.rng, self.turns = rng, turns
    async def stream(self, request):
        rng, text = self.rng, ""
        for piece in range(rng.randrange(50, 400)):
            bit = rng.choice(["word ", "**bold** ", "\\n", "漢字", "👩‍💻 ", "`code` ", "é", "x" * 200])
            if piece < 20:
                yield ReasoningDelta(bit)
            else:
                text += bit
                yield TextDelta(bit)
            await asyncio.sleep(rng.choice([0, 0, 0.0005, 0.004]))
        yield Finished(Message("assistant", text or "nothing"), Usage(100, 20))

async def talk(database, rng, say, turns):
    provider, store = Talker(rng, turns), open_store(database)
    chat = make_chat(database.parent if database else Path(), provider=provider, store=store)
    for turn in range(turns):
        async for event in chat.send(f"question {turn}"):
            match event:
                case TurnStarted(message):
                    say(op="said", id=message.id, text=message.text)
                case ReasoningAdded(id, text):
                    say(op="thought", id=id, text=text)
                case TextAdded(id, text):
                    say(op="painted", id=id, text=text)
            await asyncio.sleep(0.002)  # it paints, and may die of it, before it takes what comes next

def write(database, acks, seed):
    def say(**what):
        os.write(acks, json.dumps(what).encode() + b"\\n")
    asyncio.run(talk(database, random.Random(seed), say, 10_000))

# what is loaded once is loaded here, before anybody is born to be killed
asyncio.run(talk(None, random.Random(0), lambda **what: None, 1))
"""

# A chat whose model edits files, goes back and forth; says what the files hold at each head once it is there.
EDITOR = """
import asyncio, base64, json, os, random, tempfile
from pathlib import Path
from tests.support.edits import NAMES, EditingDesk

async def work(desk, rng, say, acts):
    for _ in range(acts):
        history = desk.chat.session.history
        act = rng.choice(["turn", "turn", "turn", "rewind", "rewind", "redo", "outside"])
        turns, left = history.turns(), []
        name = rng.choice(NAMES)
        say(op="begun", act=act, name=name)
        match act:
            case "turn":
                await desk.turn(*desk.random_edits(rng))
            case "rewind" if turns:
                left = desk.go_before(max(0, len(turns) - rng.randrange(1, 4)))
            case "redo" if history.redo_target() is not None:
                left = desk.redo()
            case "outside" if rng.random() < 0.3 and (desk.folder / name).is_file():
                (desk.folder / name).write_text("somebody else's line\\n")
        files = {name: base64.b64encode(data).decode() for name, data in desk.contents().items()}
        say(op="at", act=act, head=desk.head, files=files, left=left)

def write(database, acks, seed):
    def say(**what):
        os.write(acks, json.dumps(what).encode() + b"\\n")
    asyncio.run(work(EditingDesk(database.parent), random.Random(seed), say, 10_000))

with tempfile.TemporaryDirectory() as folder:
    asyncio.run(work(EditingDesk(Path(folder)), random.Random(0), lambda **what: None, 4))
"""

# Imports once and forks for every victim; `kill -9` comes after so many seconds, wherever it is then.
_EXECUTIONER = """
import json, os, signal, sys, time
from pathlib import Path
from rolling_chat.sessions.opening import open_store

for line in sys.stdin:
    database, acks, seed, seconds, only_open = json.loads(line)
    out = os.open(acks, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    pid = os.fork()
    if not pid:
        try:
            if only_open:
                open_store(Path(database))
                os.write(out, b'{"op": "opened"}\\n')
                time.sleep(60)
            write(Path(database), out, seed)
        except BaseException as error:
            os.write(out, json.dumps({"op": "failed", "text": repr(error)}).encode() + b"\\n")
        os._exit(0)
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        time.sleep(0.0002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(out)
    print("dead", flush=True)
"""


class Executioner:
    """Starts writers and kills them; a context manager. `writer` is what each runs."""

    def __init__(self, writer: str = STORE_WRITER) -> None:
        self._writer = writer

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._writer + _EXECUTIONER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def kill(
        self, database: Path, acks: Path, seed: int, *, after: float, only_open: bool = False
    ) -> list[dict[str, Any]]:
        """Let a process write for `after` seconds; returns what the store had told it, in order."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        acks.unlink(missing_ok=True)
        self._process.stdin.write(json.dumps([str(database), str(acks), seed, after, only_open]) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "dead\n"
        return [json.loads(line) for line in acks.read_text().splitlines()]
