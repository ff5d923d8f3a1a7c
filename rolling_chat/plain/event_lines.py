"""Format the events of an agent turn as lines that can be read aloud."""

from __future__ import annotations

from collections.abc import Iterator

from rolling_chat import figures
from rolling_chat.call_lines import describe_call
from rolling_chat.commands.context import sign_of
from rolling_chat.context.report import PromptReport
from rolling_chat.events import (
    Event,
    Noticed,
    Outcome,
    ReasoningAdded,
    ReplyEnded,
    RequestStarted,
    RetryWaiting,
    Steered,
    TextAdded,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from rolling_chat.messages import Ending
from rolling_chat.text import one_line

_MAX_CALL = 300  # characters
_ENDINGS = {Ending.COMPLETE: "Result", Ending.REFUSED: "Refused", Ending.CANCELLED: "Stopped"}
_LONG = 240  # characters; of a longer paragraph, whole sentences are written early


class EventLines:
    """Converts the events of turns to lines; answers are written by lines, long paragraphs by sentences."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._text = ""
        self._is_thinking = self._is_speaking = False

    def lines(self, event: Event) -> Iterator[str]:
        """Yield the lines for one event, in order."""
        match event:
            case RequestStarted(model=model):
                self._model, self._is_thinking, self._is_speaking = model, False, False
            case ReasoningAdded() if not self._is_thinking:
                self._is_thinking = True
                yield "Thinking."
            case TextAdded(text=text):
                yield from self._speak(text)
            case ReplyEnded():
                yield from self._rest()
            case ToolStarted(call=call):
                yield f"Tool: {one_line(describe_call(call), _MAX_CALL)}"
            case ToolEnded(call=call, message=message, seconds=seconds):
                size = figures.plural(len(message.text.splitlines()), "line")
                ending = _ENDINGS.get(message.ending, "Failed")
                yield f"{ending}: {call.name}, {size}, {seconds:.1f} seconds. /recall {message.id} reads it."
            case RetryWaiting(delay=delay, reason=reason):
                yield f"{reason.rstrip('.')}. Trying again in {delay:.0f} seconds."
            case Noticed(text=text, warning=warning):
                yield f"Warning: {text}" if warning else text
            case Steered(message=message):
                yield f"Sent with the next request: {one_line(message.text, 80)}"
            case TurnEnded():
                yield from self._rest()
                yield from _end(event)

    def _speak(self, text: str) -> Iterator[str]:
        if not self._is_speaking:
            self._is_speaking = True
            yield f"{self._model.rpartition('/')[2]} says:"
        self._text += text
        *whole, self._text = self._text.split("\n")
        yield from whole
        if len(self._text) > _LONG:
            end = max(self._text.rfind(mark) for mark in (". ", "! ", "? ", "。"))
            if end > 0:
                sentence, self._text = self._text[: end + 1], self._text[end + 1 :].lstrip()
                yield sentence

    def _rest(self) -> Iterator[str]:
        if self._text:
            yield self._text
        self._text = ""


def context_line(report: PromptReport, cost: float | None) -> str:
    """Return the figures of the gauge in words."""
    about = "about " if sign_of(report) else ""
    window = f" of {report.window:,}" if report.window else ""
    line = f"Context: {about}{report.used:,}{window} tokens, {figures.percent(report.percent)}."
    line += f" Rolling {'on' if report.rolling else 'off'}."
    return f"{line} Cost so far {figures.cost(cost)}." if figures.cost(cost) else line


def _end(event: TurnEnded) -> Iterator[str]:
    if event.error:
        yield f"Warning: {event.error}"
    took = f"{event.seconds:.0f} seconds"
    match event.outcome:
        case Outcome.DONE:
            yield f"Done in {took}."
        case Outcome.CUT:
            yield "The answer was cut at its limit. An empty line continues it."
        case Outcome.BROKEN:
            yield "The answer broke off. An empty line continues it."
        case Outcome.CANCELLED:
            yield f"Stopped after {took}."
        case Outcome.FULL:
            yield "Nothing was sent."
        case Outcome.FAILED:
            yield f"Failed after {took}."
