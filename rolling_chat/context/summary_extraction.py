"""Summarize by rule: free of cost, deterministic, and word for word from the messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rolling_chat.context.count_memo import CountText
from rolling_chat.context.summary_grounding import names_in, names_used, plain_name
from rolling_chat.context.summary_pass import texts_of
from rolling_chat.context.summary_sections import (
    DECISIONS,
    FACTS,
    FILES,
    OPEN,
    TASK,
    Sections,
    Worth,
    fitted,
    read_sections,
    without_repeated,
)
from rolling_chat.context.summary_text import without_end_marker
from rolling_chat.message_lines import without_room_line
from rolling_chat.messages import Ending, Message

# Characters that a summary keeps of a request, an answer and an error.
_MAX_ASKED, _MAX_ANSWERED, _MAX_ERROR = 300, 400, 200
_MAX_SEARCHED = 20_000  # characters of a message that are searched for names used later
_MAX_ERRORS = 12
_MAX_LINE = 2_000

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_ERROR_LINE = re.compile(r"\b(?:\w*(?:Error|Exception)|error|failed|fatal|panic)\b\s*[:(\[]")
_PATH_KEYS = ("path", "file", "file_path", "filename")

# Words that mark a sentence as a decision, an open point, a statement or a question.
_DECIDES = re.compile(
    r"\b(?:decided?|decision|agreed|we(?:'ll| will)|let's|instead of|from now on|always|never|must(?:n't)?"
    r"|prefer|entschieden|vereinbart|ab jetzt|immer|niemals|décidé|convenu|toujours|jamais|decidido|acordado"
    r"|siempre|nunca)\b|决定|決め",
    re.IGNORECASE,
)
_LEAVES_OPEN = re.compile(
    r"\b(?:to-?do|still (?:open|missing|to)|not yet|remains?|next step|later|until then|noch (?:offen|nicht)"
    r"|später|encore|plus tard|todavía|más tarde|pendiente)\b|待办|未解決",
    re.IGNORECASE,
)
_STATES = re.compile(
    r"\b(?:is|are|was|were|am|has|have|had|called|named|means?|costs?|needs?|uses?|runs?|lives?|works?|listens?"
    r"|contains?|ist|sind|war|hat|haben|heißt|est|sont|était|a|ont|s'appelle|es|son|era|tiene|tienen|llama)\b"
    r"|是|です",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"^(?:please|could|can|would|will|do|does|did|is|are|what|why|how|when|where|which|who|let's)\b|[?？]\s*$",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Notes:
    """The summary so far, and by call, the errors of calls that have not succeeded since."""

    sections: Sections
    errors: dict[str, list[str]] = field(default_factory=dict)

    def add(self, heading: str, line: str) -> None:
        if line:
            self.sections.add(heading, without_end_marker(line))


def extract(
    messages: Iterable[Message],
    previous: str,
    cap: int,
    count: CountText,
    later: Sequence[Message] = (),
) -> str:
    """Extract what `messages` asked, decided, stated, touched and left open, and append it to `previous`.

    The result has at most `cap` tokens by `count`; names that the `later` messages use, and names that are
    hard to guess, are kept longest.
    """
    notes, calls, said = _Notes(read_sections(previous)), dict[str, str](), list[str]()
    for message in messages:
        _add_message(notes, message, calls)
        said.append(message.text[:_MAX_SEARCHED] if message.role in ("user", "assistant") else "")
    for line in [line for lines in notes.errors.values() for line in lines][-_MAX_ERRORS:]:
        notes.add(OPEN, line)
    used = names_used("\n".join((previous, *said)), texts_of(later))
    return fitted(without_repeated(notes.sections), cap, count, Worth(frozenset(map(plain_name, used))))


def _add_message(notes: _Notes, message: Message, calls: dict[str, str]) -> None:
    match message.role:
        case "user":
            _add_sentences(notes, without_room_line(message.text))
        case "assistant":
            for call in message.tool_calls:
                calls[call.id] = f"{call.name} {call.arguments}"
            for path in _paths(message):
                notes.add(FILES, path)
            if not message.tool_calls:
                notes.add(FACTS, _first_sentences(message.text, _MAX_ANSWERED))
        case "tool":
            _add_errors(notes, message, calls.get(message.tool_call_id or "", ""))
        case _:
            pass


def _add_sentences(notes: _Notes, text: str) -> None:
    """Sort the first sentences of a user message by heading; statements that contain names are facts."""
    asked: list[str] = []
    for sentence in _sentences(text, _MAX_ASKED):
        if _LEAVES_OPEN.search(sentence):
            notes.add(OPEN, sentence)
        elif _ASKS.search(sentence):
            asked.append(sentence)
        elif _DECIDES.search(sentence):
            notes.add(DECISIONS, sentence)
        elif names_in(sentence) and _STATES.search(sentence):
            notes.add(FACTS, sentence)
        else:
            asked.append(sentence)
    notes.add(TASK, " ".join(asked))


def _add_errors(notes: _Notes, message: Message, call: str) -> None:
    """Record the errors of a result; they replace those of the same call made earlier."""
    found = list(_errors(message.text))
    if found or message.ending is Ending.COMPLETE:
        notes.errors.pop(call, None)
    if found:
        notes.errors[call] = found


def _first_sentences(text: str, limit: int) -> str:
    """Return the first sentences of `text` that fit in `limit` characters, on one line."""
    return " ".join(_sentences(text, limit))


def _sentences(text: str, limit: int) -> list[str]:
    """Return the first sentences of `text` that fit in `limit` characters, or the beginning of the first."""
    kept: list[str] = []
    for raw in _SENTENCE_END.split(text[: limit * 4].strip()):
        sentence = " ".join(raw.split())
        if len(sentence) > limit:
            break
        limit -= len(sentence) + 1
        kept.append(sentence)
    return list(filter(None, kept or [_cut(" ".join(text[:limit].split()), limit)]))


def _cut(line: str, limit: int) -> str:
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _paths(message: Message) -> Iterator[str]:
    for call in message.tool_calls:
        try:
            arguments = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            continue
        if isinstance(arguments, dict):
            found = (arguments.get(key) for key in _PATH_KEYS)
            path = next((value for value in found if isinstance(value, str) and value), "")
            if path:
                yield f"{_cut(' '.join(path.split()), 200)} ({call.name})"


def _errors(text: str) -> Iterator[str]:
    lines = (line.strip() for line in text.splitlines() if len(line) <= _MAX_LINE)
    yield from (_cut(line, _MAX_ERROR) for line in lines if _ERROR_LINE.search(line))
