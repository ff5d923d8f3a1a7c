"""A chat whose model edits files as it is told, in a real folder with a real store."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

from rolling_chat.agent import Chat
from rolling_chat.messages import ToolCall
from rolling_chat.settings.schema import AgentSettings, Settings
from tests.support.agent import MODEL, ScriptedProvider, calls, make_runtime, says

ALL = Settings(model=MODEL, agent=AgentSettings(approvals="all"))
NAMES = ("a.txt", "b.txt", "sub/c.txt", "sub/deep/d.txt")
TEMPORARY = ".rolling-chat-"  # what a killed process leaves behind begins with it


def call_of(name: str, number: int = 0, **arguments: object) -> ToolCall:
    return ToolCall(f"c{number}", name, json.dumps(arguments))


@dataclass
class EditingDesk:
    """A chat that goes on with the newest session of its home, if there is one."""

    home: Path
    provider: ScriptedProvider = field(default_factory=lambda: ScriptedProvider(says("Done.")))

    def __post_init__(self) -> None:
        runtime = make_runtime(self.home, self.provider, settings=ALL, database=self.home / "sessions.db")
        self.folder = runtime.folder
        self.chat = Chat.open(runtime, session=runtime.store.newest(str(runtime.folder)))

    async def turn(self, *made: ToolCall) -> None:
        """Take one turn in which the model makes these calls."""
        self.provider.scripts = [calls(*made), says("Done.")] if made else [says("Done.")]
        self.provider.requests.clear()
        async for _ in self.chat.send("go on"):
            pass

    @property
    def head(self) -> str:
        messages = self.chat.session.messages
        return messages[-1].id if messages else ""

    def files(self) -> dict[str, bytes]:
        """Everything in the folder, folders too."""
        found = sorted(self.folder.rglob("*"))
        return {
            str(one.relative_to(self.folder)): one.read_bytes() if one.is_file() else b"/" for one in found
        }

    def contents(self) -> dict[str, bytes]:
        """The files in the folder, without what a killed process left behind."""
        return {
            name: data
            for name, data in self.files().items()
            if data != b"/" and not Path(name).name.startswith(TEMPORARY)
        }

    def go_before(self, number: int) -> list[str]:
        """Rewind conversation and files to before a turn; return what is said of files that are left."""
        session = self.chat.session
        asked = session.history.turns()[number].message.id
        move = session.files.move(session.head, session.history.before(asked))
        session.files.make(move)
        session.history.rewind(asked)
        return list(move.left)

    def redo(self) -> list[str]:
        session = self.chat.session
        target = session.history.redo_target()
        assert target is not None
        move = session.files.move(session.head, target)
        session.files.make(move)
        session.history.redo()
        return list(move.left)

    def edit(self, number: int, name: str, kind: int) -> ToolCall:
        """Return a call that changes a file, or makes it, depending on what is there."""
        there = (self.folder / name).is_file()
        match kind:
            case 0 | 1 if there:
                return call_of("delete_file", number, path=name)
            case 2 if there:
                return call_of("move_file", number, path=name, to=f"{name}.moved")
            case _ if there:
                new = f"line {kind} and line"
                return call_of("edit_file", number, path=name, old="line", new=new, all=False)
            case _:
                return call_of("write_file", number, path=name, content=f"a line {kind}\n")

    def random_edits(self, rng: random.Random) -> list[ToolCall]:
        """Return up to three calls that change files."""
        return [
            self.edit(number, rng.choice(NAMES), rng.randrange(6)) for number in range(rng.randrange(1, 4))
        ]
