"""The blocks of a client's prompt as a message of ours: text, files by name, files by content, pictures."""

from __future__ import annotations

import base64
import binascii
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
    """What a client's user says: text with marks where files are to be read, and texts that came along."""

    text: str = ""
    given: list[GivenText] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Add text that mentions nothing."""
        self.text += without_marks(text)

    def add_word(self, word: str) -> None:
        """Add a word that stands by itself."""
        self.text += ("" if not self.text or self.text[-1].isspace() else " ") + word + " "


async def read_prompt(blocks: Sequence[Block], folder: Path, keep_picture: KeepPicture) -> Said:
    """Return what the blocks of a prompt say. Raises ChatError for what cannot be sent.

    Nothing is read yet: a link becomes a mention, which goes the way of every mention.
    """
    said = Said()
    for block in blocks:
        match block:
            case TextContentBlock():
                said.add(block.text)
            case ResourceContentBlock():
                _add_link(said, block, folder)
            case EmbeddedResourceContentBlock(resource=TextResourceContents() as resource):
                _add_text(said, resource, folder)
            case EmbeddedResourceContentBlock(resource=BlobResourceContents() as resource):
                said.add_word(await _kept(resource.blob, resource.uri, keep_picture))
            case ImageContentBlock():
                said.add_word(await _kept(block.data, block.uri or "the picture", keep_picture))
            case AudioContentBlock():
                raise ChatError("Not sent: Rolling Chat takes no audio.")
    said.text = said.text.rstrip(" ")
    return said


def mention_of(uri: str, folder: Path) -> Mention | None:
    """Return the mention of a `file:` address, with lines if its fragment names some; None for any other."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = Path(url2pathname(unquote(parts.path, errors="surrogateescape")))
    named = str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
    lines = _LINES.fullmatch(parts.fragment)
    if lines is None or not int(lines[1]):
        return Mention(named)
    first = int(lines[1])
    return Mention(named, first, max(first, int(lines[2] or first)))


def _add_link(said: Said, link: ResourceContentBlock, folder: Path) -> None:
    mention = mention_of(link.uri, folder)
    if mention is not None:
        said.add_word(f"{MARK}{mention.spelled}")
        return
    name, address = (without_marks(one_line(text, _LONGEST_NAME)) for text in (link.name, link.uri))
    said.add_word(f"{name} <{address}>" if name and name != address else f"<{address}>")


def _add_text(said: Said, resource: TextResourceContents, folder: Path) -> None:
    mention = mention_of(resource.uri, folder)
    if mention is None:
        name = without_marks(one_line(resource.uri, _LONGEST_NAME)) or "text"
        mention, what = Mention(name), "text"
    elif mention.first:
        what = f"lines {mention.first}-{mention.last} of a file"
    else:
        what = "file, as the editor has it"
    given = GivenText(mention, mention.path, what, resource.text)
    said.given.append(given)
    said.add_word(given.name)


async def _kept(data: str, name: str, keep_picture: KeepPicture) -> str:
    """Keep a picture, and return the mention of it. Raises ChatError."""
    shown = one_line(name, 80)
    try:
        decoded = base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error):
        raise ChatError(f"Not sent: {shown} is damaged.") from None
    if read_header(decoded) is None:
        raise ChatError(f"Not sent: {shown} is neither text nor a PNG, JPEG, GIF or WebP picture.")
    return f"{MARK}{Mention(await keep_picture(decoded)).spelled}"
