"""The branch of one session, in memory and in the store."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from rolling_chat.agent.request.counting import SessionCounts
from rolling_chat.agent.store_queue import StoreQueue
from rolling_chat.agent.task_results import task_extras
from rolling_chat.context.turns import SAME_TURN, TURN
from rolling_chat.events import Listener
from rolling_chat.messages import (
    SHOWN,
    Attachment,
    Ending,
    FileTouch,
    MadeBy,
    Message,
    ToolCall,
    pack_contents,
    picture_part,
    user_message,
)
from rolling_chat.partly_read import PartlyRead
from rolling_chat.providers.background_thread import in_background
from rolling_chat.sessions.records import AskedBy, StoreError, Stretch
from rolling_chat.sessions.store import SessionStore
from rolling_chat.snapshots import Snapshot
from rolling_chat.task_record import TASK
from rolling_chat.text import normalize_text

log = logging.getLogger("rolling_chat.agent.conversation")

_FIRST = 300  # messages read on opening; more than any screen shows
_PLAIN = 2_000  # newest messages whose texts are not compressed, as most prompts consist of them
_MAX_PACKED = 1_000  # messages compressed per turn; more than a turn has
_SLICE = 250  # messages read at a time afterwards, which takes a few milliseconds
_SOON = 2_000  # messages read without being requested, in a tenth of a second
_AROUND = 16  # messages read before and after a missing one; usually a whole turn
_MAX_SHOWN = 100_000  # characters that the screen shows instead of a result
_LONG_REPLY = 300_000  # characters; storing and indexing them takes some 5 ms


class Conversation:
    """The messages of the current branch, root first; each change is stored before it is visible.

    The newest messages are read on opening, the rest when requested or by `read_rest`; the listener gets
    older messages as they are read. Their stored token counts are loaded into `counts`.

    At most one reply is open (being streamed) at a time, and calls of the last reply may have no result.
    `settle_reply` and `answer_open_calls` close both, so that the conversation can always be sent again.

    Writes go through the `queue`, which may make them in a thread: `queue.run(partial(add_user, …))`.
    """

    def __init__(
        self, store: SessionStore, session_id: str, listener: Listener, counts: SessionCounts
    ) -> None:
        self.store = store
        self.queue = StoreQueue(store)
        self.session_id = session_id
        self.version = 0  # grows with every change
        self._listener = listener
        self._counts = counts
        self._found: dict[int, Message] = {}  # single messages read from the missing part, by index
        self._line: Sequence[int] = ()  # the store's numbers of the missing messages
        # only appended to, because snapshots share it
        self._messages, self._above, stored, self._unread = store.stretch(session_id, _FIRST)
        counts.load(self._messages, stored)
        self._open: _OpenReply | None = None
        self._reading = asyncio.Lock()
        self._reads_all = False

    @property
    def messages(self) -> Sequence[Message]:
        """All messages of the branch, root first, without an open reply; missing ones are read now.

        Raises StoreError.
        """
        while self._above:
            self._put_before(self._read_up_from(self._above), self._above)
        return self._messages

    @property
    def recent(self) -> Sequence[Message]:
        """The newest messages of the branch, as far as they were read; empty only if the branch is."""
        return self._messages

    @property
    def first_index(self) -> int:
        """The index of the first of `recent` in the branch, from 1."""
        return self._unread + 1

    @property
    def end_index(self) -> int:
        """The index after the last message of the branch, from 1."""
        return self.first_index + len(self._messages)

    @property
    def branch(self) -> Sequence[Message]:
        """An unchanging copy of the branch; access to messages that were not read raises NotReadError."""
        newest = Snapshot(self._messages)
        return PartlyRead(self._unread, dict(self._found), newest) if self._above else newest

    @property
    def is_long(self) -> bool:
        """Whether so many messages are missing that they are read only when requested."""
        return self._unread > _SOON

    async def read_missing(self, index: int) -> None:
        """Read the missing messages around an index, off the event loop. Raises StoreError."""
        async with self._reading:
            if self._unread - index > _SLICE:
                await in_background(partial(self._read_around, index))
            elif above := self._above:
                self._put_before(await in_background(partial(self._read_up_from, above)), above)

    async def read_up(self) -> None:
        """Read the next older messages. Raises StoreError."""
        await self.read_missing(self._unread - 1)

    def _read_around(self, index: int) -> None:
        above, unread = self._above, self._unread
        if len(self._line) != unread:
            self._line = self.store.line(self.session_id, above)
        first = max(0, index - _AROUND)
        found = self.store.some(self._line[first : min(unread, index + _AROUND)])
        if self._above == above:
            self._counts.load(found.messages, found.counts)
            self._found.update(enumerate(found.messages, first))

    @property
    def is_whole(self) -> bool:
        """Whether all of the branch has been read."""
        return not self._above

    @property
    def is_being_read(self) -> bool:
        """Whether `read_rest` is reading the missing part of the branch."""
        return self._reads_all and not self.is_whole

    async def read_rest(self) -> None:
        """Read the rest of the branch, newest first, off the event loop. Raises StoreError."""
        async with self._reading:
            self._reads_all = True
            try:
                while above := self._above:
                    older = await in_background(partial(self._read_up_from, above))
                    self._put_before(older, above)
                    if len(self._messages) > _PLAIN:  # compress each slice before reading many more
                        await in_background(partial(pack_contents, older.messages))
            finally:
                self._reads_all = False

    def is_said(self, words: str) -> bool:
        """Return whether a message of the user contains `words`; the prompt of a task is the model's.

        Missing messages are read slice by slice and not kept; call it from a thread. Raises StoreError.
        """
        above, messages = self._above, Snapshot(self._messages)
        part: Iterable[Message] = reversed(messages)
        while not any(_is_users(message) and words in message.text for message in part):
            if not above:
                return False
            older = self._read_up_from(above)
            part, above = older.messages, older.above
        return True

    async def pack_old(self) -> None:
        """Compress older messages in memory, off the event loop."""
        # in whole slices: compressing only the two messages of a turn together would save little
        end = (len(self._messages) - _PLAIN) // _SLICE * _SLICE
        if end > 0:
            await in_background(partial(pack_contents, self._messages[max(0, end - _MAX_PACKED) : end]))

    def _read_up_from(self, message_id: str) -> Stretch:
        return self.store.stretch(self.session_id, _SLICE, message_id)

    def _put_before(self, older: Stretch, above: str) -> None:
        """Insert older messages, unless the conversation has moved to another branch meanwhile."""
        if self._above != above:
            return
        self._messages = [*older.messages, *self._messages]
        self._set_above(older.above, older.before)
        self._counts.load(older.messages, older.counts)
        if self._listener.on_older is not None:
            self._listener.on_older(older.messages)

    def close(self) -> None:
        """Stop informing the listener, because another session is shown."""
        self._listener = Listener()

    def reload(self) -> bool:
        """Read the newest messages of the branch again; return whether they had changed."""
        fresh, above, stored, before = self.store.stretch(self.session_id, _FIRST)
        # the messages before a given one never change, so those that were read are kept
        at = _index_of(fresh[0].id, self._messages) if fresh else 0
        if at is None:
            self._messages, self._found, self._line = fresh, {}, ()
            self._set_above(above, before)
        elif fresh == self._messages[at:]:
            return False
        else:
            self._messages = [*self._messages[:at], *fresh]
            if not at:
                self._set_above(above, before)
        self._counts.load(fresh, stored)
        self.version += 1
        return True

    def move_to(self, head: str) -> None:
        """Go to another message of the session's tree, after the store has moved there."""
        ids = [message.id for message in self._messages]
        if not head or head in ids:
            self._messages = self._messages[: ids.index(head) + 1 if head else 0]
            if not head:
                self._set_above("", 0)
            self.version += 1
        else:
            self.reload()

    def _set_above(self, above: str, unread: int) -> None:
        """Set what is missing above the messages read, and discard found messages of another branch."""
        self._found = {index: one for index, one in self._found.items() if index < unread} if above else {}
        self._above, self._unread, self._line = above, unread, self._line[:unread]

    def save_counts(self) -> None:
        """Store the token counts made since the last time, so that no later process repeats them."""
        unsaved = self._counts.take_unsaved(self._messages)
        counts = list(unsaved.items())
        try:
            for at in range(
                0, len(counts), _SLICE
            ):  # in parts, so that other processes can write between them
                self.store.save_counts(dict(counts[at : at + _SLICE]))
        except StoreError:
            self._counts.put_back()
            raise

    def add_user(
        self,
        text: str,
        note: str = "",
        attachments: Sequence[Attachment] = (),
        files: Sequence[FileTouch] = (),
        *,
        in_turn: bool = False,
        is_task: bool = False,
    ) -> Message:
        """Append a user message with its attachments and the files read for them.

        The model is sent `note` after its text. `in_turn`: it was written while a turn runs, and belongs to
        that turn. `is_task`: a model wrote it, for the agent that does the task.
        """
        message = user_message(text, attachments, note)
        if in_turn:
            message = replace(message, extras={**(message.extras or {}), TURN: SAME_TURN})
        if is_task:
            message = replace(message, extras={**(message.extras or {}), TASK: True})
        return self._append(message, files)

    def add_result(
        self,
        call: ToolCall,
        text: str,
        ending: Ending,
        files: Sequence[FileTouch] = (),
        *,
        shown: str = "",
        pictures: Sequence[str] = (),
    ) -> Message:
        """Append the result of `call`, with the files that the call used.

        `shown` is what the screen shows instead of the text; `pictures` are data addresses. An empty result
        gets a placeholder, because several providers refuse empty content.
        """
        sent = normalize_text(text) or "[no output]"
        content = ({"type": "text", "text": sent}, *map(picture_part, pictures)) if pictures else sent
        if len(shown) > _MAX_SHOWN:
            shown = f"{shown[:_MAX_SHOWN]}\n… and more, which /diff shows"
        extras = {SHOWN: normalize_text(shown)} if shown else {}
        if call.name == TASK:
            extras |= task_extras(self.store, self._asked_by(), sent, ending)
        message = Message(
            "tool", content, tool_call_id=call.id, name=call.name or None, extras=extras or None,
            ending=ending,
        )  # fmt: skip
        return self._append(message, files)

    def begin_reply(self, made_by: MadeBy) -> str:
        """Open a reply to be streamed; return its id."""
        reply_id = self.store.begin_reply(self.session_id, made_by)
        self._open = _OpenReply(reply_id, made_by)
        return reply_id

    async def grow_reply(self, text: str = "", reasoning: str = "") -> None:
        """Append to the open reply; the text is committed when this returns.

        Text that arrives while a remote store is busy is joined and stored with the next call.
        """
        reply = self._opened()
        await self.queue.run(partial(self.store.grow_reply, reply.id, text, reasoning))
        reply.text += text
        reply.reasoning += reasoning

    async def finish_reply(self, message: Message) -> Message:
        """Seal the open reply with the provider's final message."""
        reply = self._opened()
        is_long = len(reply.text) + len(reply.reasoning) >= _LONG_REPLY
        return await self.queue.run(partial(self._seal, reply, message), is_long=is_long)

    @property
    def reply_id(self) -> str:
        """The id of the newest reply, whose calls are being answered; empty if there is none."""
        replies = (message.id for message in reversed(self._messages) if message.role == "assistant")
        return next(replies, "")

    def _asked_by(self) -> AskedBy:
        """Return the first call of the last reply that has no result yet."""
        answered = itertools.takewhile(lambda one: one.role == "tool", reversed(self._messages))
        return AskedBy(self.reply_id, len(list(answered)))

    def open_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of the last reply that have no result yet, in order."""
        for answered, message in enumerate(reversed(self._messages)):
            if message.role != "tool":
                return message.tool_calls[answered:]
        return ()

    def answer_open_calls(self, text: str, ending: Ending) -> list[Message]:
        """Answer every open call with `text`, so that the conversation can be sent again."""
        return [self.add_result(call, text, ending) for call in self.open_calls()]

    def settle_reply(self, ending: Ending) -> Message | None:
        """Seal an interrupted reply with what was received, or drop it if nothing was."""
        reply = self._open
        if reply is None:
            return None
        if not reply.text and not reply.reasoning:
            self._open = None
            self.store.drop_reply(reply.id)
            return None
        extras = {"reasoning_content": reply.reasoning} if reply.reasoning else None
        return self._seal(reply, Message("assistant", reply.text, extras=extras, ending=ending))

    def _seal(self, reply: _OpenReply, message: Message) -> Message:
        made_by = message.made_by or reply.made_by
        sealed = self.store.seal_reply(reply.id, replace(message, made_by=made_by))
        self._open = None
        self._add(sealed)
        return sealed

    def _opened(self) -> _OpenReply:
        if self._open is None:
            raise RuntimeError("no reply is open")
        return self._open

    def _append(self, message: Message, files: Sequence[FileTouch] = ()) -> Message:
        stored = self.store.append(self.session_id, message, files)
        self._add(stored)
        return stored

    def _add(self, message: Message) -> None:
        self._messages.append(message)
        self.version += 1


def _index_of(id: str, messages: Sequence[Message]) -> int | None:
    return next((at for at in range(len(messages) - 1, -1, -1) if messages[at].id == id), None)


def _is_users(message: Message) -> bool:
    return message.role == "user" and TASK not in (message.extras or {})


class _OpenReply:
    """A reply that is being streamed, with its stored text."""

    __slots__ = ("id", "made_by", "reasoning", "text")

    def __init__(self, id: str, made_by: MadeBy) -> None:
        self.id = id
        self.made_by = made_by
        self.text = ""
        self.reasoning = ""
