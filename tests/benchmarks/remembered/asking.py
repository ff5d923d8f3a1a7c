"""The real program on the talk, with the memory that is tried; what was answered is kept in a folder."""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rolling_chat.agent import Chat, Runtime
from rolling_chat.events import SummaryEnded, SummaryEvent, TurnEnded
from rolling_chat.messages import Ending, Message, Usage
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import Delta, Finished, Provider, Request, TextDelta
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.catalog import ModelCatalog
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import AgentSettings, ContextSettings, ModelSettings, Settings
from rolling_chat.settings.trust import FolderTrust
from tests.benchmarks.remembered.facts import Fact

_SECONDS = 3 * 3_600.0  # that a request may take: the machine may have other things to do
_MAX_ITERATIONS = 4  # a small model asks recall the same thing again and again


@dataclass(frozen=True, slots=True)
class Asked:
    """The model, its address, its window in tokens, the form of its calls, and the cap of its replies."""

    model: str
    address: str
    window: int = 4_096
    form: str = "text"
    cap: int = 80


@dataclass(frozen=True, slots=True)
class Arm:
    """What the program may use: `summarize` as the setting, `recall` the tool.

    With `at_once` the facts are asked for right after they were told: what the model can do at best.
    """

    name: str
    summarize: str = "off"
    recall: bool = False
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """A fact's answer; whether the value was in the first and in the last prompt of the turn."""

    fact: str
    answer: str
    is_right: bool
    in_first: bool
    in_last: bool
    recalls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Tried:
    """How an arm went: its answers so far, and the summary that it was left with."""

    answers: Sequence[Answered]
    summary: str = ""
    passes: int = 0
    notices: Sequence[str] = ()


@dataclass
class CappedProvider:
    """A provider whose replies within turns are capped, or taken from a record; summaries are not.

    `prompts` are those of the turn that runs, as text.
    """

    real: Provider
    cap: int
    recorded: str | None = None
    prompts: list[str] = field(default_factory=list)

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        """Answer from the record if there is one, else let the real provider answer."""
        if request.messages[0].role == "system":  # a question for a summary is one message of the user's
            self.prompts.append("\n".join(message.text for message in request.messages))
            if self.recorded is not None:
                yield TextDelta(self.recorded)
                yield Finished(Message("assistant", self.recorded, ending=Ending.COMPLETE), Usage())
                return
            request = replace(request, max_tokens=min(self.cap, request.max_tokens or self.cap))
        async with aclosing(self.real.stream(request)) as deltas:  # type: ignore[type-var]
            async for delta in deltas:
                yield delta

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class Place:
    """The program with one memory, in a folder of its own."""

    def __init__(self, home: Path, asked: Asked, arm: Arm) -> None:
        work = home / "work"
        work.mkdir(parents=True, exist_ok=True)
        environ = {
            "ROLLING_CHAT_HOME": str(home / "home"), "HOME": str(home), "PATH": os.environ["PATH"],
            "OPENAI_API_KEY": "none",
        }  # fmt: skip
        paths, catalog = find_paths(environ), ModelCatalog({})
        real = ModelProvider(environ=environ, catalog=catalog, timeout=_SECONDS)
        self.provider = CappedProvider(real, asked.cap)
        keys: dict[str, Any] = {"enabled": True, "summarize": arm.summarize}
        self.runtime = Runtime(
            settings=Settings(
                model=asked.model,
                context=ContextSettings(**keys),
                agent=AgentSettings(
                    tools=("recall",) if arm.recall else "none", max_tool_iterations=_MAX_ITERATIONS
                ),
                models={
                    asked.model: ModelSettings(
                        max_input_tokens=asked.window,
                        api_base=asked.address,
                        tool_calls=asked.form,  # type: ignore[arg-type]
                    )
                },
            ),
            paths=paths,
            catalog=catalog,
            store=open_store(paths.database),
            provider=self.provider,
            folder=work,
            environ=environ,
            given_trust=FolderTrust(work, paths, everything=True),
        )
        sessions = self.runtime.store.sessions()
        self.chat = Chat.open(self.runtime, session=sessions[0] if sessions else None, address=asked.address)
        self.chat.session.summarizer.patience = _SECONDS
        self.chat.listener.on_summary = self._on_summary
        self.notices: list[str] = []

    def _on_summary(self, event: SummaryEvent) -> None:
        if isinstance(event, SummaryEnded) and event.notice:
            self.notices.append(event.notice)

    async def close(self) -> None:
        """Close the session and the store."""
        await self.chat.disconnect()
        self.chat.close()
        self.runtime.store.close()

    async def take(self, text: str, recorded: str | None = None) -> tuple[str, int]:
        """Say `text`; return the last reply, `recorded` if that is given, and the calls before it."""
        self.provider.recorded, self.provider.prompts = recorded, []
        before, error = len(self.chat.session.messages), ""
        async for event in self.chat.send(text):
            if isinstance(event, TurnEnded):
                error = event.error
        added = self.chat.session.messages[before:]
        replies = [message.text for message in added if message.role == "assistant"]
        if not replies:
            raise RuntimeError(error or "the turn has no reply")
        return replies[-1], sum(message.role == "tool" for message in added)

    def go_back_to(self, turns: int) -> int:
        """Leave what stands behind the first `turns` turns; return how many whole turns there are."""
        chat = self.chat
        said = [turn.message for turn in chat.session.history.turns()]
        if len(said) > turns:
            chat.session.history.rewind(said[turns].id)
        messages = chat.session.messages
        whole = min(len(said), turns)
        # one that a kill has cut off is said again
        if whole and (messages[-1].role != "assistant" or messages[-1].ending is Ending.CANCELLED):
            chat.session.history.rewind(said[whole - 1].id)
            whole -= 1
        return whole


async def talk(folder: Path, asked: Asked, said: Sequence[str]) -> list[str]:
    """Return the model's replies to `said` in one session without memory; go on where it was stopped."""
    replies = read(folder / "talk.jsonl")
    if len(replies) < len(said):
        place = Place(folder / "talk", asked, Arm("talk"))
        try:
            for index in range(place.go_back_to(len(replies)), len(said)):
                recorded = replies[index]["reply"] if index < len(replies) else None
                reply, _ = await place.take(said[index], recorded)
                if recorded is None:
                    replies.append({"said": said[index], "reply": reply})
                    append(folder / "talk.jsonl", replies[-1])
        finally:
            await place.close()
    return [line["reply"] for line in replies]


async def try_arm(
    folder: Path, asked: Asked, arm: Arm, said: Sequence[tuple[str, str]], facts: Sequence[Fact]
) -> Tried:
    """Repeat the talk with an arm's memory and ask for each fact; go on where it was stopped.

    Each question is asked where the talk ended: what was asked before it is not in the prompt.
    """
    path = folder / f"{arm.name.replace(' ', '-')}.jsonl"
    answers = [Answered(**line) for line in read(path)]
    place = Place(folder / arm.name.replace(" ", "-"), asked, arm)
    try:
        summaries = place.chat.session.summaries
        for text, reply in said[place.go_back_to(len(said)) :]:
            await place.take(text, reply)
            await summaries.settled()
        summaries.begin_due()  # one that a kill has cut off
        await summaries.settled()
        for fact in facts[len(answers) :]:
            place.go_back_to(len(said))
            answers.append(await _ask(place, fact))
            append(path, asdict(answers[-1]))
        place.go_back_to(len(said))
        current = summaries.current
        passes = sum(
            record.purpose == "summary" for record in place.runtime.store.requests(place.chat.session.info.id)
        )
        return Tried(answers, current.text if current else "", passes, place.notices)
    finally:
        await place.close()


async def _ask(place: Place, fact: Fact) -> Answered:
    began = time.monotonic()
    answer, recalls = await place.take(fact.question)
    prompts = place.provider.prompts
    return Answered(
        fact.name, answer, fact.is_in(answer), fact.is_in(prompts[0]), fact.is_in(prompts[-1]), recalls,
        round(time.monotonic() - began, 1),
    )  # fmt: skip


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a journal; a last one that was cut off is dropped, there as well."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    if len(whole) < len(lines):
        path.write_text("".join(whole), encoding="utf-8")
    return [json.loads(line) for line in whole]


def append(path: Path, line: dict[str, Any]) -> None:
    """Add a line to a journal."""
    with path.open("a", encoding="utf-8") as journal:
        journal.write(json.dumps(line, ensure_ascii=False) + "\n")
