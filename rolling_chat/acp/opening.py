"""Open sessions for clients, each with its folder's own settings and trust."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from acp import RequestError

from rolling_chat.acp.codes import AUTH_REQUIRED, INVALID_PARAMS, NOT_FOUND
from rolling_chat.agent import Chat, ChatError, NoModelError
from rolling_chat.api import open_chat, saved_sessions
from rolling_chat.settings.errors import SettingsError

_HOW = (
    "Set a key such as ANTHROPIC_API_KEY in your client's settings of this agent, or store one with "
    "`rolling-chat login anthropic` in a terminal."
)


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens sessions with the command line's options; `trust` applies to every folder that a client names."""

    model: str = ""
    api_base: str = ""
    overrides: Sequence[str] = field(default=())
    trust: bool = False

    def open(self, cwd: str, resume: str | None = None, *, forked: bool = False) -> Chat:
        """Open a new session in a folder, or a saved one, or a copy of one; call it in a thread.

        Raises RequestError with one line.
        """
        folder = _folder(cwd)
        if resume is not None:
            self._require_saved(resume)
        try:
            chat = open_chat(
                model=self.model if resume is None else "",
                api_base=self.api_base,
                folder=folder,
                resume=resume,
                overrides=self.overrides,
                trust=self.trust,
            ).chat
            if forked:
                chat.fork()
        except NoModelError as error:
            raise RequestError(AUTH_REQUIRED, f"{_sentence(error)} {_HOW}") from error
        except (ChatError, SettingsError) as error:
            raise RequestError(INVALID_PARAMS, _sentence(error)) from error
        if resume is None and chat.session.missing_key:
            line = chat.session.missing_key
            chat.dispose()
            raise RequestError(AUTH_REQUIRED, f"{line} {_HOW}")
        return chat

    def _require_saved(self, id: str) -> None:
        """Raise RequestError unless a saved session has exactly this id, in its current or its old form."""
        try:
            known = any(id in (info.id, info.short) for info in saved_sessions())
        except ChatError as error:
            raise RequestError(INVALID_PARAMS, _sentence(error)) from error
        if not known:
            raise RequestError(NOT_FOUND, "There is no saved session with that id.", {"sessionId": id})


def _folder(cwd: object) -> Path:
    path = Path(cwd) if isinstance(cwd, str) and cwd and "\0" not in cwd else None
    if path is None or not path.is_absolute() or not path.is_dir() or not os.access(path, os.R_OK | os.X_OK):
        raise RequestError(INVALID_PARAMS, "cwd must be the absolute path of a folder that can be read.")
    return path


def _sentence(error: Exception) -> str:
    text = str(error)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
