"""The session store as the program knows it: what every store does, whatever keeps the sessions."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, Unpack

from rolling_chat.messages import FileTouch, Json, JsonObject, MadeBy, Message, Usage
from rolling_chat.sessions.kept_files import KeptFiles
from rolling_chat.sessions.learned import LearnedModels
from rolling_chat.sessions.records import (
    AskedBy,
    Counts,
    FileUse,
    Holder,
    LeftBranch,
    MissRow,
    RequestRecord,
    SearchHit,
    SessionChanges,
    SessionCopy,
    SessionInfo,
    SessionState,
    StoredSummary,
    Stretch,
    UsageRow,
)


class SessionStore(Protocol):
    """Sessions, their messages and their requests.

    Safe to use from several threads and several processes at once. What a method has written is committed
    when it returns: it survives the death of the process. Every method raises StoreError, and nothing
    else, where the store, its connection or an id is at fault. A store that a newer version of the program
    wrote is not opened, and nothing in it is changed.

    Ids are those of `sessions/ids.py`, the same in every store; who calls compares them, and nothing else.
    Names and texts are any `str`, lone surrogates and NULs among it; numbers that make no sense are kept as
    the nearest that do.
    """

    @property
    def models(self) -> LearnedModels:
        """What refusals and replies taught about models."""

    @property
    def kept_files(self) -> KeptFiles:
        """What files held before and after tools changed them."""

    @property
    def is_remote(self) -> bool:
        """Whether a call takes as long as a network does: frequent ones are made off the event loop."""

    @property
    def trouble(self) -> str:
        """Why the store does not answer just now, in one line; empty while it does. To ask costs nothing."""

    def hurry(self, *, for_good: bool = False) -> None:
        """Let what waits for a lost connection now give up soon: whoever asked for it was stopped.

        `for_good`: and what comes later too, as the program is being quit.
        """

    def close(self) -> None:
        """Release every session, seal the replies that were being written, and close the store."""

    # Sessions

    def create_session(
        self,
        *,
        folder: str,
        model: str,
        rolling: bool,
        title: str = "",
        parent: str = "",
        api_base: str | None = "",
        asked_by: AskedBy | None = None,
        id: str = "",
    ) -> SessionInfo:
        """Create an empty session; without a title it gets one from its first user message.

        `id` is one that it got elsewhere; StoreError if it is no id, or is that of a session here.

        `asked_by` is the call that it is a task of: its requests count for that session, too, and no list of
        sessions names it.
        """

    def task(self, asked_by: AskedBy) -> SessionInfo | None:
        """Return the session of the task that was begun for a call; None if there is none."""

    def tasks(self, session_id: str) -> list[SessionInfo]:
        """Return the sessions of the tasks that the calls of a session began, oldest first."""

    def session(self, id_start: str) -> SessionInfo:
        """Return the session that goes by a name: any unique start of its short id or of its id, or its end.

        Raises SessionNotFound or SessionAmbiguous.
        """

    def newest(self, folder: str) -> SessionInfo | None:
        """Return the session of `folder` that was written to last, or None."""

    def sessions(self, folder: str | None = None, limit: int | None = None) -> list[SessionInfo]:
        """Return the sessions that have messages, newest first; None: of every folder, without a limit."""

    def update_session(self, id: str, **changes: Unpack[SessionChanges]) -> SessionInfo:
        """Change some columns of a session. A title set here is the user's own and stays."""

    def state(self, session_id: str) -> SessionState:
        """Return the stored pins, exclusions and plan of a session."""

    def fork(self, session_id: str) -> SessionInfo:
        """Make a session with the same messages, up to the last whole one; they are shared."""

    def delete(self, session_id: str) -> None:
        """Delete a session and its tasks; forks keep what they share.

        Raises StoreError if one of them is open elsewhere.
        """

    # The tree

    def move_head(self, session_id: str, head: str, model: str) -> Json:
        """Make another message of the session's tree its newest; empty: to before the first.

        Nothing is deleted. Returns, and keeps, the plan of `model` that the nearest request at or
        above `head` was sent by, None if there is none. Raises StoreError for a message of
        another session, and if the session is open elsewhere.
        """

    def left_branches(self, session_id: str) -> list[LeftBranch]:
        """Return the branches that the head was moved away from, the one last written to first."""

    def end_of_branch(self, session_id: str, message: str) -> str:
        """Return the last message of the branch with `message` in it: the present one, else the newest.

        Raises StoreError for a message of another session.
        """

    def is_on_branch(self, message: str, head: str) -> bool:
        """Say whether `message` is `head` or one of its ancestors."""

    def is_blank(self, session_id: str) -> bool:
        """Return whether the session never had a message, on any branch."""

    # Messages

    def branch(self, session_id: str, head: str | None = None) -> list[Message]:
        """Return the messages from the first to `head`, with their ids; None: to the newest."""

    def stretch(self, session_id: str, most: int | None, head: str | None = None) -> Stretch:
        """Return the newest `most` messages (None: all), or a few more, up to `head` (None: the session's).

        It begins with no tool's result, unless the branch does.
        """

    def line(self, session_id: str, head: str) -> Sequence[int]:
        """Return a number for each message of the branch down to `head`, root first; only for `some`."""

    def some(self, numbers: Sequence[int]) -> Stretch:
        """Return the messages of some numbers of a `line`, oldest first."""

    def append(self, session_id: str, message: Message, touched: Iterable[FileTouch] = ()) -> Message:
        """Add `message` below the head and move the head; return it with its id and time.

        `touched` are the files that the tool whose result it is read or wrote.
        """

    def files(self, session_id: str) -> list[FileUse]:
        """Return the files read and written in a session and what it shares with forks, oldest first."""

    def last_known(self, path: str, head: str) -> str | None:
        """Return the hash of a file when the branch of `head` last read or wrote all of it; None for never.

        It is empty where the file was too large to be hashed.
        """

    def append_all(self, session_id: str, messages: Iterable[Message]) -> None:
        """Add `messages` one below the other, all of them or none."""

    def begin_reply(self, session_id: str, made_by: MadeBy) -> str:
        """Add an empty reply that will grow; it is the new head. Return its id."""

    def grow_reply(self, reply_id: str, text: str = "", reasoning: str = "") -> None:
        """Append streamed text to the reply stored as `id`, which is still growing."""

    def seal_reply(self, reply_id: str, message: Message) -> Message:
        """End a reply as `message`; return it as it is stored.

        Text that was written stays where `message` has none, and so does reasoning, as
        `reasoning_content` in the extras.
        """

    def drop_reply(self, reply_id: str) -> None:
        """Take back a reply that never got a byte; one that did is sealed as cancelled."""

    def save_counts(self, counts: Counts) -> None:
        """Replace the stored token counts of messages."""

    def search(
        self,
        words: str,
        session_id: str | None = None,
        *,
        limit: int = 50,
        stop: threading.Event | None = None,
    ) -> list[SearchHit]:
        """Find messages by any text, best first; None: in every session, on every branch.

        Nobody waits for it who reads or writes meanwhile. Once `stop` is set what was found is returned.
        """

    # Summaries

    def summary(self, session_id: str) -> StoredSummary | None:
        """Return the newest summary valid on the session's branch; an empty text withdraws the one before."""

    def summaries(self, session_id: str) -> list[StoredSummary]:
        """Return every summary that the session ever had, on any branch, oldest first."""

    def publish_summary(
        self, session_id: str, summary: StoredSummary, *, expected: int
    ) -> StoredSummary | None:
        """Add a summary; return it with its generation, None where the branch has moved on without it.

        `expected` is the generation that was the newest valid one when it was begun, 0 for none: if it
        no longer is, or `summary.through` is not on the branch of the head, nothing is written. Raises
        StoreError if the session is open elsewhere.
        """

    # Requests

    def log_request(
        self, record: RequestRecord, basis: JsonObject | None = None, *, keep_plan: bool = False
    ) -> str:
        """Add a request that is about to leave; return its id. `record.id` is not looked at.

        `basis` is what it was made from besides plan and messages, kept once for every digest. With
        `keep_plan` its plan becomes the session's.
        """

    def finish_request(
        self, id: str, *, usage: Usage, seconds: float, error: str = "", miss: tuple[str, int] = ("", 0)
    ) -> None:
        """Store what came back of a request: usage, duration and error.

        `miss` is why the provider's cache did not serve it, and the tokens that were read anew.
        """

    def requests(self, session_id: str) -> list[RequestRecord]:
        """Return the requests of a session, oldest first."""

    def request_sizes(self, session_id: str, most: int) -> list[int]:
        """Return the tokens of the newest answered requests, oldest first: reported, else estimated."""

    def last_answer(self, session_id: str, model: str = "") -> RequestRecord | None:
        """Return the session's newest request that `model` answered, any model if none is given."""

    def cache_misses(self, session_id: str) -> list[MissRow]:
        """Return how often a session's requests missed the provider's cache, by cause."""

    def usage(self, session_id: str) -> Usage:
        """Return the total usage of a session's requests and of those of its tasks."""

    def usage_rows(self, by: str, session_id: str = "") -> list[UsageRow]:
        """Return the usage of all requests, or of one session's and its tasks'.

        By "day", "model", "folder" or "purpose".
        """

    def cost_since(self, at: float) -> float:
        """Return what all requests since `at` (seconds since the epoch) have cost, in US dollars."""

    def request(self, id_start: str) -> RequestRecord:
        """Return the logged request whose short id begins with the given text, or whose id it is.

        Raises StoreError if there is none, or several.
        """

    def basis(self, digest: str) -> JsonObject | None:
        """Return what requests with this `settings_digest` were made from; None where it was not kept."""

    # Who may use a session

    def share(self, session_id: str, member: str, *, may_write: bool | None) -> None:
        """Let another user of the store read a session, or write to it as well; None ends that.

        Raises StoreError where there is no such user, and in a store that has only one.
        """

    def shared_with(self, session_id: str) -> Mapping[str, bool]:
        """Return the users whom a session is shared with, and whether each may write to it."""

    # Who has a session open

    def claim(self, session_id: str) -> Holder | None:
        """Claim a session for this process, so that no other one writes to it.

        None: it is ours; else who has it.

        What a dead holder left is taken over, and the reply it was writing is sealed as cancelled
        with all that was written.
        """

    def release(self, session_id: str) -> None:
        """Release a claimed session; do nothing if it is gone or not ours."""

    def has_news(self, session_id: str) -> bool:
        """Return whether another may have written to a session, or let go of it, since this was last asked.

        To ask costs nothing; a session that another has open is followed by it.
        """

    # From one store to another

    def ids_in(self, session_id: str) -> list[str]:
        """Return the ids of the messages and requests in a copy of a session, with those of its tasks."""

    def missing(self, ids: Iterable[str]) -> list[str]:
        """Return those ids of messages and of finished requests that this store does not have, in order."""

    def copy_of(self, session_id: str, without: Collection[str] = ()) -> SessionCopy:
        """Return a session with all that belongs to it, up to what is still being written.

        `without` are ids of messages and requests that are left out.
        """

    def adopt(self, copy: SessionCopy) -> SessionInfo:
        """Store what is new of another store's session, with the ids that it has there, all of it or nothing.

        To adopt the same copy again changes nothing. Head, title, model, pins and the like are those of the
        store that was written to last, and those of the copy if both were at the same time; what was said in
        the other is a branch that was left. A fork's own messages are its own, and those that it shares are
        its origin's, whichever comes first. What is new here is the user's own. Raises StoreError if the
        session is open elsewhere, if it or what its messages stand below belongs to somebody else, and if
        that is neither here nor in the copy.
        """
