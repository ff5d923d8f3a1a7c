"""Ways to choose messages that `kept` measures ours beside: by recency, langchain's, and the best there is.

Each returns the indexes of the messages that it sends of those below `end`, in at most `room` tokens.
"""

from __future__ import annotations

from collections.abc import Set

from tests.benchmarks.kept_needs import Conversation


def recent_that_fit(told: Conversation, end: int, room: int) -> set[int]:
    """Take what every prompt has, then from the newest on whatever fits; a call goes with its results."""
    chosen = set(told.always_sent(end))
    room -= _size(told, chosen)
    for unit in reversed(_units(told, end)):
        rest = unit - chosen
        if _size(told, rest) <= room:
            chosen |= rest
            room -= _size(told, rest)
    return chosen


def trimmed_by_langchain(told: Conversation, end: int, room: int) -> set[int]:
    """Return what langchain's `trim_messages` keeps.

    It may begin with an answer: where one request runs through the whole conversation, it would keep nothing
    if it had to begin with a request.
    """
    from langchain_core.messages import BaseMessage, convert_to_messages, trim_messages

    given = [message.to_dict(with_extras=False) for message in told.messages[:end]]
    theirs = convert_to_messages([{**message, "id": str(at)} for at, message in enumerate(given)])

    def count(some: list[BaseMessage]) -> int:
        return sum(told.sizes[int(one.id or 0)] for one in some)

    kept = trim_messages(
        theirs, max_tokens=room, token_counter=count, include_system=True, start_on=("human", "ai")
    )
    return {int(one.id or 0) for one in kept}


def most_found(told: Conversation, end: int, room: int, needed: Set[str]) -> int:
    """How many of `needed` a choice of whole messages finds room for that knows them.

    What every prompt has stands first, then what has the most of them a token.
    """
    chosen = told.always_sent(end)
    room -= _size(told, set(chosen))
    missing = {name for name in needed if not any(name in told.texts[at] for at in chosen)}
    holders = {at: {name for name in missing if name in told.texts[at]} for at in range(end)}
    while missing:
        fitting = [at for at, names in holders.items() if names & missing and told.sizes[at] <= room]
        if not fitting:
            break
        best = max(fitting, key=lambda at: len(holders[at] & missing) / told.sizes[at])
        room -= told.sizes[best]
        missing -= holders.pop(best)
    return len(needed) - len(missing)


def _units(told: Conversation, end: int) -> list[set[int]]:
    units: list[set[int]] = []
    for at, message in enumerate(told.messages[:end]):
        if message.role == "tool" and units:
            units[-1].add(at)
        else:
            units.append({at})
    return units


def _size(told: Conversation, chosen: Set[int]) -> int:
    return sum(told.sizes[at] for at in chosen)
