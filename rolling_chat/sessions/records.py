"""What the store gives and takes besides messages, and how it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias, TypedDict

from rolling_chat.messages import FileTouch, Json, JsonObject, Message, Usage

Counts: TypeAlias = Mapping[str, Mapping[str, int]]
"""Token counts of messages, by the message's id and by the name of what counted."""


class StoreError(Exception):
    """An operation of the session store that failed; `str()` is the one line for the user."""


class StoreOutOfReach(StoreError):  # noqa: N818
    """A store whose connection is lost; `name` is what it is called. The next call tries it again."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} is out of reach: nothing that was stored is lost, and it is tried again; "
            "send again once the network or the server is back"
        )
        self.name = name


class StoreDamaged(StoreError):  # noqa: N818 - reads as what it is at the place that catches it
    """A damaged part of the database file; the rest may be readable."""


class SessionNotFound(StoreError):  # noqa: N818
    """A name that no session goes by; the line lists those that there are."""


class SessionAmbiguous(StoreError):  # noqa: N818
    """A name that several sessions go by; the line lists them."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One session as lists show it.

    `messages` counts the branch that ends at `head`; times are seconds since the epoch;
    `title_given` tells a title of the user's own from one made from the first message;
    `has_summary` is of the present branch, and `summary_noted` says that the user has dismissed the
    line about it; `parent` is the session this one was forked from, or empty.

    `api_base` is the address of the model's server, without credentials: empty for the provider's own,
    None for a session of a version that did not keep it. `effort` is its reasoning effort: empty for the
    model's default, None for that of the settings. `task_of` is the session whose model gave this one its
    task, empty for a session of the user's own. `short` is by what people know it: the end of its id, or the
    whole id that it had in a version whose ids were not global.
    """

    id: str
    title: str
    folder: str
    model: str
    messages: int
    has_summary: bool
    rolling: bool
    created_at: float
    updated_at: float
    head: str
    title_given: bool = False
    parent: str = ""
    summary_noted: bool = False
    api_base: str | None = ""
    effort: str | None = None
    task_of: str = ""
    short: str = ""

    @property
    def on_disk(self) -> str:
        """The name of the session's own files on this machine, which stays as it was when they were made."""
        return self.id if self.id.endswith(self.short) else self.short


@dataclass(frozen=True, slots=True)
class AskedBy:
    """The tool call that a task is for: the id of the reply, and the index of the call in it."""

    reply_id: str
    call: int


@dataclass(frozen=True, slots=True)
class SessionState:
    """The stored plan, pins and exclusions of a session; `pins` and `excluded` are message ids.

    `servers` are its MCP servers by name, and whether each is on. `notes` is what the user made of notes of
    the model, by the message's id and the note's number.
    """

    pins: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    plan: Json = None
    servers: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    notes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class LeftBranch:
    """A branch of a session that its head was moved away from; nothing of it is gone.

    `head` is its last message's id, `messages` its whole length and `own` how many of those are
    neither on the present branch nor on one listed before it; `begins` is the first thing that the
    person said in those, on one line; `written_at` is in seconds since the epoch.
    """

    head: str
    messages: int
    own: int
    written_at: float
    begins: str


class Stretch(NamedTuple):
    """A part of a branch, oldest first; `above` is the message before its first, empty at the root.

    `counts` are the token counts that were stored with the messages, by id and by name. `before` counts the
    messages of the branch that stand before its first.
    """

    messages: list[Message]
    above: str
    counts: Counts
    before: int = 0


class SessionChanges(TypedDict, total=False):
    """What `update_session` can change; `head` is a message's id, or empty for before the first.

    A title is taken for the user's own unless `title_given` says otherwise.
    """

    title: str
    title_given: bool
    model: str
    api_base: str | None
    effort: str | None
    rolling: bool
    head: str
    summary_noted: bool
    pins: Sequence[str]
    excluded: Sequence[str]
    notes: Mapping[str, str]
    plan: Json
    servers: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """A summary of a session: text that stands for every message up to `through`.

    `generation` counts from 1 in a session, and the store gives it; `made_from` is that of the
    summary which this one extends or replaces, 0 for none. An empty text takes back what was before.
    `place` counts the messages up to `through`, those in `skipped` included, for which it does not stand:
    ranges of places, each as its first and the one after its last. `digest` is of what is covered, ids and
    contents; `made_by` is a model, "extract" or "you"; the tokens are those of what went in and of the text.
    """

    text: str
    through: str
    digest: str = ""
    made_by: str = ""
    made_from: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    generation: int = 0
    place: int = 0
    created_at: float = 0.0
    skipped: tuple[tuple[int, int], ...] = ()

    @property
    def covers(self) -> int:
        """The number of messages that the summary stands for."""
        return self.place - sum(stop - start for start, stop in self.skipped)


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request to a model: its inputs, its totals and what came back.

    `id` is empty until the store gives one. `head` is the last message that went in;
    `settings_digest` is that of the basis, everything else that the prompt was made from;
    `estimated` and `bound` are the pipeline's figures in tokens, `usage` the provider's;
    `wire_hash` is of the wire form; `totals` is the prompt report without its rows; `purpose` tells a
    request that made a summary from one for an answer: its plan is None unless its question stood behind
    the chat's own prompt. `cache_miss` names why the provider's cache did not serve it, empty where it did,
    and `missed_tokens` what was read anew. `short` is by what people know it, as with a session.
    """

    id: str
    session_id: str
    head: str
    model: str
    plan: Json
    settings_digest: str
    pipeline_version: int
    wire_hash: str
    estimated: int
    bound: int
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    created_at: float = 0.0
    error: str = ""
    totals: JsonObject = field(default_factory=dict)
    purpose: Literal["answer", "summary"] = "answer"
    cache_miss: str = ""
    missed_tokens: int = 0
    short: str = ""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The usage of one day, model, folder or purpose; `unpriced` requests have no known price."""

    name: str
    requests: int
    summaries: int
    unpriced: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class MissRow:
    """How often the provider's cache was missed for one cause, and the tokens that were read anew."""

    cause: str
    requests: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Learned:
    """A model's limit in tokens, as learned from refusals at an address.

    `limit` is its window in its own tokens, 0 where nothing is known; `at` is when that was learned, in
    seconds since the epoch.
    """

    limit: int = 0
    at: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class FileUse:
    """A file that was read or written, by which message's tool, and when (seconds since the epoch)."""

    touch: FileTouch
    message_id: str
    at: float


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """What a path held: the hash of a file's bytes (of a symlink's target) and its mode.

    A mode of None is that of a new file under the user's umask.
    """

    sha256: str
    mode: int | None = None
    is_link: bool = False


@dataclass(frozen=True, slots=True)
class KeptChange:
    """A change of one file by a tool call of the reply `message_id`; None stands for no file.

    `path` is absolute; `folders` are those that were made for it, the outermost first. The store gives the
    `number`, and the number of the `first` change of the same call.
    """

    message_id: str
    path: str
    before: KeptVersion | None
    after: KeptVersion | None
    folders: tuple[str, ...] = ()
    number: int = 0
    first: int = 0


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that has a session open; `since` is in seconds since the epoch.

    A `pid` of 0 is nobody's: the session is shared for reading only, and `host` is its owner.
    """

    pid: int
    host: str
    since: float


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message found by its text; `snippet` is one line, whole words found in it in [brackets].

    `turn` counts the user's messages from 1 at the root of its branch, 0 before the first;
    `on_branch` says whether it is on the session's present branch; `created_at` is in seconds since
    the epoch, 0 where unknown.
    """

    session_id: str
    message_id: str
    snippet: str
    title: str = ""
    folder: str = ""
    role: str = ""
    turn: int = 0
    on_branch: bool = True
    created_at: float = 0.0
    session_short: str = ""


@dataclass(frozen=True, slots=True)
class PlacedMessage:
    """A message of a tree: the id of the one above it, empty at the root, and of the session it was said in.

    `counts` are its stored token counts, `files` those that the tool whose result it is read or wrote.
    """

    message: Message
    parent: str
    session: str
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    files: Sequence[FileTouch] = ()


@dataclass(frozen=True, slots=True)
class SessionCopy:
    """A session with all that belongs to it, as it goes from one store to another.

    `messages` are those of all its branches, each behind the one above it; those that the other store has may
    be left out. `bases` are what the requests were made from, by digest; `asked_by` is the call that it is a
    task of, `tasks` are its own. What files held before they were changed stays where they are.
    """

    info: SessionInfo
    state: SessionState
    messages: Sequence[PlacedMessage]
    summaries: Sequence[StoredSummary] = ()
    requests: Sequence[RequestRecord] = ()
    bases: Mapping[str, JsonObject] = field(default_factory=lambda: MappingProxyType({}))
    asked_by: AskedBy | None = None
    tasks: Sequence[SessionCopy] = ()
