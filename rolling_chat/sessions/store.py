"""The session store: everything that is kept, behind one class."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Unpack

from rolling_chat.messages import FileTouch, Json, JsonObject, MadeBy, Message, Usage
from rolling_chat.sessions import (
    ancestry,
    claims,
    directory,
    file_uses,
    kept_files,
    kept_pictures,
    requests,
    summary_rows,
    tree,
)
from rolling_chat.sessions.claims import Owner
from rolling_chat.sessions.database import Database
from rolling_chat.sessions.kept_files import KeptFiles
from rolling_chat.sessions.learned import LearnedModels
from rolling_chat.sessions.message_search import search
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
    SessionInfo,
    SessionNotFound,
    SessionState,
    StoreDamaged,
    StoredSummary,
    StoreError,
    Stretch,
    UsageRow,
)
from rolling_chat.sessions.rows import message_id, message_number
from rolling_chat.text import one_line


class SessionStore:
    """Sessions, their messages and their requests, in SQLite.

    Safe to use from several threads and several processes at once. What a method has written is
    committed when it returns: it survives the death of the process. Every method raises
    StoreError, and nothing else, where the file, the disk or an id is at fault.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._owner = Owner.new()
        self.models = LearnedModels(database, clock)
        self.kept_files = KeptFiles(database, clock)

    @classmethod
    def open(cls, path: Path | None, *, clock: Callable[[], float] = time.time) -> SessionStore:
        """Open the store at `path`, or one in memory for None.

        A missing file is made (mode 0600, its folder 0700). What is no session store, is damaged,
        or was written by a newer version is left as it is: StoreError.
        """
        return cls(Database.open(path), clock)

    def close(self) -> None:
        """Release every session, seal the replies that were being written, and close the database."""
        with contextlib.suppress(StoreError), self._database.write() as connection:
            tree.seal_owned(connection, self._owner, self._clock())
            claims.release_all(connection, self._owner)
        self._database.close()

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
    ) -> SessionInfo:
        """Create an empty session; without a title it gets one from its first user message.

        `asked_by` is the call that it is a task of: its requests count for that session, too, and no list of
        sessions names it.
        """
        with self._database.write() as connection:
            return directory.create(
                connection,
                folder=folder,
                model=model,
                rolling=rolling,
                title=title,
                parent=parent,
                api_base=api_base,
                asked_by=asked_by,
                now=self._clock(),
            )

    def task(self, asked_by: AskedBy) -> SessionInfo | None:
        """Return the session of the task that was begun for a call; None if there is none."""
        with self._database.read() as connection:
            task = directory.task_of_call(connection, asked_by)
            return None if task is None else directory.info(connection, task)

    def tasks(self, session_id: str) -> list[SessionInfo]:
        """Return the sessions of the tasks that the calls of a session began, oldest first."""
        with self._database.read() as connection:
            session = directory.exact(connection, session_id)
            return [directory.info(connection, task) for task in directory.tasks_of(connection, session)]

    def session(self, id_start: str) -> SessionInfo:
        """Return the session whose id begins with the given text.

        Raises SessionNotFound or SessionAmbiguous.
        """
        with _naming(id_start), self._database.read() as connection:
            return directory.info(connection, directory.find(connection, id_start))

    def newest(self, folder: str) -> SessionInfo | None:
        """Return the session of `folder` that was written to last, or None."""
        return next(iter(self.sessions(folder, limit=1)), None)

    def sessions(self, folder: str | None = None, limit: int | None = None) -> list[SessionInfo]:
        """Return the sessions that have messages, newest first; None: of every folder, without a limit."""
        with self._database.read() as connection:
            return directory.listed(connection, folder, limit)

    def update_session(self, id: str, **changes: Unpack[SessionChanges]) -> SessionInfo:
        """Change some columns of a session. A title set here is the user's own and stays."""
        with self._database.write() as connection:
            session = directory.exact(connection, id)
            directory.change(connection, session, changes)
            return directory.info(connection, session)

    def state(self, session_id: str) -> SessionState:
        """Return the stored pins, exclusions and plan of a session."""
        with self._database.read() as connection:
            return directory.state(connection, directory.exact(connection, session_id))

    def fork(self, session_id: str) -> SessionInfo:
        """Make a session with the same messages, up to the last whole one; they are shared."""
        with self._database.write() as connection:
            return directory.fork(connection, directory.exact(connection, session_id), self._clock())

    def delete(self, session_id: str) -> None:
        """Delete a session and its tasks; forks keep what they share.

        Raises StoreError if one of them is open elsewhere.
        """
        with self._database.write() as connection:
            session = self._unheld(connection, session_id)
            for task in directory.tasks_of(connection, session):
                self._unheld(connection, directory.info(connection, task).id)
            directory.delete(connection, session)
            requests.drop_unused(connection)
            kept_files.drop_unused(connection)
            kept_pictures.drop_unused(connection)

    # The tree

    def move_head(self, session_id: str, head: str, model: str) -> Json:
        """Make another message of the session's tree its newest; empty: to before the first.

        Nothing is deleted. Returns, and keeps, the plan of `model` that the nearest request at or
        above `head` was sent by, None if there is none. Raises StoreError for a message of
        another session, and if the session is open elsewhere.
        """
        with self._database.write() as connection:
            session = self._unheld(connection, session_id)
            number = message_number(head) if head else None
            return ancestry.move(connection, session, number, model, self._clock())

    def left_branches(self, session_id: str) -> list[LeftBranch]:
        """Return the branches that the head was moved away from, the one last written to first."""
        with self._database.read() as connection:
            return ancestry.left_branches(connection, directory.exact(connection, session_id))

    def end_of_branch(self, session_id: str, message: str) -> str:
        """Return the last message of the branch with `message` in it: the present one, else the newest.

        Raises StoreError for a message of another session.
        """
        with self._database.read() as connection:
            session, number = directory.exact(connection, session_id), message_number(message)
            left = (branch.head for branch in ancestry.left_branches(connection, session))
            for end in (directory.info(connection, session).head, *left):
                if end and ancestry.is_on_branch(connection, number, message_number(end)):
                    return end
        raise StoreError(f"message {message!r} is not of this session")

    def is_on_branch(self, message: str, head: str) -> bool:
        """Say whether `message` is `head` or one of its ancestors."""
        with self._database.read() as connection:
            return bool(message and head) and ancestry.is_on_branch(
                connection, message_number(message), message_number(head)
            )

    def is_blank(self, session_id: str) -> bool:
        """Return whether the session never had a message, on any branch."""
        with self._database.read() as connection:
            return ancestry.is_blank(connection, directory.exact(connection, session_id))

    # Messages

    def branch(self, session_id: str, head: str | None = None) -> list[Message]:
        """Return the messages from the first to `head`, with their ids; None: to the newest."""
        with _naming(session_id), self._database.read() as connection:
            info = directory.info(connection, directory.exact(connection, session_id))
            tip = info.head if head is None else head
            return tree.branch(connection, tree.require_message(connection, tip) if tip else None)

    def stretch(self, session_id: str, most: int | None, head: str | None = None) -> Stretch:
        """Return the newest `most` messages (None: all), or a few more, up to `head` (None: the session's).

        It begins with no tool's result, unless the branch does.
        """
        with _naming(session_id), self._database.read() as connection:
            session = directory.exact(connection, session_id)
            tip = directory.info(connection, session).head if head is None else head
            return tree.stretch(connection, tree.require_message(connection, tip) if tip else None, most)

    def line(self, session_id: str, head: str) -> Sequence[int]:
        """Return where each message of the branch down to `head` is stored, for `some`, from the root on."""
        with _naming(session_id), self._database.read() as connection:
            return tree.numbers(connection, tree.require_message(connection, head))

    def some(self, numbers: Sequence[int]) -> Stretch:
        """Return the messages that are stored at some places of a `line`, oldest first."""
        with self._database.read() as connection:
            return tree.some(connection, numbers)

    def append(self, session_id: str, message: Message, touched: Iterable[FileTouch] = ()) -> Message:
        """Add `message` below the head and move the head; return it with its id and time.

        `touched` are the files that the tool whose result it is read or wrote.
        """
        with self._database.write() as connection:
            session = directory.exact(connection, session_id)
            stored = tree.append(connection, session, message, self._clock())
            file_uses.add(connection, message_number(stored.id), touched)
            return stored

    def files(self, session_id: str) -> list[FileUse]:
        """Return the files read and written in a session and what it shares with forks, oldest first."""
        with self._database.read() as connection:
            return file_uses.of_session(connection, directory.exact(connection, session_id))

    def last_known(self, path: str, head: str) -> str | None:
        """Return the hash of a file when the branch of `head` last read or wrote all of it; None for never.

        It is empty where the file was too large to be hashed.
        """
        with self._database.read() as connection:
            return file_uses.last_known(connection, path, message_number(head) if head else None)

    def append_all(self, session_id: str, messages: Iterable[Message]) -> None:
        """Add `messages` one below the other, all of them or none."""
        with self._database.write() as connection:
            session = directory.exact(connection, session_id)
            for message in messages:
                tree.append(connection, session, message, self._clock())

    def begin_reply(self, session_id: str, made_by: MadeBy) -> str:
        """Add an empty reply that will grow; it is the new head. Return its id."""
        with self._database.write() as connection:
            session = directory.exact(connection, session_id)
            number = tree.begin_reply(connection, session, made_by, self._owner, self._clock())
            return message_id(number)

    def grow_reply(self, reply_id: str, text: str = "", reasoning: str = "") -> None:
        """Append streamed text to the reply stored as `id`, which is still growing."""
        if not text and not reasoning:
            return
        # many times a second: these wait for the system, not for the disk
        with self._database.write(survives_power_cut=False) as connection:
            tree.grow_reply(connection, message_number(reply_id), text, reasoning)

    def seal_reply(self, reply_id: str, message: Message) -> Message:
        """End a reply as `message`; return it as it is stored.

        Text that was written stays where `message` has none, and so does reasoning, as
        `reasoning_content` in the extras.
        """
        with self._database.write() as connection:
            return tree.seal_reply(connection, message_number(reply_id), message, self._clock())

    def drop_reply(self, reply_id: str) -> None:
        """Take back a reply that never got a byte; one that did is sealed as cancelled."""
        with self._database.write() as connection:
            tree.drop_reply(connection, message_number(reply_id), self._clock())

    def save_counts(self, counts: Counts) -> None:
        """Replace the stored token counts of messages."""
        with self._database.write(survives_power_cut=False) as connection:
            tree.save_counts(connection, counts)

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
        is_stopped = stop.is_set if stop is not None else _never
        with self._database.read_aside(is_stopped) as connection:
            within = None if session_id is None else directory.exact(connection, session_id)
            try:
                return search(connection, words, within, limit, is_stopped)
            except sqlite3.OperationalError:
                if is_stopped():
                    return []
                raise

    # Summaries

    def summary(self, session_id: str) -> StoredSummary | None:
        """Return the newest summary valid on the session's branch; an empty text withdraws the one before."""
        with self._database.read() as connection:
            session = directory.exact(connection, session_id)
            return summary_rows.newest(connection, session, summary_rows.head_of(connection, session))

    def summaries(self, session_id: str) -> list[StoredSummary]:
        """Return every summary that the session ever had, on any branch, oldest first."""
        with self._database.read() as connection:
            return summary_rows.of_session(connection, directory.exact(connection, session_id))

    def publish_summary(
        self, session_id: str, summary: StoredSummary, *, expected: int
    ) -> StoredSummary | None:
        """Add a summary; return it with its generation, None where the branch has moved on without it.

        `expected` is the generation that was the newest valid one when it was begun, 0 for none: if it
        no longer is, or `summary.through` is not on the branch of the head, nothing is written. Raises
        StoreError if the session is open elsewhere.
        """
        with self._database.write() as connection:
            session = self._unheld(connection, session_id)
            return summary_rows.publish(connection, session, summary, expected, self._clock())

    # Requests

    def log_request(self, record: RequestRecord, basis: JsonObject | None = None) -> str:
        """Add a request that is about to leave; return its id. `record.id` is not looked at.

        `basis` is what it was made from besides plan and messages, kept once for every digest.
        """
        with self._database.write() as connection:
            session = directory.exact(connection, record.session_id)
            return requests.log(connection, session, record, basis, self._clock())

    def finish_request(
        self, id: str, *, usage: Usage, seconds: float, error: str = "", miss: tuple[str, int] = ("", 0)
    ) -> None:
        """Store what came back of a request: usage, duration and error.

        `miss` is why the provider's cache did not serve it, and the tokens that were read anew.
        """
        with self._database.write() as connection:
            requests.finish(connection, id, usage=usage, seconds=seconds, error=error, miss=miss)

    def requests(self, session_id: str) -> list[RequestRecord]:
        """Return the requests of a session, oldest first."""
        with self._database.read() as connection:
            return requests.of_session(connection, directory.exact(connection, session_id), session_id)

    def request_sizes(self, session_id: str, most: int) -> list[int]:
        """Return the tokens of the newest answered requests, oldest first: reported, else estimated."""
        with self._database.read() as connection:
            return requests.sizes_of(connection, directory.exact(connection, session_id), most)

    def last_answer(self, session_id: str, model: str = "") -> RequestRecord | None:
        """Return the session's newest request that `model` answered, any model if none is given."""
        with self._database.read() as connection:
            session = directory.exact(connection, session_id)
            return requests.last_answer(connection, session, session_id, model)

    def cache_misses(self, session_id: str) -> list[MissRow]:
        """Return how often a session's requests missed the provider's cache, by cause."""
        with self._database.read() as connection:
            return requests.misses_of(connection, directory.exact(connection, session_id))

    def usage(self, session_id: str) -> Usage:
        """Return the total usage of a session's requests and of those of its tasks."""
        with self._database.read() as connection:
            return requests.usage_of(connection, directory.exact(connection, session_id))

    def usage_rows(self, by: str, session_id: str = "") -> list[UsageRow]:
        """Return the usage of all requests, or of one session's and its tasks'.

        By "day", "model", "folder" or "purpose".
        """
        with self._database.read() as connection:
            session = directory.exact(connection, session_id) if session_id else None
            return requests.usage_rows(connection, by, session)

    def cost_since(self, at: float) -> float:
        """Return what all requests since `at` (seconds since the epoch) have cost, in US dollars."""
        with self._database.read() as connection:
            return requests.cost_since(connection, at)

    def request(self, id_start: str) -> RequestRecord:
        """Return the logged request whose id begins with the given text.

        Raises StoreError if there is none, or several.
        """
        with self._database.read() as connection:
            return requests.find(connection, id_start)

    def basis(self, digest: str) -> JsonObject | None:
        """Return what requests with this `settings_digest` were made from; None where it was not kept."""
        with self._database.read() as connection:
            return requests.basis(connection, digest)

    # Who has a session open

    def claim(self, session_id: str) -> Holder | None:
        """Claim a session for this process, so that no other one writes to it.

        None: it is ours; else who has it.

        What a dead holder left is taken over, and the reply it was writing is sealed as cancelled
        with all that was written.
        """
        with self._database.write() as connection:
            session, now = directory.exact(connection, session_id), self._clock()
            other = claims.holder(connection, session, self._owner, now)
            if other is None and claims.claim(connection, session, self._owner, now):
                tree.seal_abandoned(connection, session, now)
            return other

    def release(self, session_id: str) -> None:
        """Release a claimed session; do nothing if it is gone or not ours."""
        with self._database.write() as connection, contextlib.suppress(SessionNotFound):
            claims.release(connection, directory.exact(connection, session_id), self._owner)

    def _unheld(self, connection: sqlite3.Connection, session_id: str) -> int:
        """Return the row of a session that nobody else has open."""
        session = directory.exact(connection, session_id)
        other = claims.holder(connection, session, self._owner, self._clock())
        if other is not None:
            raise StoreError(
                f"session {session_id} is open in another terminal (process {other.pid}); close it first"
            )
        return session


def _never() -> bool:
    return False


@contextlib.contextmanager
def _naming(session_id: str) -> Iterator[None]:
    """Say of damage which session it was met in: others may well be whole."""
    try:
        yield
    except StoreDamaged as error:
        raise StoreDamaged(
            f"session {one_line(session_id, 40)} cannot be read: its part of {error}. "
            "Sessions on other parts of the file can still be opened"
        ) from error
