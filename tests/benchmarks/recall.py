"""Is the message that holds the answer among the first five that recall's search names?

`recall_facts.json` has pairs by kind: what was said or shown, and what is asked later by someone who half
remembers: other forms of the words, another order, words between them that mean nothing. The session is
made here: hundreds of messages of chat, command output, JSON, code and listings out of the same vocabulary
as the facts that are hidden in them. Half of the questions were looked at while the ranking was made; the
other half, of which only the figure was read, is reported on its own.

Then two dialogues of `recall_dialogues`, with what the parts of the ranking are worth: the share of the
answers among the first five, and of those that can be read in what is shown of these five.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.messages import Message, ToolCall
from rolling_chat.search_ranking import Found, Ranking
from rolling_chat.tools.memory_search import search_branch
from rolling_chat.tools.recall_hits import Hits
from tests.benchmarks.recall_dialogues import KINDS, Dialogue, dialogues

FACTS: dict[str, list[tuple[str, str]]] = json.loads(
    Path(__file__).with_name("recall_facts.json").read_text(encoding="utf-8")
)
TOP = 5
SIZES = (600, 3_000, 10_000)
SIZES_TIMED = (10_000, 100_000)
SEEDS = (7, 8, 9)
VARIANTS = {
    "as it is": Ranking(),
    "without neighbors": Ranking(neighbors=()),
    "message alone": Ranking(by_line=0.0, neighbors=()),
    "message, neighbors": Ranking(by_line=0.0),
    "line alone": Ranking(by_line=1.0, neighbors=()),
}


@dataclass(frozen=True, slots=True)
class Question:
    """`place` is that of the message with the answer, from 1; every other one is held out."""

    kind: str
    text: str
    place: int
    held_out: bool


def run() -> Iterator[str]:
    """A line a session size; by kind for the smallest of them; then the dialogues and the times."""
    for size in SIZES:
        branch, questions = make_session(size)
        ranks = [rank(branch, question) for question in questions]
        yield (
            f"{len(branch):>6,} messages: {_share(ranks)} in the first {TOP}; looked at "
            f"{_share([r for r, q in zip(ranks, questions, strict=True) if not q.held_out])}, held out "
            f"{_share([r for r, q in zip(ranks, questions, strict=True) if q.held_out])}; "
            f"first {sum(r == 1 for r in ranks)}"
        )
        for kind in FACTS:
            mine = [r for r, q in zip(ranks, questions, strict=True) if q.kind == kind]
            yield f"        {kind:<12} {_share(mine)}"
    for made in zip(*(dialogues(seed) for seed in SEEDS), strict=True):
        size = f"{len(made[0].branch):,} messages, {len(SEEDS)} seeds"
        yield f"{made[0].name}: {size}; found / visible in the first {TOP}"
        for name, ranking in VARIANTS.items():
            yield f"        {name:<20} {_seen(made, ranking)}"
        for kind in KINDS[:-1]:
            yield f"            {kind:<16} {_seen(made, Ranking(), kind)}"
        silent = [
            not _first(one, asked.text) for one in made for asked in one.questions if not asked.evidence
        ]
        yield f"            {KINDS[-1]:<16} {100 * sum(silent) / len(silent):.0f} % answered with nothing"
    for size in SIZES_TIMED:
        yield _times(size)


def _seen(made: Sequence[Dialogue], ranking: Ranking, kind: str = "") -> str:
    found, visible = list[float](), list[float]()
    for one in made:
        for asked in one.questions:
            if not asked.evidence or (kind and asked.kind != kind):
                continue
            hits = _first(one, asked.text, ranking)
            first = {hit.index for hit in hits[:TOP]}
            text = "\n".join(Hits(one.branch, frozenset(), _Letters()).shown(hits, TOP))
            said = [one.branch[at - 1].text.split(". ")[0][:80] for at in asked.evidence]
            found.append(sum(at in first for at in asked.evidence) / len(said))
            visible.append(sum(part in text for part in said) / len(said))
    return f"{100 * sum(found) / len(found):5.1f} % / {100 * sum(visible) / len(visible):5.1f} %"


def _first(dialogue: Dialogue, question: str, ranking: Ranking | None = None) -> list[Found]:
    everywhere = range(1, len(dialogue.branch) + 1)
    return search_branch(dialogue.branch, question, everywhere, 3 * TOP, ranking=ranking or Ranking())


def _times(size: int) -> str:
    """The processor time of the first search, which makes the index, and of those after it."""
    branch, questions = make_session(size)
    started = time.process_time()
    rank(branch, questions[0])
    first, each = time.process_time() - started, list[float]()
    for question in questions:
        started = time.process_time()
        rank(branch, question)
        each.append(1000 * (time.process_time() - started))
    each.sort()
    middle, late = each[len(each) // 2], each[len(each) * 95 // 100]
    return (
        f"{len(branch):>7,} messages: first search {first:.2f} s; then {middle:.1f} ms in the middle, "
        f"{late:.1f} ms at 95 %, {each[-1]:.1f} ms at most"
    )


class _Letters:
    """Counts four letters for a token."""

    def count_text(self, text: str) -> int:
        return len(text) // 4

    def count_message(self, message: Message) -> int:
        return self.count_text(message.text)


def rank(branch: Sequence[Message], question: Question) -> int:
    """The place of the answer among what is found, from 1; 0 where it is not among the first TOP."""
    found = [one.index for one in search_branch(branch, question.text, range(1, len(branch) + 1), TOP)]
    return found.index(question.place) + 1 if question.place in found else 0


def _share(ranks: Sequence[int]) -> str:
    hits = sum(rank > 0 for rank in ranks)
    return f"{100 * hits / len(ranks):5.1f} % ({hits}/{len(ranks)})"


def make_session(messages: int, seed: int = 5) -> tuple[list[Message], list[Question]]:
    """A branch of about so many messages with every fact somewhere in it, and the questions."""
    rng = random.Random(seed)
    world = _World(rng)
    facts = [
        (kind, told, asked, at % 2 == 1)
        for kind, pairs in FACTS.items()
        for at, (told, asked) in enumerate(pairs)
    ]
    rng.shuffle(facts)
    spots = sorted(rng.sample(range(messages // 3), len(facts))) if facts else []
    branch: list[Message] = []
    questions = []
    for turn in range(messages // 3):
        if spots and turn == spots[0]:
            spots.pop(0)
            kind, told, asked, held_out = facts.pop()
            made = world.telling(kind, told)
            branch += made
            words = told.split("\n", maxsplit=1)[0]
            place = next(at for at in range(len(branch) - len(made), len(branch)) if words in branch[at].text)
            questions.append(Question(kind, asked, place + 1, held_out))
        else:
            branch += world.turn()
    return branch, questions


class _World:
    """Writes turns about one subject, in few words, so that every word of a question is elsewhere too."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        words = Counter(
            word.strip(".,:;?!'\"()[]{}").lower()
            for pairs in FACTS.values()
            for told, asked in pairs
            for word in (told + " " + asked).split()
        )
        self._words = sorted(word for word in words if word.isascii() and word.isalpha() and len(word) > 2)
        self._foreign = [told for told, _ in FACTS["language"]]
        self._calls = 0

    def turn(self) -> list[Message]:
        """A request, some work and an answer."""
        kind = self._rng.choice(["chat", "chat", "log", "json", "code", "path", "number", "language"])
        return self.telling(kind, "")

    def telling(self, kind: str, told: str) -> list[Message]:
        """A turn of this kind that holds `told`."""
        match kind:
            case "chat" | "identifier":
                return [Message("user", self._prose(told)), Message("assistant", self._prose())]
            case "decision":
                return [Message("user", self._sentence("?")), Message("assistant", self._prose(told))]
            case "language":
                return [Message("user", told or self._foreign_noise()), Message("assistant", self._prose())]
            case "log" | "number":
                return self._tool("run_command", {"command": self._command()}, self._log(told))
            case "json":
                return self._tool("read_file", {"path": f"config/{self._word()}.json"}, self._json(told))
            case "code":
                return self._tool("read_file", {"path": f"src/{self._word()}.py"}, self._code(told))
            case _:
                return self._tool("search_files", {"pattern": self._word()}, self._listing(told))

    def _tool(self, name: str, arguments: dict[str, str], result: str) -> list[Message]:
        self._calls += 1
        call = ToolCall(f"c{self._calls}", name, json.dumps(arguments))
        return [
            Message("user", self._sentence("?")),
            Message("assistant", tool_calls=(call,)),
            Message("tool", result, tool_call_id=call.id, name=name),
            Message("assistant", self._prose()),
        ]

    def _word(self) -> str:
        return self._rng.choice(self._words)

    def _sentence(self, end: str = ".") -> str:
        words = [self._word() for _ in range(self._rng.randint(6, 14))]
        return " ".join(words).capitalize() + end

    def _prose(self, told: str = "") -> str:
        sentences = [self._sentence() for _ in range(self._rng.randint(1, 5))]
        if told:
            sentences.insert(self._rng.randint(0, len(sentences)), told)
        return " ".join(sentences)

    def _command(self) -> str:
        return f"make {self._word()} && ./{self._word()} --{self._word()}"

    def _lines(self, told: str, line: str, most: int) -> str:
        lines = [self._fill(line) for _ in range(self._rng.randint(10, most))]
        if told:
            lines.insert(self._rng.randint(0, len(lines)), told)
        return "\n".join(lines)

    def _fill(self, line: str) -> str:
        while "%w" in line or "%d" in line:
            line = line.replace("%w", self._word(), 1).replace("%d", str(self._rng.randint(1, 9_999)), 1)
        return line

    def _log(self, told: str) -> str:
        return self._lines(told, "INFO %d %w: %w %w of %w took %d ms", 80)

    def _json(self, told: str) -> str:
        inner = self._lines(told and f"  {told},", '  "%w_%w": "%w-%d",', 60)
        return "{\n" + inner + '\n  "end": true\n}'

    def _code(self, told: str) -> str:
        return self._lines(told, "def %w_%w(%w: int) -> str:\n    return %w.%w(%w, %d)\n", 25)

    def _listing(self, told: str) -> str:
        return self._lines(told, "%w/%w/%w_%w.py", 60)

    def _foreign_noise(self) -> str:
        """Sentences of the same languages and characters that say something else."""
        pieces = [self._rng.choice(self._foreign) for _ in range(3)]
        halves = [one[: len(one) // 2] if at % 2 else one[len(one) // 2 :] for at, one in enumerate(pieces)]
        return " ".join(halves)
