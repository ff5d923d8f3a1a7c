"""Choose the names to tell of what left the prompt: those that nothing in it has, the likeliest needed first.

What makes a name likely to be needed was measured on recorded sessions (`tests/benchmarks/names.py`): that
the model used it itself, that it stands among names of the work at hand, that several messages have it, and
that it left not long ago. A number needs more of that than a name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from rolling_chat.context.count_memo import CountText
from rolling_chat.context.names import Kind, names_in
from rolling_chat.context.told import NAMES_HEAD, OmittedName
from rolling_chat.context.tool_results import recall_line
from rolling_chat.message_lines import piece_text
from rolling_chat.messages import Message
from rolling_chat.redaction import is_secret_name, redact

# A longer message is read at both ends: names are found at some 5 MB a second.
_MAX_READ = 200_000  # characters
_NEAR = 4  # newest messages of the model that tell, with the request, what the work is about
_BEFORE = 80  # characters before a name that may say that it is a secret
_ENOUGH = 0.97  # of the room: what is still free would hold no name
# What each sign is worth, in hundredths: as told in the plan, from which a name is ranked again.
_BY_MODEL, _RELATED, _DOUBLED, _NUMBER = 100, 100, 50, -50
_ASSIGNED = re.compile(r"([\w.-]+)[\"']?\s*[:=]\s*[\"']?$")


@dataclass(slots=True)
class _Found:
    """A name in what left: in how many messages, in which last, and what speaks for it."""

    kind: Kind
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
            + _NUMBER * (self.kind is Kind.NUMBER)
        )


def rank_names(
    left: Iterable[tuple[int, Message]],
    sent: Sequence[Message],
    known: Iterable[OmittedName],
    seen: int,
) -> list[OmittedName]:
    """Return the names that only what left has, the likeliest needed first.

    `left` are messages that left, oldest first, each with its index; `known` are the names that were told so
    far, of what left earlier; `sent` is all that is in the prompt. `seen` is the length of the branch.
    """
    here = _names_in_prompt(sent)
    texts: dict[int, str] = {}
    found = _find(left, here, _near(sent), texts)
    names = {name.name: name for name in known if name.name not in here}
    for name, one in found.items():
        earlier = names.get(name)
        worth = max(one.worth, earlier.worth) if earlier is not None else one.worth
        names[name] = OmittedName(one.index, name, worth)
    ranked = sorted(names.values(), key=lambda name: (-_rank(name, seen), -name.index, name.name))
    return [name for name in ranked if not _is_secret(name, texts.get(name.index, ""))]


def names_within(names: Iterable[OmittedName], most: int, count: CountText) -> tuple[OmittedName, ...]:
    """Return as many of the names, in their order, as `most` tokens hold, each with its message's id.

    What is a part of a name before it is left out.
    """
    kept: list[OmittedName] = []
    named: set[int] = set()
    said: set[str] = set()
    room = most - count(NAMES_HEAD) - 2
    for name in names:
        if name.name in said:
            continue
        cost = count(f", {name.name}")
        if name.index not in named:
            cost += count(f" {recall_line(name.index)}\n")
        if cost <= room:
            kept.append(name)
            named.add(name.index)
            said.update(_parts(name.name))
            room -= cost
        elif room < (1 - _ENOUGH) * most:
            break
    return tuple(kept)


def _rank(name: OmittedName, seen: int) -> float:
    return name.worth - _DOUBLED * math.log2(max(1, seen - name.index))


def _find(
    left: Iterable[tuple[int, Message]], here: Set[str], near: Set[str], texts: dict[int, str]
) -> dict[str, _Found]:
    """The names in what left and not in the prompt; fills `texts` with what was read."""
    found: dict[str, _Found] = {}
    for index, message in left:
        texts[index] = text = _readable(message)
        names = dict(names_in(text))
        related = sum(name in near for name in names) / max(1, len(names))
        for name, kind in names.items():
            if name in here:
                continue
            one = found.setdefault(name, _Found(kind, index))
            one.index, one.messages = index, one.messages + 1
            one.is_by_model |= message.role == "assistant"
            one.related = max(one.related, related)
    return found


def _names_in_prompt(sent: Iterable[Message]) -> set[str]:
    """The names that the prompt has, and the parts by which a path or a dotted name is known."""
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


def _near(sent: Sequence[Message]) -> set[str]:
    """The names in the newest request and in the newest messages of the model."""
    request = next((one for one in reversed(sent) if one.role == "user"), None)
    replies = [one for one in sent if one.role == "assistant"][-_NEAR:]
    near = replies if request is None else [request, *replies]
    return {name for message in near for name, _ in names_in(_readable(message))}


def _readable(message: Message) -> str:
    text = piece_text(message)
    if len(text) <= _MAX_READ:
        return text
    return f"{text[: _MAX_READ // 2]}\n{text[-_MAX_READ // 2 :]}"


def _is_secret(name: OmittedName, text: str) -> bool:
    """Is this a secret by its shape, or by what stands before it in the text of its message?"""
    at = text.find(name.name)
    before = text[max(0, at - _BEFORE) : at] if at >= 0 else ""
    before = before.rpartition("\n")[2]
    if name.name not in redact(before + name.name):
        return True
    assigned = _ASSIGNED.search(before)
    return assigned is not None and is_secret_name(assigned[1])
