"""Bring sessions from one store to another: what is there already stays, and only the rest travels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rolling_chat.sessions.records import SessionInfo
from rolling_chat.sessions.store import SessionStore


class Arrival(StrEnum):
    """What became of a session that was to go to another store."""

    COPIED = "copied"
    UP_TO_DATE = "up to date"
    BRANCHED = "branched"  # both stores had gone on


@dataclass(frozen=True, slots=True)
class Arrived:
    """A session as it is in the other store: `messages` are those that were new there, its tasks' among them.

    Of two that had gone on, `leads_there` says that the present branch is that of the other store.
    """

    info: SessionInfo
    arrival: Arrival
    messages: int = 0
    leads_there: bool = False


def oldest_first(sessions: Collection[SessionInfo]) -> list[SessionInfo]:
    """Return sessions in the order in which they are copied: a fork behind what it was forked from."""
    return sorted(sessions, key=lambda info: (info.created_at, info.id))


def copy_session(
    session: SessionInfo,
    source: SessionStore,
    target: SessionStore,
    there: Mapping[str, SessionInfo],
    *,
    settings_too: bool = False,
) -> Arrived:
    """Copy what is new of a session, with its tasks; `there` are the sessions of the target by id.

    Nothing is taken away from either store. It is done in one transaction: interrupted, it has not begun.
    `settings_too` compares title, pins and the like also where nothing was said since the last time: the
    source's count. Raises StoreError.
    """
    known = there.get(session.id)
    ids = source.ids_in(session.id)
    missing = frozenset(target.missing(ids))
    if known is not None and not missing and session.updated_at <= known.updated_at:
        is_even = session.updated_at == known.updated_at
        if not (settings_too and is_even) or _is_set_alike(session, known, source, target):
            return Arrived(known, Arrival.UP_TO_DATE)
    # the first time all of it, also what a fork has brought there: it is this session's own
    copy = source.copy_of(session.id, without=() if known is None else frozenset(ids) - missing)
    arrived = target.adopt(copy)
    new = sum(placed.message.id in missing for one in (copy, *copy.tasks) for placed in one.messages)
    if known is not None and new and known.head and known.head not in ids:
        return Arrived(arrived, Arrival.BRANCHED, new, leads_there=arrived.head != copy.info.head)
    return Arrived(arrived, Arrival.COPIED, new)


def _is_set_alike(
    session: SessionInfo, known: SessionInfo, source: SessionStore, target: SessionStore
) -> bool:
    return session == known and source.state(session.id) == target.state(session.id)
