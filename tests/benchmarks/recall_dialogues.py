"""Two long dialogues with questions about them, made anew from a seed: small talk, and work.

The small talk is two people who write short messages over months; the answer is often in the reply to the
words that are asked for. In the work a user says a fact in passing before a question, and the answers are
long. The words of facts and questions are everywhere else, too. `recall_dialogues.json` has the facts by what
they ask for: one fact, several, a time, what was said last after a change of mind, and what was never said;
a star marks what answers.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rolling_chat.messages import Message

_FACTS: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("recall_dialogues.json").read_text(encoding="utf-8")
)
KINDS = ("single fact", "several facts", "time", "change of mind", "not said")
_NAMES = ("Nora", "Emil")

_TALK = (
    "How was your {n}?", "I was thinking about the {n} all {w}.",
    "Did you see the {n} near the {n2}?",
    "My {n} is a mess again, lol.", "We should talk about the {n} some {w}.", "That {n} of yours is so {a}!",
    "Honestly the {n} was {a}, but the {n2} made up for it.", "I told my {n} about you and she laughed.",
    "Remember when we lost the {n} at the {n2}? So {a}.", "No {n} for me this {w}, too tired.",
    "What a {a} {w}! I only did the {n} and slept.",
    "Can you send me the {n} again?", "Yes! The {n} was {a}.",
    "The new {n} is {a}, you would like it.", "My {w} was all {n} and no {n2}.",
)  # fmt: skip
_TIMES = ["week", "morning", "weekend", "month", "evening", "summer", "day", "night"]
_HOW = [
    "lovely",
    "weird",
    "long",
    "funny",
    "sad",
    "loud",
    "quiet",
    "sweet",
    "tiring",
    "great",
    "awful",
    "pretty",
]

_LINES = (
    "- Start with the {n} and write down what the {n2} needs before you change anything.",
    "- Measure the {n} for a {w} first; a number beats an opinion about the {n2}.",
    "The usual mistake is to treat the {n} like the {n2}. They fail in different ways, so plan for both.",
    "1. List every {n}. 2. Mark those that depend on the {n2}. 3. Drop what nobody asked for.",
    "A {a} {n} is rarely worth it: most teams do better with a simple {n2} and a clear owner.",
    "### The {n}", "If the {n} changes, the {n2} has to follow within a {w}, otherwise people lose trust.",
    "Ask who owns the {n}, how it is reviewed, and when the {n2} was last looked at.",
    "For the {n} I would choose the plainest thing that works and keep the {n2} out of it.",
)  # fmt: skip
_REQUESTS = (
    "What would you look at first for the {n}?", "How do other people handle a {n} with a {n2}?",
    "Can you compare the {n} with the {n2} for me?", "Please write a checklist for the {n}.",
    "Why would a {n} break the {n2}?", "Is a {a} {n} worth the effort?",
)  # fmt: skip
_LEAST = 5  # letters of a word of the facts that comes up elsewhere


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the indexes of the messages, from 1, that together answer it."""

    kind: str
    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A branch with its questions."""

    name: str
    branch: Sequence[Message]
    questions: Sequence[Asked]


def dialogues(seed: int = 7) -> Iterator[Dialogue]:
    """Make both."""
    for name, messages in (("chat", 900), ("work", 400)):
        yield _Writer(name, random.Random(f"{name} {seed}")).write(messages)


class _Writer:
    def __init__(self, name: str, rng: random.Random) -> None:
        self._name = name
        self._rng = rng
        said = json.dumps(_FACTS[name], ensure_ascii=False).lower()
        self._words = sorted({word for word in re.findall(r"[a-z]+", said) if len(word) >= _LEAST})
        self._branch: list[Message] = []

    def write(self, messages: int) -> Dialogue:
        facts = _FACTS[self._name]
        # a fact's places come in their order, each at a random time of the dialogue
        places = sorted(
            (spot, number, at)
            for number, fact in enumerate(facts)
            for at, spot in enumerate(sorted(self._rng.random() for _ in fact["places"]))
        )
        evidence: dict[int, list[int]] = {number: [] for number in range(len(facts))}
        for spot, number, at in places:
            while len(self._branch) < spot * messages:
                self._small_talk()
            evidence[number] += self._tell(facts[number]["asks"], facts[number]["places"][at])
        while len(self._branch) < messages:
            self._small_talk()
        return Dialogue(
            self._name,
            self._branch,
            [
                # after a change of mind it is the last that answers
                Asked(
                    fact["kind"], fact["asks"], tuple(told[-1:] if fact["kind"] == "change of mind" else told)
                )
                for fact, told in zip(facts, evidence.values(), strict=True)
            ],
        )

    def _tell(self, asks: str, lines: Sequence[str]) -> list[int]:
        told = []
        about = next((at for at, name in enumerate(_NAMES) if name in asks), 0)
        first = next(at for at, line in enumerate(lines) if line.startswith("*"))
        for at, line in enumerate(lines):
            self._say((about + at - first) % 2, line.removeprefix("*"))
            if line.startswith("*"):
                told.append(len(self._branch))
        if self._name == "work":
            self._answer(lines[0])
        return told

    def _small_talk(self) -> None:
        if self._name == "work":
            text = " ".join(
                [*(self._fill(_LINES) for _ in range(self._rng.randint(0, 2))), self._fill(_REQUESTS)]
            )
            self._branch.append(Message("user", text))
            self._answer(text)
            return
        for speaker in range(2):
            self._say(speaker, " ".join(self._fill(_TALK) for _ in range(self._rng.randint(1, 3))))

    def _say(self, speaker: int, text: str) -> None:
        if self._name == "work":
            self._branch.append(Message("user", text))
        else:
            self._branch.append(Message(("user", "assistant")[speaker], f"{_NAMES[speaker]}: {text}"))

    def _answer(self, request: str) -> None:
        """Answer at length in the words of the request, and say nothing of the fact in it."""
        words = [word.strip(".,?!").lower() for word in request.rpartition(". ")[2].split() if len(word) > 4]
        lines = [self._fill(_LINES, words) for _ in range(self._rng.randint(8, 30))]
        self._branch.append(Message("assistant", "\n\n".join(lines)))

    def _fill(self, templates: Sequence[str], words: Sequence[str] = ()) -> str:
        pick = self._rng.choice
        nouns = [pick(words) if words and self._rng.random() < 0.4 else pick(self._words) for _ in range(2)]
        return pick(templates).format(n=nouns[0], n2=nouns[1], w=pick(_TIMES), a=pick(_HOW))
