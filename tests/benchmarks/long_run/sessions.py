"""One long session, resumable, and a fresh session for each of its tasks, by the real program."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rolling_chat.agent import Chat, Runtime
from rolling_chat.events import Outcome, PromptPlanned, TurnEnded
from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.catalog import ModelCatalog
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import AgentSettings, ContextSettings, Settings
from rolling_chat.settings.trust import FolderTrust
from tests.benchmarks.long_run.agent import Agent
from tests.benchmarks.long_run.provider import Counts, RuleProvider
from tests.benchmarks.long_run.world import Turn, World

MODEL = "openai/long-run"
TOOLS = ("read_file", "list_files", "search_files", "run_command", "edit_file", "recall")
JOURNAL = "journal.jsonl"
_BEGAN = 1_790_000_000.0  # the world's first day, in seconds since the epoch
_TURN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run: a world by its seed and the size of its outputs, a window, and how many tokens go through.

    An agent without `recalls` does not look for what it does not see. Without `fresh` no task is done in a
    session of its own.
    """

    window: int
    tokens: int
    seed: int = 1
    output: int = 6_000
    recalls: bool = True
    fresh: bool = True


@dataclass(frozen=True, slots=True)
class Done:
    """How a turn went: `tokens` are those that it added, `head` is the session's newest message after it.

    `is_done` and `is_done_fresh` are None where there was no task, or no fresh session.
    """

    turn: int
    kind: str
    stated: int
    tokens: int
    head: str
    counts: Counts
    is_done: bool | None = None
    is_done_fresh: bool | None = None
    answer: str = ""
    expected: str = ""


@dataclass
class LongRun:
    """A run with its state in a folder: where it was stopped it goes on, also after a kill."""

    plan: Plan
    folder: Path
    _clock: float = _BEGAN
    _done: list[Done] = field(default_factory=list)

    async def turns(self) -> list[Done]:
        """Run until enough tokens went through; return all turns, those of earlier processes too."""
        self._done = self._read_journal()
        place = _Place(self.folder / "long", self)
        fresh = _Place(self.folder / "fresh", self, is_saved=False)
        try:
            await self._go_on(place, fresh)
        finally:
            place.close()
            fresh.close()
        return self._done

    def now(self) -> float:
        """The time in the world."""
        return self._clock

    async def _go_on(self, place: _Place, fresh: _Place) -> None:
        chat = place.open_newest(self._done[-1].head if self._done else "")
        await chat.session.preview.ready()
        world = World(self.plan.seed, self.plan.output)
        through = sum(one.tokens for one in self._done)
        with (self.folder / JOURNAL).open("a", encoding="utf-8") as journal:
            for turn in world.turns():
                if turn.number < len(self._done):
                    continue
                if through >= self.plan.tokens:
                    break
                self._clock = _BEGAN + _TURN_SECONDS * turn.number
                done = await place.take(chat, turn)
                if turn.kind and self.plan.fresh:
                    done = replace(done, is_done_fresh=await self._try_fresh(fresh, world, turn))
                self._done.append(done)
                through += done.tokens
                journal.write(json.dumps(asdict(done)) + "\n")
                journal.flush()
        chat.close()

    async def _try_fresh(self, place: _Place, world: World, turn: Turn) -> bool:
        """Do a task in a session of its own, which begins with the facts that it takes."""
        chat = Chat.open(place.runtime)
        for earlier in (*world.before_fresh(turn), turn):
            done = await place.take(chat, earlier)
        chat.close()
        place.runtime.store.delete(chat.session.info.id)
        return bool(done.is_done)

    def _read_journal(self) -> list[Done]:
        """Return the turns of earlier processes; a last line that was cut off is dropped."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / JOURNAL
        header = json.dumps(asdict(replace(self.plan, tokens=0))) + "\n"
        if not path.exists():
            path.write_text(header, encoding="utf-8")
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if lines[:1] != [header]:
            raise ValueError(f"{path} is of another run: {lines[0].strip()}")
        whole = [line for line in lines if line.endswith("\n")]
        path.write_text("".join(whole), encoding="utf-8")
        return [_read_done(json.loads(line)) for line in whole[1:]]


def _read_done(data: dict[str, Any]) -> Done:
    return Done(**{**data, "counts": Counts(**data["counts"])})


class _Place:
    """The program in a folder: its store, its settings, and the files of the world."""

    def __init__(self, home: Path, run: LongRun, *, is_saved: bool = True) -> None:
        self._work = home / "work"
        self._work.mkdir(parents=True, exist_ok=True)
        self._cap = ContextSettings().max_tool_result_tokens
        environ = {
            "ROLLING_CHAT_HOME": str(home / "home"), "HOME": str(home), "PATH": os.environ["PATH"],
            "OPENAI_API_KEY": "none",
        }  # fmt: skip
        paths = find_paths(environ)
        self.provider = RuleProvider(Agent(recalls=run.plan.recalls), run.plan.window)
        self.runtime = Runtime(
            settings=Settings(
                model=MODEL,
                context=ContextSettings(enabled=True, summarize="extract"),
                agent=AgentSettings(approvals="all", tools=TOOLS, sandbox="off"),
            ),
            paths=paths,
            catalog=ModelCatalog({MODEL: _entry(run.plan.window)}),
            store=open_store(paths.database if is_saved else None, clock=run.now),
            provider=self.provider,
            folder=self._work,
            environ=environ,
            clock=run.now,
            given_trust=FolderTrust(self._work, paths, everything=True),
            save=is_saved,
        )

    def close(self) -> None:
        """Close the store."""
        self.runtime.store.close()

    def open_newest(self, head: str) -> Chat:
        """Open the session of an earlier process where its last whole turn ended, or a new one."""
        sessions = self.runtime.store.sessions()
        if not sessions:
            return Chat.open(self.runtime)
        chat = Chat.open(self.runtime, session=sessions[0])
        ids = [message.id for message in chat.session.messages]
        at = ids.index(head) + 1 if head else 0
        if at < len(ids):
            chat.session.history.rewind(ids[at])
        return chat

    async def take(self, chat: Chat, turn: Turn) -> Done:
        """Let the user say what they say in a turn, and see what comes of it."""
        self._prepare(turn)
        before, trims = len(chat.session.messages), 0
        async for event in chat.send(turn.text):
            match event:
                case PromptPlanned(report):
                    trims += report.trimmed
                case TurnEnded(Outcome.FAILED, error=error):
                    raise RuntimeError(f"turn {turn.number}: {error}")
                case _:
                    pass
        await chat.session.summaries.settled()
        await chat.session.preview.ready()
        added = chat.session.messages[before:]
        answer = added[-1].text
        counts = replace(self.provider.take_counts(), trims=trims)
        return Done(
            turn.number, turn.kind, turn.stated, self._tokens(added), added[-1].id, counts,
            self._is_done(turn, answer) if turn.kind else None,
            answer=answer, expected=" ".join(turn.edit or turn.answer),
        )  # fmt: skip

    def _prepare(self, turn: Turn) -> None:
        for name, text in turn.files.items():
            path = self._work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.text(), encoding="utf-8")
        for name in turn.gone:
            with suppress(FileNotFoundError):
                (self._work / name).unlink()

    def _tokens(self, added: Sequence[Message]) -> int:
        """The tokens of messages, of a result no more than any prompt could show."""
        return sum(self._sizes(added))

    def _sizes(self, added: Sequence[Message]) -> Iterator[int]:
        for message in added:
            size = self.provider.tokenizer.count(message.text)
            yield min(size, self._cap) if message.role == "tool" else size

    def _is_done(self, turn: Turn, answer: str) -> bool:
        if turn.edit is not None:
            path, key, value = turn.edit
            lines = (self._work / path).read_text(encoding="utf-8").splitlines()
            return any(line in (f"{key} = {value}", f'{key} = "{value}"') for line in lines)
        words = f" {answer.replace(',', ' ').rstrip('.')} ".replace(". ", "  ")
        return all(f" {wanted} " in words for wanted in turn.answer)


def _entry(window: int) -> dict[str, Any]:
    return {
        "mode": "chat",
        "litellm_provider": "openai",
        "max_input_tokens": window,
        "supports_function_calling": True,
    }
