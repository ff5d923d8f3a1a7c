"""What is remembered: facts said early and asked hundreds of turns later, with the offline model.

It answers from nothing but the prompt it is sent, so a right answer is proof that the fact was there: in
what was left of the conversation, in the summary, or in what recall brought back. Beside it the same
session with one of the two alone, and with neither: trimming alone. The facts are asked one after the other,
so what recall brought for one question is in the prompt of the next, and counts there as in the prompt.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from rolling_chat.agent import Chat, Runtime
from rolling_chat.events import ReplyEnded, ToolStarted, TurnEnded
from rolling_chat.message_lines import RECALL
from rolling_chat.providers.offline.offline_provider import DELAY_VARIABLE
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import AgentSettings, ContextSettings, Settings
from rolling_chat.tools.registry import all_tools

MODEL = "demo/offline-32k"
CAPS = (3_000, 8_000, 20_000)
TURNS = 300
FACTS = 30
MOST_CALLS = 2

Summarize: TypeAlias = Literal["off", "extract", "model"]

WAYS: tuple[tuple[str, bool, Summarize], ...] = (
    ("summaries and recall", True, "model"),
    ("summaries alone", False, "model"),
    ("extracts alone", False, "extract"),
    ("recall alone", True, "off"),
    ("trimming alone", False, "off"),
)

_ADJECTIVES = (
    "amber", "brisk", "copper", "dusty", "early", "frozen", "gentle", "hollow", "iron", "jolly", "keen",
    "lunar",
)  # fmt: skip
_NOUNS = (
    "badger", "comet", "dragon", "engine", "falcon", "garden", "harbour", "island", "jacket", "kettle",
    "lantern", "meadow",
)  # fmt: skip
_PROPERTIES = ("port", "owner", "password", "deadline", "region", "budget")
_FILLER = (
    "review", "the", "layout", "before", "meeting", "starts", "and", "tell", "me", "whether", "it", "reads",
    "well", "enough", "on", "paper", "as", "everybody", "in", "team", "writes", "much", "longer", "sentences",
    "than", "anybody", "has", "time", "to", "read", "nowadays",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fact:
    """Something said early; `in_file` was only ever seen in a tool's result, deep inside."""

    told: str
    question: str
    value: str
    in_file: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one question was answered; `calls` are those of recall."""

    right: bool
    calls: int


def run() -> Iterator[str]:
    """A line a history cap: with summaries and recall, with one of them, and trimming alone."""
    os.environ.setdefault(DELAY_VARIABLE, "0")
    for cap in CAPS:
        for told, recall, summarize in WAYS:
            outcomes = asyncio.run(remember(cap, recall=recall, summarize=summarize))
            right = [one for one in outcomes if one.right and one.calls <= MOST_CALLS]
            by_calls = Counter(one.calls for one in right)
            yield (
                f"history {cap:>6,}, {TURNS} turns, {told:<20} {100 * len(right) / len(outcomes):5.1f} % "
                f"({by_calls[0]} in the prompt or summary, {by_calls[1]} by one call, {by_calls[2]} by two)"
            )


async def remember(
    cap: int, *, recall: bool, summarize: Summarize = "model", turns: int = TURNS, facts: int = FACTS
) -> list[Outcome]:
    """Tell `facts` facts, talk of other things for `turns` turns, then ask for every fact."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        told = make_facts(facts)
        runtime = _runtime(home, cap, recall=recall, summarize=summarize)
        chat = Chat.open(runtime, rolling=True)
        try:
            for fact in told:
                if fact.in_file:
                    write_file(runtime.folder / fact.in_file, fact.told)
                await _say(chat, f"read {fact.in_file}" if fact.in_file else fact.told)
            rng = random.Random(17)
            for _ in range(turns):
                await _say(chat, " ".join(rng.choices(_FILLER, k=60)).capitalize() + ".")
            return [await _ask(chat, fact) for fact in told]
        finally:
            chat.close()
            await chat.disconnect()
            runtime.store.close()


def make_facts(count: int) -> list[Fact]:
    """So many facts of the same few kinds about things with like names; every third is in a file."""
    rng = random.Random(23)
    names = rng.sample([(one, other) for one in _ADJECTIVES for other in _NOUNS], count)
    facts = []
    for at, (adjective, noun) in enumerate(names):
        kind, value = _PROPERTIES[at % len(_PROPERTIES)], f"{rng.choice('KQXZ')}{rng.randint(1000, 9999)}"
        told = f"The {kind} of the {adjective} {noun} is {value}."
        question = f"What is the {kind} of the {adjective} {noun}?"
        facts.append(Fact(told, question, value, f"notes/{at}.txt" if at % 3 == 2 else ""))
    return facts


def write_file(path: Path, told: str) -> None:
    """A file of some 6,000 words with `told` on a line in its middle."""
    rng = random.Random(str(path.name))
    lines = [" ".join(rng.choices(_FILLER, k=15)) for _ in range(400)]
    lines.insert(230, told)
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")


async def _say(chat: Chat, text: str) -> tuple[str, int]:
    """The answer, and how often recall was called for it."""
    answer, calls = "", 0
    async for event in chat.send(text):
        match event:
            case ReplyEnded(message):
                answer = message.text
            case ToolStarted(call):
                calls += call.name == RECALL
            case TurnEnded(error=error) if error:
                raise RuntimeError(error)
            case _:
                pass
    await (
        chat.session.summaries.settled()
    )  # they come in the background: the figures are to be the same each time
    return answer, calls


async def _ask(chat: Chat, fact: Fact) -> Outcome:
    answer, calls = await _say(chat, fact.question)
    return Outcome(fact.value in answer, calls)


def _runtime(home: Path, cap: int, *, recall: bool, summarize: Summarize) -> Runtime:
    names: str | Sequence[str] = (
        "all" if recall else tuple(tool.name for tool in all_tools() if tool.name != RECALL)
    )
    settings = replace(
        Settings(),
        model=MODEL,
        context=replace(ContextSettings(), max_history_tokens=cap, summarize=summarize),
        agent=replace(AgentSettings(), tools=names),
    )
    environ = {"ROLLING_CHAT_HOME": str(home / "home"), "PATH": os.environ.get("PATH", "")}
    folder = home / "work"
    folder.mkdir()
    return Runtime.create(settings, find_paths(environ), folder, environ, save=False)
