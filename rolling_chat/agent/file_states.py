"""Compare the files that a session read and wrote with those on disk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rolling_chat.sessions.records import FileUse
from rolling_chat.tools.hashing import hash_file


class Since(StrEnum):
    """What happened to a file since the session last used it: unchanged, changed, gone or unknown."""

    SAME = "unchanged"
    CHANGED = "changed since"
    GONE = "gone"
    UNKNOWN = "too large to tell"


@dataclass(frozen=True, slots=True)
class FileState:
    """A file of the session: what was done with it, when last (seconds since the epoch), and how often."""

    path: str
    action: str
    at: float
    times: int
    since: Since


def file_states(used: Iterable[FileUse]) -> list[FileState]:
    """Return the session's files, the last used first, each compared with the file on disk."""
    by_path: dict[str, list[FileUse]] = {}
    for use in used:
        by_path.setdefault(use.touch.path, []).append(use)
    states = [_state(path, uses) for path, uses in by_path.items()]
    return sorted(states, key=lambda state: -state.at)


def _state(path: str, uses: list[FileUse]) -> FileState:
    last = uses[-1]
    actions = " and ".join(sorted({use.touch.action.removesuffix(" in part") for use in uses}))
    return FileState(path, actions, last.at, len(uses), _since(last.touch.sha256, hash_file(Path(path))))


def _since(then: str, now: str | None) -> Since:
    if now is None:
        return Since.GONE
    if not then or not now:
        return Since.UNKNOWN
    return Since.SAME if now == then else Since.CHANGED
