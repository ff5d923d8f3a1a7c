"""The saved sessions for the user's list: previews, titles, copies and deletion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.agent.attachments import delete_attachments
from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.runtime import Runtime
from rolling_chat.messages import Message
from rolling_chat.providers.background_thread import in_background
from rolling_chat.sessions.records import SessionInfo

_NEWEST = 40  # messages; enough to find the last user message and the last answer
_REQUESTS = 200


@dataclass(frozen=True, slots=True)
class SessionPreview:
    """One saved session at a glance: its facts, its last question and answer, and its prompt sizes.

    `prompt_tokens` has the size of each of the newest requests, oldest first, as reported or else as
    estimated.
    """

    info: SessionInfo
    asked: str
    answered: str
    prompt_tokens: tuple[int, ...]


class SavedSessions:
    """Lists, previews and changes the saved sessions of a store."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._known: list[SessionInfo] = []

    def all(self) -> list[SessionInfo]:
        """Return all sessions, those of this folder first, each group newest first."""
        with in_words():
            everything = self._runtime.store.sessions()
        here = str(self._runtime.folder)
        self._known = sorted(everything, key=lambda info: info.folder != here)
        return self._known

    def offered(self) -> list[SessionInfo]:
        """Return all sessions, for completion; if the store is remote, those that were read last."""
        return self._known if self._runtime.store.is_remote else self.all()

    async def read(self) -> None:
        """Read the sessions for completion, if the store is remote."""
        if self._runtime.store.is_remote:
            await in_background(self.all)

    def preview(self, session_id: str) -> SessionPreview:
        """Read the preview of a session; call it from a thread. Raises ChatError."""
        with in_words():
            store = self._runtime.store
            messages = store.stretch(session_id, _NEWEST).messages
            return SessionPreview(
                store.session(session_id),
                _last(messages, "user"),
                _last(messages, "assistant"),
                tuple(store.request_sizes(session_id, _REQUESTS)),
            )

    def rename(self, session_id: str, title: str) -> None:
        """Give a session a title of the user's own. Raises ChatError."""
        title = " ".join(title.split())
        if not title:
            raise ChatError("A title needs at least one character.")
        with in_words():
            self._runtime.store.update_session(session_id, title=title)

    def fork(self, session_id: str) -> str:
        """Copy a session; return the id of the copy. Raises ChatError."""
        with in_words():
            return self._runtime.store.fork(session_id).id

    def delete(self, session_id: str) -> None:
        """Delete a session permanently. Raises ChatError, for instance if it is open anywhere."""
        with in_words():
            store = self._runtime.store
            info = store.session(session_id)
            store.delete(info.id)
            delete_attachments(self._runtime.paths.attachments_dir, info, store)


def _last(messages: Sequence[Message], role: str) -> str:
    return next((message.text for message in reversed(messages) if message.role == role and message.text), "")
