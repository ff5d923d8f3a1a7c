"""Choose names to list from omitted messages: those found nowhere in the prompt, likeliest needed first.

Recorded sessions (`tests/benchmarks/names.py`) showed what makes a name likely to be needed: the model used
it itself, it occurs among names of the current work, several messages contain it, and it was omitted
recently. A number needs stronger evidence than a name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from rolling_chat.context.count_memo import CountText
from rolling_chat.context.names import NameKind, names_in
from rolling_chat.context.notice_contents import NAMES_HEAD, OmittedName
from rolling_chat.context.tool_results import recall_line
from rolling_chat.message_lines import piece_text
from rolling_chat.messages import Message
from rolling_chat.redaction import is_secret_name, redact

# Only both ends of a longer message are read: the search for names handles about 5 MB a second.
_MAX_READ = 200_000  # characters
_RECENT_REPLIES = 4  # newest model messages that, with the request, define the current work
_CHARS_BEFORE = 80  # characters before a name that may reveal that it is a secret
_FULL_SHARE = 0.97  # of the room; the rest has no space for a name
# What each sign is worth, in hundredths, as stored in the plan for later rankings.
_BY_MODEL, _RELATED, _DOUBLED, _NUMBER = 100, 100, 50, -50
_ASSIGNED = re.compile(r"([\w.-]+)[\"']?\s*[:=]\s*[\"']?$")


@dataclass(slots=True)
class _Candidate:
    """A name in omitted messages: its kind, the last message with it, and evidence that it matters."""

    kind: NameKind
    index: int
    messages: int = 0
    is_by_model: bool = False
    related: float = 0.0

    @property
    def worth(self) -> int:
        return round(
            _BY_MODEL * self.is_by_model
            + _RELATED * self.related
            + _DOUBLED * math.log2(self.messages)
            + _NUMBER * (self.kind is NameKind.NUMBER)
        )


def rank_names(
    omitted: Iterable[tuple[int, Message]],
    sent: Sequence[Message],
    known: Iterable[OmittedName],
    seen: int,
) -> list[OmittedName]:
    """Return the names that occur only in omitted messages, likeliest needed first.

    `omitted` are newly omitted messages, oldest first, with their indexes; `known` are the names listed
    so far, from messages omitted earlier; `sent` is everything in the prompt. `seen` is the length of the
    branch.
    """
    in_prompt = _names_in_prompt(sent)
    texts: dict[int, str] = {}
    candidates = _find_candidates(omitted, in_prompt, _current_names(sent), texts)
    names = {name.name: name for name in known if name.name not in in_prompt}
    for name, candidate in candidates.items():
        earlier = names.get(name)
        worth = max(candidate.worth, earlier.worth) if earlier is not None else candidate.worth
        names[name] = OmittedName(candidate.index, name, worth)
    ranked = sorted(names.values(), key=lambda name: (-_rank(name, seen), -name.index, name.name))
    return [name for name in ranked if not _is_secret(name, texts.get(name.index, ""))]


def names_within(names: Iterable[OmittedName], max_tokens: int, count: CountText) -> tuple[OmittedName, ...]:
    """Return the names that fit in `max_tokens`, in their order; each message's id is counted too.

    A name that is part of an earlier one is skipped.
    """
    kept: list[OmittedName] = []
    named: set[int] = set()
    listed_parts: set[str] = set()
    room = max_tokens - count(NAMES_HEAD) - 2
    for name in names:
        if name.name in listed_parts:
            continue
        cost = count(f", {name.name}")
        if name.index not in named:
            cost += count(f" {recall_line(name.index)}\n")
        if cost <= room:
            kept.append(name)
            named.add(name.index)
            listed_parts.update(_parts(name.name))
            room -= cost
        elif room < (1 - _FULL_SHARE) * max_tokens:
            break
    return tuple(kept)


def _rank(name: OmittedName, seen: int) -> float:
    return name.worth - _DOUBLED * math.log2(max(1, seen - name.index))


def _find_candidates(
    omitted: Iterable[tuple[int, Message]], in_prompt: Set[str], current: Set[str], texts: dict[int, str]
) -> dict[str, _Candidate]:
    """Return the names that are in omitted messages but not in the prompt; add the texts read to `texts`."""
    candidates: dict[str, _Candidate] = {}
    for index, message in omitted:
        texts[index] = text = _readable(message)
        names = dict(names_in(text))
        related = sum(name in current for name in names) / max(1, len(names))
        for name, kind in names.items():
            if name in in_prompt:
                continue
            candidate = candidates.setdefault(name, _Candidate(kind, index))
            candidate.index, candidate.messages = index, candidate.messages + 1
            candidate.is_by_model |= message.role == "assistant"
            candidate.related = max(candidate.related, related)
    return candidates


def _names_in_prompt(sent: Iterable[Message]) -> set[str]:
    """Return the names in the prompt, and the parts that identify a path or a dotted name."""
    return {
        part
        for message in sent
        for name, _ in names_in(piece_text(message))
        for part in (name, *_parts(name))
    }


def _parts(name: str) -> Iterator[str]:
    if "/" in name:
        parts = name.strip("/").split("/")
        yield from ("/".join(parts[at:]) for at in range(len(parts)))
    elif "." in name:
        parts = name.split(".")
        yield from parts
        yield from (".".join(parts[:end]) for end in range(2, len(parts)))


def _current_names(sent: Sequence[Message]) -> set[str]:
    """Return the names in the newest request and in the model's newest messages."""
    request = next((one for one in reversed(sent) if one.role == "user"), None)
    replies = [one for one in sent if one.role == "assistant"][-_RECENT_REPLIES:]
    current = replies if request is None else [request, *replies]
    return {name for message in current for name, _ in names_in(_readable(message))}


def _readable(message: Message) -> str:
    text = piece_text(message)
    if len(text) <= _MAX_READ:
        return text
    return f"{text[: _MAX_READ // 2]}\n{text[-_MAX_READ // 2 :]}"


def _is_secret(name: OmittedName, text: str) -> bool:
    """Return whether a name is a secret by its form, or by the text before it in its message."""
    at = text.find(name.name)
    before = text[max(0, at - _CHARS_BEFORE) : at] if at >= 0 else ""
    before = before.rpartition("\n")[2]
    if name.name not in redact(before + name.name):
        return True
    assigned = _ASSIGNED.search(before)
    return assigned is not None and is_secret_name(assigned[1])
