"""The prompt box's files: long pastes, named by their content, and unsent drafts."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rolling_chat.messages import Message
from rolling_chat.process_identity import Process, this_process
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.toml_file import replace_file
from rolling_chat.tui.drafts.pastes import Draft, restored

_log = logging.getLogger("rolling_chat.tui")

_KEPT_SECONDS = 30 * 24 * 3600.0
_NAME_CHARACTERS = 40
_SAVING_SECONDS = 1.0  # a sent message may be this much older than a file that still has it as a draft


class PasteFiles:
    """A folder of long pastes, each stored once and named by a hash of its text; None stores nothing.

    Drafts and the history refer to pastes by name, so that saving either does not write a megabyte.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def to_json(self, draft: Draft) -> Any:
        """Return a draft as JSON, storing its pastes as files.

        Raises SettingsError if they cannot be written.
        """
        if not draft.used:
            return draft.kept
        return {"text": draft.kept, "pastes": {str(n): self._keep(text) for n, text in draft.used.items()}}

    def from_json(self, value: object) -> Draft | None:
        """Read a draft from any JSON value; the token of a missing paste becomes plain text."""
        match value:
            case str():
                return restored(value, {})
            case {"text": str(text), "pastes": dict(names)}:
                return restored(text, self._read_all(names))
            case _:
                return None

    def prune(self) -> None:
        """Delete pastes that were not stored again for thirty days."""
        for file in _files(self._folder, "*"):
            _delete_if_old(file)

    def _keep(self, text: str) -> str:
        name = hashlib.sha256(text.encode()).hexdigest()[:_NAME_CHARACTERS]
        if self._folder is not None:
            file = self._folder / f"{name}.txt"
            if file.exists():
                with suppress(OSError):
                    os.utime(file)
            else:
                replace_file(file, text)
        return name

    def _read_all(self, names: Mapping[object, object]) -> dict[int, str]:
        found: dict[int, str] = {}
        for number, name in names.items():
            # only names that `_keep` can create: never follow a path from a file
            if isinstance(number, str) and number.isdecimal() and isinstance(name, str) and name.isalnum():
                text = self._read(name)
                if text is not None:
                    found[int(number)] = text
        return found

    def _read(self, name: str) -> str | None:
        if self._folder is None:
            return None
        try:
            return (self._folder / f"{name}.txt").read_bytes().decode(errors="replace")
        except OSError:
            return None


@dataclass(frozen=True, slots=True)
class DraftOrigin:
    """The origin of a draft: its session, the folder, and whether the session has no messages yet."""

    session: str
    folder: str
    is_new: bool

    def takes(self, other: DraftOrigin) -> bool:
        """Return whether a draft saved at `other` is restored here.

        That is, in the same session, or from one new session to the next in the same folder.
        """
        return self.session == other.session or (self.is_new and other.is_new and self.folder == other.folder)


@dataclass(frozen=True, slots=True)
class LeftDraft:
    """The unsent text of a process that ended: its draft, its waiting messages, and when they were saved."""

    draft: Draft = field(default_factory=Draft)
    waiting: tuple[Draft, ...] = ()
    saved_at: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.draft or self.waiting)

    @property
    def pastes(self) -> list[str]:
        """The long pastes in the draft and the waiting messages."""
        return [paste for one in (*self.waiting, self.draft) for paste in one.used.values()]

    def unsent(self, said: Sequence[Message]) -> Draft | str:
        """Return the text that was never sent; `said` are the user's stored messages, oldest first."""
        since = [one.words.strip() for one in said if one.created_at >= self.saved_at - _SAVING_SECONDS]
        left = []
        for waiting in self.waiting:
            if waiting.whole.strip() in since:
                since.remove(waiting.whole.strip())
            else:
                left.append(waiting.said)
        # the process may have been killed after sending the draft, before deleting the file
        draft = Draft() if said and self.draft.whole.strip() == said[-1].words.strip() else self.draft
        return "\n".join([*left, *filter(None, [draft.said])]) if left else draft


class DraftFiles:
    """A folder of unsent drafts, one file per process; None as folder stores nothing.

    A file is claimed only after its process is gone, and by renaming it, which succeeds for one process
    only. Raises SettingsError if the folder cannot be written; `failed` means that this was logged.
    """

    def __init__(self, folder: Path | None, pastes: PasteFiles) -> None:
        self._folder = folder
        self._pastes = pastes
        self.failed = False
        self._own = folder / f"{uuid.uuid4().hex}.json" if folder is not None else None

    def save(self, place: DraftOrigin, draft: Draft, waiting: Sequence[Draft] = ()) -> None:
        """Save the draft and the waiting messages; delete the file if there are none."""
        if self._own is None:
            return
        if not draft.text.strip() and not waiting:
            with suppress(OSError):
                self._own.unlink(missing_ok=True)
            return
        kept = {
            "place": asdict(place),
            "process": asdict(this_process()),
            "saved_at": time.time(),
            "draft": self._pastes.to_json(draft),
            "waiting": [self._pastes.to_json(one) for one in waiting],
        }
        replace_file(self._own, json.dumps(kept))

    def take(self, place: DraftOrigin) -> LeftDraft:
        """Claim and return the newest draft left at `place`; empty if there is none."""
        if self._own is None:
            return LeftDraft()
        left = sorted(self._left_for(place), key=lambda found: found[0].saved_at, reverse=True)
        for found, file in left:
            with suppress(OSError):
                file.rename(self._own)
                # save at once as this process's: until then, others see a dead owner
                save_quietly(self, place, found.draft, found.waiting)
                return found
        return LeftDraft()

    def prune(self) -> None:
        """Delete drafts that are more than thirty days old."""
        for file in _files(self._folder, "*"):
            if file != self._own:
                _delete_if_old(file)

    def _left_for(self, place: DraftOrigin) -> Iterator[tuple[LeftDraft, Path]]:
        for file in _files(self._folder, "*.json"):
            with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
                kept = json.loads(file.read_bytes())
                if place.takes(DraftOrigin(**kept["place"])) and Process(**kept["process"]).is_gone():
                    drafts = map(self._pastes.from_json, (kept["draft"], *kept.get("waiting", ())))
                    draft, *waiting = (one or Draft() for one in drafts)
                    left = LeftDraft(draft, tuple(filter(None, waiting)), float(kept["saved_at"]))
                    if left:
                        yield left, file


def save_quietly(files: DraftFiles, place: DraftOrigin, draft: Draft, waiting: Sequence[Draft] = ()) -> None:
    """Save the draft; only log an unwritable folder."""
    try:
        files.save(place, draft, waiting)
    except SettingsError as error:
        _log.log(logging.DEBUG if files.failed else logging.WARNING, "the draft is not kept: %s", error)
        files.failed = True


def _files(folder: Path | None, pattern: str) -> list[Path]:
    if folder is None:
        return []
    try:
        return list(folder.glob(pattern))
    except OSError:
        return []


def _delete_if_old(file: Path) -> None:
    with suppress(OSError):
        if time.time() - file.stat().st_mtime > _KEPT_SECONDS:
            file.unlink()
