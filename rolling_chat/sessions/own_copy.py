"""A session made of somebody else's: it says the same, and shares nothing with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rolling_chat.sessions.ids import new_id, short_of
from rolling_chat.sessions.records import PlacedMessage, SessionCopy, SessionState, StoredSummary


def as_own(copy: SessionCopy, id: str, now: float) -> SessionCopy:
    """Return the present branch of a session as the session `id`, whose messages have ids of their own.

    What the requests of the other have used and cost stays with it, and so do its tasks.
    """
    branch = _branch(copy)
    new = {placed.message.id: new_id() for placed in branch}
    info = replace(
        copy.info, id=id, short=short_of(id), head=new.get(copy.info.head, ""), parent=copy.info.id,
        task_of="", created_at=now, updated_at=now,
    )  # fmt: skip
    messages = [
        replace(
            placed,
            message=replace(placed.message, id=new[placed.message.id]),
            parent=new.get(placed.parent, ""),
            session=id,
        )
        for placed in branch
    ]
    return SessionCopy(info, _state(copy.state, new), messages, [*_summaries(copy, new)])


def _branch(copy: SessionCopy) -> list[PlacedMessage]:
    """Return the messages down to the head, root first."""
    by_id = {placed.message.id: placed for placed in copy.messages}
    branch: list[PlacedMessage] = []
    at = copy.info.head
    while at:
        branch.append(by_id[at])
        at = branch[-1].parent
    return branch[::-1]


def _state(state: SessionState, new: dict[str, str]) -> SessionState:
    notes: dict[str, str] = {}
    for key, text in state.notes.items():
        message, slash, number = key.partition("/")
        if message in new:
            notes[f"{new[message]}{slash}{number}"] = text
    return replace(
        state,
        pins=tuple(new[pinned] for pinned in state.pins if pinned in new),
        excluded=tuple(new[left_out] for left_out in state.excluded if left_out in new),
        notes=notes,
    )


def _summaries(copy: SessionCopy, new: dict[str, str]) -> Iterator[StoredSummary]:
    for summary in copy.summaries:
        if summary.through in new:
            yield replace(summary, through=new[summary.through])
