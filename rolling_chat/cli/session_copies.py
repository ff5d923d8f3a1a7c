"""`rolling-chat sessions push` and `pull`: between the file of this machine and the store of the settings."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from dataclasses import dataclass

from rolling_chat.cli.configured import settings_of
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.cli.stored import open_saved
from rolling_chat.figures import plural
from rolling_chat.messages import Json
from rolling_chat.sessions.copying import Arrival, Arrived, copy_session, oldest_first
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import (
    SessionAmbiguous,
    SessionInfo,
    SessionNotFound,
    StoreError,
    StoreOutOfReach,
)
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.store_place import is_begun
from rolling_chat.text import one_line


@dataclass(frozen=True, slots=True)
class _Way:
    """The direction in which sessions are copied, in words."""

    verb: str
    done: str
    source: str
    target: str


_PUSH = _Way("push", "pushed", "this machine", "the database")
_PULL = _Way("pull", "pulled", "the database", "this machine")


def push_sessions(options: Options, paths: Paths) -> int:
    """Copy sessions of this machine into the store that the settings name."""
    return _copy(options, paths, _PUSH)


def pull_sessions(options: Options, paths: Paths) -> int:
    """Copy sessions of the store that the settings name to this machine."""
    return _copy(options, paths, _PULL)


def _copy(options: Options, paths: Paths, way: _Way) -> int:
    _require_choice(options, way)
    if not settings_of(options, paths).sessions.store:
        raise Failure(
            f"sessions {way.verb}: no database is named; set store under [sessions] to an address "
            "such as postgresql://NAME@HOST/DATABASE",
            Exit.USAGE,
        )
    try:
        # none is made for a push that finds nothing here
        local = open_store(paths.database if way is _PULL or is_begun(paths.database) else None)
        with closing(local), closing(open_saved(options, paths)) as remote:
            source, target = (local, remote) if way is _PUSH else (remote, local)
            copying = _Copying(source, target, way, is_json=options.json)
            return copying.run(options.names, everything=options.all)
    except StoreError as error:
        raise Failure(str(error)) from error


def _require_choice(options: Options, way: _Way) -> None:
    if options.names and options.all:
        raise Failure(f"sessions {way.verb} takes names or --all, not both", Exit.USAGE)
    if not options.names and not options.all:
        raise Failure(f"sessions {way.verb}: name the sessions, or say --all", Exit.USAGE)


class _Copying:
    """Copies sessions one after the other, with a line for each and one for all."""

    def __init__(self, source: SessionStore, target: SessionStore, way: _Way, *, is_json: bool) -> None:
        self._source = source
        self._target = target
        self._way = way
        self._is_json = is_json
        self._counts: Counter[str] = Counter()
        self._rows: list[dict[str, Json]] = []

    def run(self, names: list[str], *, everything: bool) -> int:
        """Copy the sessions of these names, or every session; return the exit code."""
        there = {info.id: info for info in self._target.sessions()}
        wanted = self._source.sessions() if everything else self._named(names)
        try:
            for index, info in enumerate(oldest_first(wanted)):
                if everything and there.get(info.id) == info:
                    self._tell(Arrived(info, Arrival.UP_TO_DATE))
                    continue
                try:
                    self._tell(
                        copy_session(info, self._source, self._target, there, settings_too=not everything)
                    )
                except StoreOutOfReach as error:
                    raise Failure(
                        f"{index:,} of {plural(len(wanted), 'session')} had been done when {error.name} went "
                        "out of reach; the same command goes on from there"
                    ) from error
                except StoreError as error:
                    self._tell_failed(info, str(error))
        finally:
            if self._is_json:
                print(json.dumps(self._rows, indent=2))
        failed = self._counts["failed"]
        if not self._is_json:
            print(self._summary(len(wanted)))
        if failed:
            raise Failure(f"{failed:,} of {plural(len(wanted), 'session')} could not be {self._way.done}")
        return Exit.DONE

    def _named(self, names: list[str]) -> list[SessionInfo]:
        found: dict[str, SessionInfo] = {}
        for name in names:
            try:
                info = self._source.session(name)
            except (SessionNotFound, SessionAmbiguous) as error:
                raise Failure(f"on {self._way.source}, {error}", Exit.USAGE) from error
            if info.task_of:  # it goes with the session that it is a task of
                info = self._source.session(info.task_of)
            found[info.id] = info
        return list(found.values())

    def _tell(self, arrived: Arrived) -> None:
        self._counts[arrived.arrival] += 1
        self._add(arrived.info, self._said(arrived), result=arrived.arrival.value, messages=arrived.messages)

    def _tell_failed(self, info: SessionInfo, error: str) -> None:
        self._counts["failed"] += 1
        self._add(info, f"not {self._way.done}: {error}", result="failed", messages=0, error=error)

    def _add(self, info: SessionInfo, said: str, **row: Json) -> None:
        if self._is_json:
            self._rows.append({"id": info.id, "short": info.short, "title": info.title, **row})
            return
        # said at once: there may be many, and the network may be slow
        print(f"{info.short}  {said}  {one_line(info.title) or '(no title)'}", flush=True)

    def _said(self, arrived: Arrived) -> str:
        new = plural(arrived.messages, "message")
        match arrived.arrival:
            case Arrival.UP_TO_DATE:
                return "up to date"
            case Arrival.COPIED:
                return f"{new if arrived.messages else 'title and settings'} {self._way.done}"
            case Arrival.BRANCHED:
                leads = self._way.target if arrived.leads_there else self._way.source
                return (
                    f"{new} {self._way.done}; both sides had gone on: {leads} was last and leads, "
                    "the other is a branch (/branches)"
                )

    def _summary(self, all_of_them: int) -> str:
        named = {
            self._way.done: self._counts[Arrival.COPIED],
            f"{self._way.done} as branches": self._counts[Arrival.BRANCHED],
            "up to date": self._counts[Arrival.UP_TO_DATE],
            "failed": self._counts["failed"],
        }
        parts = ", ".join(f"{count:,} {what}" for what, count in named.items() if count)
        return f"{plural(all_of_them, 'session')}: {parts}" if parts else f"No sessions to {self._way.verb}."
