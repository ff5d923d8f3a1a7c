"""What an agent turn tells whoever listens; the screen and `-p` know nothing else of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
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
    """What the user says to a call that needs permission."""

    ONCE = "once"
    SESSION = "session"  # the rule of the request, until the session is closed
    NO = "no"


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """The user's answer; `words` go to the model with a refusal."""

    permission: Permission
    words: str = ""


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """A call that needs permission.

    `detail` is exactly what would be done (the whole command), `rule` what an answer for the session
    would allow.
    """

    call: ToolCall
    title: str
    detail: str
    rule: PermissionRule


AskPermission: TypeAlias = Callable[[PermissionRequest], Awaitable[PermissionAnswer]]


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The user's message is stored and the turn runs."""

    message: Message


@dataclass(frozen=True, slots=True)
class PromptPlanned:
    """A request is about to leave; this is its report."""

    report: PromptReport


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """Waiting for the model. `iteration` counts from 1 within the turn."""

    model: str
    iteration: int
    reply_id: str


@dataclass(frozen=True, slots=True)
class RetryWaiting:
    """A request failed in a way that passes and is sent again in `delay` seconds, for `left` more at most."""

    attempt: int
    left: float
    delay: float
    reason: str


@dataclass(frozen=True, slots=True)
class ReasoningAdded:
    """More of the model's thinking, already stored."""

    reply_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TextAdded:
    """More of the answer, already stored."""

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
class ToolStarted:
    """A tool runs."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A tool's result is stored; `message.ending` tells failed, refused and cancelled apart."""

    call: ToolCall
    message: Message
    seconds: float


@dataclass(frozen=True, slots=True)
class Noticed:
    """One line for the user: a repeated call, the iteration limit, a title given."""

    text: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn is over and the conversation well-formed; `error` is one line for the user."""

    outcome: Outcome
    usage: Usage
    seconds: float
    error: str = ""


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
    """Whom a chat asks and informs outside of a turn's events; one for all sessions that it opens.

    `ask` is asked for permission, None refuses what needs it. `on_older` gets the messages that are read
    above the newest ones of a long session, `on_summary` learns when a summary is being made.
    """

    ask: AskPermission | None = None
    on_older: Callable[[Sequence[Message]], None] | None = None
    on_summary: Callable[[SummaryEvent], None] | None = None


Event: TypeAlias = (
    TurnStarted
    | PromptPlanned
    | RequestStarted
    | RetryWaiting
    | ReasoningAdded
    | TextAdded
    | CallForming
    | ReplyEnded
    | PermissionAsked
    | ToolStarted
    | ToolEnded
    | Noticed
    | TurnEnded
)

Emit: TypeAlias = Callable[[Event], Awaitable[None]]
"""Hands an event to the listener; waits while the listener is far behind."""
