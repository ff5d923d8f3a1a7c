"""Find, preview and attach the files that the user mentions in one session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.mentioned_files import GivenText, MentionedFile, MentionedFiles
from rolling_chat.agent.mentioned_resources import MentionedResource, MentionedResources
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session_state import SessionState
from rolling_chat.agent.turn.attaching import Attaching, Insertion, Outgoing
from rolling_chat.events import Listener
from rolling_chat.mentions import Place
from rolling_chat.messages import Attachment
from rolling_chat.pictures import read_header
from rolling_chat.providers.background_thread import in_background
from rolling_chat.redaction import without_secrets
from rolling_chat.tools import ToolContext
from rolling_chat.tools.file_index import FileIndex, read_index
from rolling_chat.tools.mcp.server import McpServer


class SessionMentions:
    """Finds and reads the files that the user mentions in one session, asking `listener` about some."""

    def __init__(
        self,
        runtime: Runtime,
        state: SessionState,
        listener: Listener,
        servers: Callable[[], Sequence[McpServer]],
    ) -> None:
        self._runtime = runtime
        self._servers = servers
        self._state = state
        self._listener = listener

    async def index(self) -> FileIndex:
        """Index the files of the working folder, to complete their names."""
        runtime = self._runtime
        environment = without_secrets(runtime.environ, runtime.settings.agent.environment)
        return await in_background(partial(read_index, runtime.folder, environment))

    @property
    def resources(self) -> MentionedResources:
        """The resources of the session's MCP servers."""
        return MentionedResources(self._servers(), self._state.sizes.of_attachment)

    async def find(self, place: Place) -> MentionedFile | MentionedResource | None:
        """Return what a mention names; None if there is no such file or resource."""
        resource = self.resources.find(place)
        return resource or await in_background(partial(self._files.find, place))

    async def find_picture(self, path: str) -> MentionedFile | None:
        """Return the picture that a pasted path names; None if it names anything else."""
        return await in_background(partial(self._files.find_picture, path))

    @property
    def _files(self) -> MentionedFiles:
        runtime = self._runtime
        context = ToolContext(runtime.folder, runtime.environ)
        kept = runtime.attachments.folder_of(self._state.info.on_disk)
        return MentionedFiles(context, runtime.paths.own, kept, self._state.sizes.of_attachment)

    async def preview(self, file: MentionedFile | MentionedResource) -> Attachment:
        """Return what attaching a mentioned file or resource would add. Raises ChatError."""
        if isinstance(file, MentionedResource):
            first, *pictures = await self.resources.read(file)
            return replace(first, tokens=first.tokens + sum(one.tokens for one in pictures))
        with in_words():
            added = await in_background(partial(self._files.preview, file))
        may_be_picture = added.picture or (not file.located.is_inside and file.is_named_as_picture)
        if may_be_picture and not self._state.setup.takes_pictures:
            return replace(added, note=f"{added.note}, sent as a line")
        return added

    @property
    def attaching(self) -> Attaching:
        """The reader of mentioned files for a message that is being sent."""
        setup = self._state.setup
        return Attaching(
            self._files,
            self.resources,
            self._listener.ask_attachment,
            setup.config.max_tool_result_tokens,
            setup.reads_files,
            "" if setup.takes_pictures else setup.model,
            partial(self._runtime.attachments.keep, self._state.info.on_disk),
        )

    async def outgoing(
        self, text: str, inserted: Sequence[Insertion] = (), given: Sequence[GivenText] = ()
    ) -> Outgoing:
        """Return the message to send: typed text, texts `inserted` by commands, and texts `given` with it.

        Raises ChatError.
        """
        outgoing = await self.attaching.outgoing(text, given)
        for one in inserted:
            added = await self.attaching.outgoing(one.text)
            attachment = Attachment(one.mention, one.note, added.text)
            tokens = self._state.sizes.of_attachment(attachment)
            outgoing.attachments += [replace(attachment, tokens=tokens), *added.attachments]
            outgoing.files += added.files
            outgoing.notices += added.notices
        return outgoing

    async def keep_picture(self, data: bytes) -> str:
        """Save a picture from the clipboard as a private file; return the name to mention it by.

        Raises ChatError.
        """
        header = read_header(data)
        if header is None:
            raise ChatError("The clipboard has no PNG, JPEG, GIF or WebP picture.")
        runtime, suffix = self._runtime, f".{header.kind.lower()}"
        with in_words():
            keep = partial(
                runtime.attachments.keep_picture, self._state.info.on_disk, data, suffix, runtime.folder
            )
            return await in_background(keep)
