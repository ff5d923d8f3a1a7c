"""Convert the blocks of a client's prompt to a message: text, files by name, files by content, pictures."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from rolling_chat.agent import ChatError, GivenText
from rolling_chat.events import ReadUnsaved
from rolling_chat.mentions import MARK, Mention, without_marks
from rolling_chat.pictures import read_header
from rolling_chat.text import one_line

Block = (
    TextContentBlock
    | ImageContentBlock
    | AudioContentBlock
    | ResourceContentBlock
    | EmbeddedResourceContentBlock
)
KeepPicture = Callable[[bytes], Awaitable[str]]

_LINES = re.compile(r"L?(\d{1,9})(?:[-:,]L?(\d{1,9}))?")
_LONGEST_NAME = 500


@dataclass(slots=True)
class Said:
    """A client's prompt: text in which marks mention files to read, and texts passed by the client."""

    text: str = ""
    given: list[GivenText] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Add text without mentions."""
        self.text += without_marks(text)

    def add_word(self, word: str) -> None:
        """Add a word, separated by spaces."""
        self.text += ("" if not self.text or self.text[-1].isspace() else " ") + word + " "

    def add_given(self, given: GivenText) -> None:
        """Add a text passed by the client, and its name as a word."""
        self.given.append(given)
        self.add_word(given.name)


@dataclass(frozen=True, slots=True)
class PromptReader:
    """Reads prompts in a folder; `unsaved`, if any, returns the client's unsaved text of a file."""

    folder: Path
    keep_picture: KeepPicture
    unsaved: ReadUnsaved | None

    async def read(self, blocks: Sequence[Block]) -> Said:
        """Return the content of a prompt's blocks. Raises ChatError for content that cannot be sent.

        Files are not read yet: a link becomes a mention, which is handled like any other.
        """
        said = Said()
        for block in blocks:
            match block:
                case TextContentBlock():
                    said.add(block.text)
                case ResourceContentBlock():
                    await self._add_link(said, block)
                case EmbeddedResourceContentBlock(resource=TextResourceContents() as resource):
                    _add_text(said, resource, self.folder)
                case EmbeddedResourceContentBlock(resource=BlobResourceContents() as resource):
                    said.add_word(await _saved_picture(resource.blob, resource.uri, self.keep_picture))
                case ImageContentBlock():
                    said.add_word(
                        await _saved_picture(block.data, block.uri or "the picture", self.keep_picture)
                    )
                case AudioContentBlock():
                    raise ChatError("Not sent: Rolling Chat does not accept audio.")
        said.text = said.text.rstrip(" ")
        return said

    async def _add_link(self, said: Said, link: ResourceContentBlock) -> None:
        mention = mention_of(link.uri, self.folder)
        if mention is None:
            name, address = (without_marks(one_line(text, _LONGEST_NAME)) for text in (link.name, link.uri))
            said.add_word(f"{name} <{address}>" if name and name != address else f"<{address}>")
            return
        path = self.folder / mention.path
        unsaved = await self.unsaved(path) if self.unsaved and path.is_relative_to(self.folder) else None
        if unsaved is None:
            said.add_word(f"{MARK}{mention.spelled}")
            return
        lines = unsaved.splitlines(keepends=True)
        text = "".join(lines[max(0, mention.first - 1) : mention.last or None])
        said.add_given(GivenText(mention, mention.path, _part_of_file(mention), text))


def mention_of(uri: str, folder: Path) -> Mention | None:
    """Return the mention of a `file:` address, with lines if its fragment names some; None for any other."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = Path(os.path.normpath(url2pathname(unquote(parts.path, errors="surrogateescape"))))
    named = str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
    lines = _LINES.fullmatch(parts.fragment)
    if lines is None or not int(lines[1]):
        return Mention(named)
    first = int(lines[1])
    return Mention(named, first, max(first, int(lines[2] or first)))


def _add_text(said: Said, resource: TextResourceContents, folder: Path) -> None:
    mention = mention_of(resource.uri, folder)
    if mention is not None:
        said.add_given(GivenText(mention, mention.path, _part_of_file(mention), resource.text))
        return
    mention = Mention(without_marks(one_line(resource.uri, _LONGEST_NAME)) or "text")
    said.add_given(GivenText(mention, mention.path, "text", resource.text))


def _part_of_file(mention: Mention) -> str:
    """Return which part of a file an editor's text is, in words."""
    lines = f"lines {mention.first}-{mention.last} of a file" if mention.first else "file"
    return f"{lines}, as the editor has it,"


async def _saved_picture(data: str, name: str, keep_picture: KeepPicture) -> str:
    """Save a picture, and return a mention of it. Raises ChatError."""
    shown = one_line(name, 80)
    try:
        decoded = base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error):
        raise ChatError(f"Not sent: {shown} is damaged.") from None
    if read_header(decoded) is None:
        raise ChatError(f"Not sent: {shown} is neither text nor a PNG, JPEG, GIF or WebP picture.")
    return f"{MARK}{Mention(await keep_picture(decoded)).spelled}"
