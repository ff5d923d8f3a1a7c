"""The files that a session's tools used: their states, and the undo of their changes."""

from __future__ import annotations

from functools import partial

from rolling_chat.agent.errors import in_words
from rolling_chat.agent.file_states import FileState, file_states
from rolling_chat.agent.file_undo import FileMove, FileUndo
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.store_queue import off_loop
from rolling_chat.providers.background_thread import in_background
from rolling_chat.sessions.kept_files import MAX_KEPT_BYTES
from rolling_chat.tools import ToolContext


class SessionFiles:
    """The files of one session. All methods raise ChatError if the store or a file fails."""

    def __init__(self, runtime: Runtime, session_id: str) -> None:
        self._runtime = runtime
        self._session_id = session_id

    @property
    def has_kept(self) -> bool:
        """Whether any file change could be undone."""
        with in_words():
            return self._runtime.store.kept_files.has_any()

    @property
    def kept_bytes(self) -> tuple[int, int]:
        """The bytes kept to undo file changes of all sessions, and the limit for them."""
        with in_words():
            return self._runtime.store.kept_files.size(), MAX_KEPT_BYTES

    def move(self, here: str, there: str) -> FileMove:
        """Return the file changes for a move between two messages; call it from a thread."""
        with in_words():
            return self._undo.move(here, there)

    def make(self, move: FileMove) -> None:
        """Undo or redo file changes; call it from a thread."""
        with in_words():
            self._undo.make(move)

    def diff(self, here: str) -> str:
        """Return a diff of what the tools changed up to a message; call it from a thread."""
        with in_words():
            return self._undo.diff(here)

    async def states(self) -> list[FileState]:
        """Return the files that this session's tools read and wrote, and whether they have changed."""
        with in_words():
            store = self._runtime.store
            used = await off_loop(store, partial(store.files, self._session_id))
        return await in_background(partial(file_states, used))

    @property
    def _undo(self) -> FileUndo:
        runtime = self._runtime
        return FileUndo(runtime.store.kept_files, ToolContext(runtime.folder, runtime.environ))
