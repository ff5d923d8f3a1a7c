"""The questions that a turn may ask: leave for a tool, and room for the conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rolling_chat.events import Permission
from rolling_chat.text import one_line
from rolling_chat.tui.widgets.question import Answer, Question

if TYPE_CHECKING:
    from rolling_chat.events import PermissionRequest

ROLL = "roll"

_ANSWERS = (
    Answer("y", "once", Permission.ONCE),
    Answer("n", "no", Permission.NO, escape=True),
    Answer("a", "always in this session", Permission.SESSION),  # last: a narrow frame cuts it off
)


def approval(request: PermissionRequest, clock: Callable[[], float]) -> Question:
    """The question for a request: the whole of what would be done, and y, n or esc, a."""
    return Question(one_line(request.title or request.call.name), request.detail, _ANSWERS, clock)


def address_question(model: str, addresses: Mapping[str, str], clock: Callable[[], float]) -> Question:
    """The question where a session goes that does not know it; the answer is an address, "" for none."""
    answers = [
        Answer(str(number), place, address) for number, (address, place) in enumerate(addresses.items(), 1)
    ]
    text = f"This session is from an older version. For another address: /model {model} ADDRESS."
    return Question(
        f"Where is {one_line(model)}?", text, (*answers, Answer("", "do not send", "", escape=True)), clock
    )


def full_question(clock: Callable[[], float]) -> Question:
    """The question when the prompt does not fit and rolling context is off."""
    answers = (
        Answer("enter", "turn rolling context on and go on", ROLL),
        Answer("", "leave it", "leave", escape=True),
    )
    text = "Rolling context would let old messages leave the prompt; all of them stay on disk."
    return Question("The conversation no longer fits", text, answers, clock)
