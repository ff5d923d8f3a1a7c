"""What an agent turn tells whoever listens; the screen and `-p` know nothing else of it."""

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
    CUT = "cut"  # the answer reached its output limit: `Chat.carry_on` goes on
    BROKEN = "broken"  # the answer broke off and what came is kept: `Chat.carry_on` goes on
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

    `detail` is exactly what would be done (the whole command, or the diff of files with `is_diff`), `rule`
    what an answer for the session or the folder would allow, None where there is no such answer.
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
    """A file that the user mentioned and that is not attached unasked: it is outside the folder, or large.

    `path` is where it is, with all symlinks followed. `tokens` is its size where it was read, which it is not
    before one outside was approved. `has_pieces`: the model could read it in pieces.
    """

    name: str
    path: str
    tokens: int = 0
    is_outside: bool = False
    has_pieces: bool = False


AskAttachment: TypeAlias = Callable[[AttachmentQuestion], Awaitable[Attach]]


@dataclass(frozen=True, slots=True)
class SpendingQuestion:
    """A request that may cost more than the user's limit: one line about it, and the limit in US dollars."""

    line: str
    limit: float


AskSpending: TypeAlias = Callable[[SpendingQuestion], Awaitable[bool]]


ReadUnsaved: TypeAlias = Callable[[Path], Awaitable[str | None]]
"""Returns the text of a file as an editor has it with changes that are not saved; None for any other file."""


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The user's message is stored and the turn runs."""

    message: Message


@dataclass(frozen=True, slots=True)
class Steered:
    """A message that the user wrote while the turn runs is stored; the next request has it."""

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
    """A request failed temporarily and is sent again in `delay` seconds, for `left` more at most."""

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
    """The model is writing a tool call: its name, and how many characters of arguments so far."""

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
    """A running tool wrote output: its newest lines, and how many bytes it wrote so far."""

    call: ToolCall
    newest: str
    written: int


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """An event of the turn that a running `task` call has in a session of its own, named by its id."""

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

    `cache_misses` are the requests that the provider's cache did not serve: why, and the tokens read anew.
    """

    outcome: Outcome
    usage: Usage
    seconds: float
    error: str = ""
    cache_misses: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryBegan:
    """A summary of older messages is being made; nobody waits for it."""


@dataclass(frozen=True, slots=True)
class SummaryEnded:
    """No summary is being made any more; `notice` is one line for the user, mostly empty."""

    notice: str = ""


SummaryEvent: TypeAlias = SummaryBegan | SummaryEnded
"""What a session reports of its summaries, between turns and within them."""


@dataclass(slots=True)
class Listener:
    """Callbacks by which a chat asks and informs the screen outside of a turn's events.

    `ask` is asked for permission, None refuses what needs it; `ask_attachment` is asked about mentioned
    files, None refuses those outside the folder and attaches large ones; `ask_spending` is asked before a
    limit of cost is passed, None sends nothing more. `unsaved` knows the files that the user has open in an
    editor, None where there is none. `on_older` gets the messages that
    are read above the newest ones of a long session, `on_summary` learns when a summary is being made.
    `on_server` gets a line about an MCP server, empty where only the tools that it offers have changed.
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
"""Hands an event to the listener; waits while the listener is far behind."""
