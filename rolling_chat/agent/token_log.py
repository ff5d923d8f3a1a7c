"""Compare the estimates and upper bounds of stored requests with the reported token counts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rolling_chat.context import ContextPlan
from rolling_chat.context.calibration import Group
from rolling_chat.messages import Message
from rolling_chat.sessions.records import RequestRecord, StoreError
from rolling_chat.sessions.store import SessionStore

_LATIN = 0x24F
"""The last code point of the Latin letters and their extensions."""

_OTHER_SHARE = 0.3  # share of non-Latin letters above which a text is in another script


class Phase(StrEnum):
    """Whether the model had counted an earlier request of the session."""

    FIRST = "first"
    GROWING = "growing"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Counted:
    """One request with its figures in tokens: our estimate, our upper bound, the provider's count."""

    id: str
    model: str
    phase: Phase
    estimated: int
    bound: int
    reported: int

    @property
    def error(self) -> float:
        """The error of the estimate, as a share of the count; positive if it is too high."""
        return self.estimated / self.reported - 1

    @property
    def is_beyond(self) -> bool:
        """Whether the count is above the upper bound."""
        return self.reported > self.bound


@dataclass(frozen=True, slots=True)
class Added:
    """What was added between two requests with the same beginning: its kind of content and its tokens."""

    model: str
    content: str
    estimated: int
    reported: int

    @property
    def error(self) -> float:
        """The error of the estimate, as a share of the count."""
        return self.estimated / self.reported - 1


@dataclass(frozen=True, slots=True)
class TokenLog:
    """The requests of a store that have a count, and what was added between them.

    `unreported` requests were answered without a count. `left_out` ones have a count that cannot be of this
    prompt, such as the sum of several requests.
    """

    requests: tuple[Counted, ...] = ()
    added: tuple[Added, ...] = ()
    unreported: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The absolute errors of some estimates, as shares of the counts; `ratio` is that of the sums."""

    count: int
    reported: int
    ratio: float
    median: float
    p95: float

    @classmethod
    def of(cls, figures: Sequence[Counted] | Sequence[Added]) -> Accuracy:
        """Compute the accuracy of at least one estimate."""
        errors = sorted(abs(one.error) for one in figures)
        reported = sum(one.reported for one in figures)
        ratio = sum(one.estimated for one in figures) / reported
        return cls(len(errors), reported, ratio, _at(errors, 0.5), _at(errors, 0.95))


def read_token_log(store: SessionStore) -> TokenLog:
    """Read the figures of all requests in a store. Raises StoreError."""
    requests: list[Counted] = []
    added: list[Added] = []
    unreported = left_out = 0
    for session in (one for own in store.sessions() for one in (own, *store.tasks(own.id))):
        counted: list[RequestRecord] = []
        for record in store.requests(session.id):
            if record.error:
                continue
            if not record.usage.input_tokens:
                unreported += 1
            elif not Group(record.estimated, record.usage.input_tokens).is_plausible:
                left_out += 1
            else:
                counted.append(record)
        requests.extend(_in_phases(counted))
        added.extend(_added(store, session.id, counted))
    return TokenLog(tuple(requests), tuple(added), unreported, left_out)


def by_model(log: TokenLog) -> dict[tuple[str, Phase], list[Counted]]:
    """Return the requests by model and phase: first ones, then growing ones, then summaries."""
    found: dict[tuple[str, Phase], list[Counted]] = defaultdict(list)
    for request in log.requests:
        found[request.model, request.phase].append(request)
    phases = list(Phase)
    return {key: found[key] for key in sorted(found, key=lambda key: (key[0], phases.index(key[1])))}


def by_content(log: TokenLog) -> dict[str, list[Added]]:
    """Return what was added by its kind of content, the most tokens first."""
    found: dict[str, list[Added]] = defaultdict(list)
    for one in log.added:
        found[one.content].append(one)
    return dict(sorted(found.items(), key=lambda item: -sum(one.reported for one in item[1])))


def content_of(messages: Iterable[Message]) -> str:
    """Return the kind of content of most characters in some messages."""
    sizes: Counter[str] = Counter()
    for message in messages:
        if any(attachment.picture for attachment in message.attachments):
            return "pictures"
        sizes["tool calls"] += sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
        sizes[_kind_of(message)] += len(message.text)
    return max(sizes, key=lambda kind: sizes[kind], default="text")


def _kind_of(message: Message) -> str:
    if message.role == "tool":
        return "tool results"
    letters = [character for character in message.text if character.isalpha()]
    other = sum(ord(letter) > _LATIN for letter in letters)
    return "text in other scripts" if other > _OTHER_SHARE * len(letters) else "text"


def _in_phases(records: Iterable[RequestRecord]) -> Iterator[Counted]:
    """Yield the figures of a session's requests, with their phases."""
    known: set[str] = set()
    for record in records:
        phase = Phase.GROWING if record.model in known else Phase.FIRST
        if record.purpose == "summary":
            phase = Phase.SUMMARY
        else:
            known.add(record.model)
        reported = record.usage.input_tokens
        yield Counted(record.id, record.model, phase, record.estimated, record.bound, reported)


def _added(store: SessionStore, session_id: str, records: Sequence[RequestRecord]) -> Iterator[Added]:
    """Yield what was added between adjacent requests if the later one begins with all of the earlier."""
    branch: list[Message] = []
    places: dict[str, int] = {}
    before: RequestRecord | None = None
    for record in (one for one in records if one.purpose == "answer" and one.head):
        earlier, before = before, record
        if earlier is None or not _continues(earlier, record):
            continue
        if record.head not in places:
            branch = _branch(store, session_id, records[-1].head, record.head)
            places = {message.id: index for index, message in enumerate(branch)}
        first, end = places.get(earlier.head), places.get(record.head)
        if first is None or end is None or first >= end:
            continue
        known = earlier.usage.input_tokens
        group = Group(record.estimated - known, record.usage.input_tokens - known)
        if group.is_plausible:
            yield Added(
                record.model, content_of(branch[first + 1 : end + 1]), group.estimated, group.reported
            )


def _branch(store: SessionStore, session_id: str, newest: str, head: str) -> list[Message]:
    """Return the branch of the newest request if it contains `head`, else that of `head`."""
    try:
        branch = store.branch(session_id, newest) if newest else []
        if all(message.id != head for message in branch):
            branch = store.branch(session_id, head)
    except StoreError:  # deleted meanwhile
        return []
    return branch


def _continues(earlier: RequestRecord, record: RequestRecord) -> bool:
    """Return whether a request's estimate is based on the earlier one's count, without a trim between."""
    if record.model != earlier.model or not record.totals.get("confirmed"):
        return False
    plans = (ContextPlan.from_json(one.plan) for one in (earlier, record))
    before, now = ((plan.decisions, plan.summary) if plan is not None else None for plan in plans)
    return before == now


def _at(ordered: Sequence[float], share: float) -> float:
    """Return the value at or below which this share of the ordered values lies."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
