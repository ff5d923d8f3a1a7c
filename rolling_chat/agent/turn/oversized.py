"""Find out why a request does not fit, and replace a message that is too large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.context import CountMemo, PromptReport
from rolling_chat.context.tool_results import truncate_text

_MIN_ROOM = 200  # tokens; with less room for a message, something else is too large
_SHARE_OF_ROOM = 0.5  # for head and tail; the answer's calls and results need the rest
_SHARE_OF_REFUSED = 0.75  # of the size of a request that the model refused without naming a limit
_OPENING = 300  # characters
_SHARE_OF_PIECE = 0.8  # share of a result's limit to fill, because lines differ in length


@dataclass(frozen=True, slots=True)
class LargeMessage:
    """The user's newest message, which is too large by itself.

    It has `tokens`, and `room` tokens are free for it when all history is omitted. `can_read`: the model is
    offered the tool that reads files.
    """

    id: str
    tokens: int
    room: int
    can_read: bool


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a request does not fit.

    It is a `message` that is too large by itself, or history that rolling context would omit
    (`rolling_helps`). Otherwise `line` gives the reason, unless the refusal has already given it.
    """

    message: LargeMessage | None = None
    rolling_helps: bool = False
    line: str = ""


def find_obstacle(report: PromptReport, rolled: PromptReport, *, can_read: bool) -> Obstacle:
    """Return why the request of `report` does not fit; `rolled` is its report with rolling context on.

    If the report says that the request fits, the model refused it nevertheless.
    """
    last = next(reversed(report.rows), None)
    has_history = report.history > 0 or last is None or last.role != "user"
    if rolled.within_budget and has_history:
        return Obstacle(rolling_helps=not report.rolling)
    if last is None or last.role != "user":
        return Obstacle()
    room = rolled.room
    if rolled.within_budget:
        room = int(_SHARE_OF_REFUSED * rolled.bound)
    tokens = last.tokens_before
    free = room * rolled.token_count // max(1, rolled.bound) - (rolled.token_count - tokens)
    if free >= _MIN_ROOM and tokens > free:
        return Obstacle(LargeMessage(last.id, tokens, free, can_read))
    if rolled.within_budget:
        return Obstacle(
            line=f"Nothing can be omitted to make room: system prompt {rolled.system:,} tokens, "
            f"tools {rolled.tools:,}, your message {tokens:,}."
        )
    return Obstacle()


def as_head_and_tail(text: str, note: str, large: LargeMessage, count: Callable[[str], int]) -> str:
    """Return the head and tail of `text` that fit in half the room, followed by `note`."""
    cap = int(large.room * _SHARE_OF_ROOM) - count(note)
    return f"{truncate_text(text, max(cap, 0), 'both', count, CountMemo())}\n\n{note}"


def as_opening(text: str, note: str) -> str:
    """Return the first line of `text`, followed by `note`."""
    first = next(filter(None, map(str.strip, text.splitlines())), "")
    opening = first if len(first) <= _OPENING else f"{first[:_OPENING]}…"
    return f"{opening}\n\n{note}"


def note_on_file(path: Path, text: str, large: LargeMessage, piece: int) -> str:
    """Return a line that names the file with the whole message and says how to read it.

    `piece` is the limit on one result, in tokens.
    """
    lines = text.count("\n") + 1
    size = f"about {round(large.tokens, -2):,} tokens, {len(text.encode()):,} bytes, {lines:,} lines"
    how = ""
    if large.can_read:
        at_a_time = min(max(1, int(_SHARE_OF_PIECE * piece) * lines // max(large.tokens, 1)), lines)
        how = f"; read it in pieces: read_file with start and end, {at_a_time:,} lines at a time"
    return f"[my whole message ({size}) is in the file {path}{how}]"
