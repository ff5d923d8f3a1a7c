"""The events of an agent turn; the screen and `-p` know a turn only by them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from rolling_chat.context.report import PromptReport
from rolling_chat.messages import Message, ToolCall, Usage
from rolling_chat.permissions.rules import PermissionRule


class Outcome(StrEnum):
    """How a turn ended."""

    DONE = "done"
    CUT = "cut"  # the answer reached its output limit; `Chat.carry_on` continues it
    BROKEN = "broken"  # the answer broke off and its beginning is kept; `Chat.carry_on` continues it
    CANCELLED = "cancelled"
    FAILED = "failed"
    FULL = "full"  # the prompt does not fit: nothing was sent


class Permission(StrEnum):
    """The user's answer to a permission request: once, for the session, for the folder, or no."""

    ONCE = "once"
    SESSION = "session"  # the rule of the request, until the session is closed
    FOLDER = "folder"  # the rule of the request, in this working folder from now on
    NO = "no"


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """The user's answer; `words` go to the model with a refusal."""

    permission: Permission
    words: str = ""


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """A call that needs permission.

    `detail` is the exact action (the whole command, or with `is_diff` the diff of files). `rule` is the rule
    that an answer for the session or the folder would add; None if there is no such answer.
    """

    call: ToolCall
    title: str
    detail: str
    rule: PermissionRule | None
    is_diff: bool = False


AskPermission: TypeAlias = Callable[[PermissionRequest], Awaitable[PermissionAnswer]]


class Attach(StrEnum):
    """The user's answer about a file that was mentioned with `@`."""

    WHOLE = "whole"
    IN_PIECES = "in pieces"  # the model reads it with its tool, as far as it needs
    NAME_ONLY = "name only"
    NOT_SENT = "not sent"


@dataclass(frozen=True, slots=True)
class AttachmentQuestion:
    """A mentioned file that needs the user's approval because it is outside the folder, or large.

    `path` is its resolved path. `tokens` is its size, 0 if it was not read; a file outside is read only
    after approval. `has_pieces`: the model could read it in pieces.
    """

    name: str
    path: str
    tokens: int = 0
    is_outside: bool = False
    has_pieces: bool = False


AskAttachment: TypeAlias = Callable[[AttachmentQuestion], Awaitable[Attach]]


@dataclass(frozen=True, slots=True)
class SpendingQuestion:
    """A request that may exceed the user's cost limit: one line about it, and the limit in US dollars."""

    line: str
    limit: float


AskSpending: TypeAlias = Callable[[SpendingQuestion], Awaitable[bool]]


ReadUnsaved: TypeAlias = Callable[[Path], Awaitable[str | None]]
"""Returns the text of a file that an editor has open with unsaved changes; None for any other file."""


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The user's message was stored and the turn began."""

    message: Message


@dataclass(frozen=True, slots=True)
class Steered:
    """A message that the user wrote during the turn was stored; the next request contains it."""

    message: Message


@dataclass(frozen=True, slots=True)
class PromptPlanned:
    """A request was planned and is about to be sent; `report` is its report."""

    report: PromptReport


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """A request was sent; the turn waits for the model. `iteration` counts from 1 within the turn."""

    model: str
    iteration: int
    reply_id: str


@dataclass(frozen=True, slots=True)
class RetryWaiting:
    """A request failed temporarily and is retried in `delay` seconds; retries end after `left` seconds."""

    attempt: int
    left: float
    delay: float
    reason: str


@dataclass(frozen=True, slots=True)
class ReasoningAdded:
    """More of the model's reasoning arrived, and is stored."""

    reply_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TextAdded:
    """More of the answer arrived, and is stored."""

    reply_id: str
    text: str


@dataclass(frozen=True, slots=True)
class CallForming:
    """The model is writing a tool call: its name, and the number of characters of arguments so far."""

    reply_id: str
    name: str
    characters: int


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """The reply is sealed in the store; `message.ending` says how it ended."""

    message: Message
    usage: Usage
    seconds: float


@dataclass(frozen=True, slots=True)
class PermissionAsked:
    """The turn waits for the user's permission."""

    request: PermissionRequest


@dataclass(frozen=True, slots=True)
class PermissionAnswered:
    """The question about a call was answered; the call runs next, or ends refused."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool call began to run."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A running tool wrote output: its newest lines, and the number of bytes written so far."""

    call: ToolCall
    newest: str
    written: int


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """An event from the turn of a running `task` call, which has a session of its own."""

    call: ToolCall
    session_id: str
    event: Event


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A tool's result is stored; `message.ending` tells failed, refused and cancelled apart."""

    call: ToolCall
    message: Message
    seconds: float


@dataclass(frozen=True, slots=True)
class Noticed:
    """A one-line notice for the user: a repeated call, the iteration limit, a new title."""

    text: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn is over and the conversation well-formed; `error` is one line for the user.

    `cache_misses` are the requests that missed the provider's cache: the cause, and the tokens read again.
    """

    outcome: Outcome
    usage: Usage
    seconds: float
    error: str = ""
    cache_misses: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryBegan:
    """A summary of older messages is being made in the background."""


@dataclass(frozen=True, slots=True)
class SummaryEnded:
    """The summary in the background ended; `notice` is one line for the user, usually empty."""

    notice: str = ""


SummaryEvent: TypeAlias = SummaryBegan | SummaryEnded
"""An event of a session's summaries, between turns and within them."""


@dataclass(slots=True)
class Listener:
    """Callbacks with which a chat asks and informs the screen outside of a turn's events.

    `ask` decides on permission; without it, calls that need permission are refused. `ask_attachment` decides
    on mentioned files; without it, those outside the folder are refused and large ones attached.
    `ask_spending` decides whether to exceed a cost limit; without it, nothing more is sent. `unsaved` returns
    unsaved text from the user's editor, if there is one. `on_older` gets older messages of a long session as
    they are read, `on_summary` the events of summaries, and `on_server` a line about an MCP server, empty if
    only its tools have changed.
    """

    ask: AskPermission | None = None
    ask_attachment: AskAttachment | None = None
    ask_spending: AskSpending | None = None
    unsaved: ReadUnsaved | None = None
    on_older: Callable[[Sequence[Message]], None] | None = None
    on_summary: Callable[[SummaryEvent], None] | None = None
    on_server: Callable[[str], None] | None = None


Event: TypeAlias = (
    TurnStarted
    | Steered
    | PromptPlanned
    | RequestStarted
    | RetryWaiting
    | ReasoningAdded
    | TextAdded
    | CallForming
    | ReplyEnded
    | PermissionAsked
    | PermissionAnswered
    | ToolStarted
    | ToolProgress
    | TaskEvent
    | ToolEnded
    | Noticed
    | TurnEnded
)

Emit: TypeAlias = Callable[[Event], Awaitable[None]]
"""Passes an event to the listener; waits while the listener is far behind."""
