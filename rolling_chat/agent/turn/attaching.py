"""Attach the files that a message mentions when it is sent, asking the user about some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rolling_chat.agent.attachments import break_long_lines
from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.mentioned_files import GivenText, MentionedFile, MentionedFiles, ReadFile
from rolling_chat.agent.mentioned_resources import MentionedResource, MentionedResources
from rolling_chat.events import AskAttachment, Attach, AttachmentQuestion
from rolling_chat.mentions import Place, find, plain
from rolling_chat.messages import Attachment, FileTouch
from rolling_chat.providers.background_thread import in_background
from rolling_chat.tools import ToolError

MAX_ATTACHED = 50
MAX_PICTURE_CHARACTERS = 20_000_000  # in base64; providers refuse requests of some 32 MB
_SHARE_OF_PIECE = 0.8  # share of a result's limit to fill, because lines differ in length


class AttachmentRefusedError(ChatError):
    """A message that is not sent because of a file that it mentions."""


@dataclass(slots=True)
class Outgoing:
    """A user's message as it is sent: its text, its attachments, and notices about what is not attached."""

    text: str
    attachments: list[Attachment] = field(default_factory=list)
    files: list[FileTouch] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Insertion:
    """The text that a command or a skill called by the user adds below a message.

    `mention` names it, and `note` says what it is. Mentions of files in `text` are marked.
    """

    mention: str
    note: str
    text: str


@dataclass(frozen=True, slots=True)
class Attaching:
    """Reads the files that a message mentions.

    A file of more than `piece` tokens is large. `can_read`: the model has the tool that reads files in
    pieces; `keep` saves the text of a file outside the folder as a private file that it may read. Without
    `ask`, files outside the folder are refused. `blind` is the model's name if it is sent no pictures, or
    empty.
    """

    files: MentionedFiles
    resources: MentionedResources
    ask: AskAttachment | None
    piece: int
    can_read: bool
    blind: str
    keep: Callable[[str], Path]

    async def outgoing(self, typed: str, given: Sequence[GivenText] = ()) -> Outgoing:
        """Return the message to send for `typed` text with marked mentions, and the texts `given` with it.

        Raises ChatError if the message must not be sent.
        """
        outgoing = Outgoing("")
        if len(given) > MAX_ATTACHED:
            raise AttachmentRefusedError(f"Not sent: more than {MAX_ATTACHED} files came with it.")
        for text in given:
            await self._attach_given(text, outgoing)
        words, at, seen = list[str](), 0, set[str]()
        for place in find(typed):
            file = await self._find(place)
            if file is None:
                if place.is_path:
                    outgoing.notices.append(f"There is no {place.shown}: it is sent as text.")
                continue
            # mentions are found again by their spelling when the message is edited
            words += [typed[at : place.start], file.name]
            at = file.end
            if file.name in seen:
                continue
            seen.add(file.name)
            if len(seen) + len(given) > MAX_ATTACHED:
                raise AttachmentRefusedError(f"Not sent: it mentions more than {MAX_ATTACHED} files.")
            if isinstance(file, MentionedResource):
                await self._attach_resource(file, outgoing)
            else:
                await self._attach(file, outgoing)
            if sum(len(one.picture) for one in outgoing.attachments) > MAX_PICTURE_CHARACTERS:
                raise AttachmentRefusedError("Not sent: its pictures have more than 15 MB together.")
        outgoing.text = plain("".join([*words, typed[at:]]))
        return outgoing

    async def _attach_given(self, given: GivenText, outgoing: Outgoing) -> None:
        """Attach a text as given, without reading its file."""
        if refusal := await in_background(partial(self.files.refusal_of, given)):
            raise AttachmentRefusedError(f"Not sent: {refusal}")
        attachment = await in_background(partial(self.files.of_given, given))
        if attachment.tokens > self.piece and self.ask is not None:
            question = AttachmentQuestion(given.name, given.path, attachment.tokens, has_pieces=self.can_read)
            match _require_sent(await self.ask(question)):
                case Attach.NAME_ONLY:
                    return
                case Attach.IN_PIECES:
                    attachment = self._kept_in_pieces(given.name, attachment, given.text)
        outgoing.attachments.append(attachment)

    async def _find(self, place: Place) -> MentionedFile | MentionedResource | None:
        resource = self.resources.find(place)
        return resource if resource is not None else await in_background(partial(self.files.find, place))

    async def _attach_resource(self, resource: MentionedResource, outgoing: Outgoing) -> None:
        try:
            first, *pictures = await self.resources.read(resource)
        except ChatError as error:
            outgoing.notices.append(f"Not attached: {error}")
            return
        if first.tokens > self.piece and self.ask is not None:
            question = AttachmentQuestion(resource.name, resource.uri, first.tokens, has_pieces=self.can_read)
            match _require_sent(await self.ask(question)):
                case Attach.NAME_ONLY:
                    return
                case Attach.IN_PIECES:
                    first = self._kept_in_pieces(resource.name, first, first.text)
        outgoing.attachments += [first, *pictures]

    async def _attach(self, file: MentionedFile, outgoing: Outgoing) -> None:
        if file.refusal:
            raise AttachmentRefusedError(f"Not sent: {file.refusal}")
        if not file.located.is_inside and await self._outside(file) is Attach.NAME_ONLY:
            return
        try:
            read = await in_background(partial(self.files.read, file))
        except ToolError as error:
            outgoing.notices.append(f"Not attached: {error}")
            return
        if read.attachment.tokens > self.piece and self.ask is not None:
            match await self._large(file, read.attachment):
                case Attach.NAME_ONLY:
                    return
                case Attach.IN_PIECES:
                    outgoing.attachments.append(self._in_pieces(file, read))
                    return
        if read.attachment.picture and self.blind:
            outgoing.notices.append(
                f"{file.name} is sent as a line: {self.blind} is not known to take pictures. "
                'pictures = "send" in its settings sends them.'
            )
        outgoing.attachments.append(read.attachment)
        outgoing.files.extend(read.touched)

    async def _outside(self, file: MentionedFile) -> Attach:
        path = str(file.located.path)
        if self.ask is None:
            raise AttachmentRefusedError(
                f"Not sent: {file.name} is outside the working folder; only files inside it are attached."
            )
        return _require_sent(await self.ask(AttachmentQuestion(file.name, path, is_outside=True)))

    async def _large(self, file: MentionedFile, attachment: Attachment) -> Attach:
        assert self.ask is not None
        has_pieces = self.can_read and not file.located.is_folder and not attachment.picture
        path = str(file.located.path)
        question = AttachmentQuestion(file.name, path, attachment.tokens, has_pieces=has_pieces)
        return _require_sent(await self.ask(question))

    def _in_pieces(self, file: MentionedFile, read: ReadFile) -> Attachment:
        """Return a line that names a file and says how to read it."""
        text = break_long_lines(read.attachment.text)
        # the tool reads by lines, and nothing outside of the folder
        if text is not read.attachment.text or not file.located.is_inside:
            return self._kept_in_pieces(file.name, read.attachment, text)
        path = self.files.name_of(file)
        return self._read_in_pieces(file.name, read.attachment, path, max(read.lines, 1))

    def _kept_in_pieces(self, name: str, attachment: Attachment, text: str) -> Attachment:
        """Save a text as a private file; return a line that says how to read that."""
        text = break_long_lines(text)
        with in_words():
            path = str(self.keep(text))
        return self._read_in_pieces(name, attachment, path, text.count("\n") + 1)

    def _read_in_pieces(self, name: str, attachment: Attachment, path: str, lines: int) -> Attachment:
        tokens = attachment.tokens
        at_a_time = max(1, int(_SHARE_OF_PIECE * self.piece) * lines // max(tokens, 1))
        line = (
            f"[{name} (about {round(tokens, -2):,} tokens, {lines:,} lines) is the file {path}; "
            f"read it in pieces: read_file with start and end, {at_a_time:,} lines at a time]"
        )
        return Attachment(attachment.mention, "read in pieces", line)


def _require_sent(answer: Attach) -> Attach:
    if answer is Attach.NOT_SENT:
        raise ChatError("Not sent; your message is back in the prompt box.")
    return answer
