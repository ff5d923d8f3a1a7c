"""The files of one session that the user mentions: found, shown with their price, read when they are sent."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.mentioned_files import MentionedFile, MentionedFiles
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session_state import SessionState
from rolling_chat.agent.turn.attaching import Attaching
from rolling_chat.events import Listener
from rolling_chat.messages import Attachment
from rolling_chat.pictures import read_header
from rolling_chat.redaction import without_secrets
from rolling_chat.tools import ToolContext
from rolling_chat.tools.file_index import FileIndex, read_index


class SessionMentions:
    """Finds and reads the files that the user mentions in one session; `listener` is asked about some."""

    def __init__(self, runtime: Runtime, state: SessionState, listener: Listener) -> None:
        self._runtime = runtime
        self._state = state
        self._listener = listener

    def index(self) -> FileIndex:
        """Index the files of the working folder, to complete their names; call it from a thread."""
        runtime = self._runtime
        environment = without_secrets(runtime.environ, runtime.settings.agent.environment)
        return read_index(runtime.folder, environment)

    @property
    def files(self) -> MentionedFiles:
        """The finder of the files that typed text mentions."""
        runtime = self._runtime
        context = ToolContext(runtime.folder, runtime.environ)
        kept = runtime.attachments.folder_of(self._state.info.id)
        return MentionedFiles(context, runtime.paths.own, kept, self._state.sizes.of_attachment)

    def preview(self, file: MentionedFile) -> Attachment:
        """Return what attaching a mentioned file would add; call it from a thread. Raises ChatError."""
        with in_words():
            added = self.files.preview(file)
        if added.picture and not self._state.setup.takes_pictures:
            return replace(added, note=f"{added.note}, sent as a line")
        return added

    @property
    def attaching(self) -> Attaching:
        """The reader of the files that a message mentions, for a message that is sent now."""
        setup = self._state.setup
        return Attaching(
            self.files,
            self._listener.ask_attachment,
            setup.config.max_tool_result_tokens,
            setup.reads_files,
            "" if setup.takes_pictures else setup.model,
            partial(self._runtime.attachments.keep, self._state.info.id),
        )

    def keep_picture(self, data: bytes) -> str:
        """Keep a picture from the clipboard as a private file, and return the name by which it is mentioned.

        Call it from a thread. Raises ChatError.
        """
        header = read_header(data)
        if header is None:
            raise ChatError("The clipboard has no PNG, JPEG, GIF or WebP picture.")
        runtime, suffix = self._runtime, f".{header.kind.lower()}"
        with in_words():
            return runtime.attachments.keep_picture(self._state.info.id, data, suffix, runtime.folder)
