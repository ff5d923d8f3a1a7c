"""The output of `-p`: the answer as text, a JSON object, or one JSON line per event; notes on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from rolling_chat.api import Answer, OpenChat, parsed_arguments
from rolling_chat.events import (
    Event,
    Noticed,
    Outcome,
    PromptPlanned,
    ReasoningAdded,
    RetryWaiting,
    TaskEvent,
    TextAdded,
    ToolEnded,
    ToolStarted,
)
from rolling_chat.messages import Json
from rolling_chat.text import without_controls


class ScriptOutput:
    """Prints turns in the format of `--output-format`; `is_saved`: the session can be resumed by id."""

    def __init__(self, opened: OpenChat, output_format: str, *, is_saved: bool) -> None:
        self._opened = opened
        self._format = output_format
        self._is_saved = is_saved

    def print_event(self, event: Event) -> None:
        """Print an event of a turn."""
        shown = _as_object(event) if self._format == "stream-json" else None
        if shown is not None:
            print_json(shown)
        if isinstance(event, RetryWaiting):
            reason = event.reason.rstrip(".")
            say(f"{reason}; trying again in {event.delay:.1f} s, for {event.left:.0f} s more at most")
        elif isinstance(event, Noticed) and self._format != "stream-json":
            say(event.text)

    def finish(self, answer: Answer, extra: Mapping[str, Json] | None = None) -> None:
        """Print the result of a turn; `extra` are additional keys of the JSON object."""
        if answer.outcome is Outcome.CUT:
            say("the answer was cut at its output limit")
        match self._format:
            case "json":
                print_json({**self._as_json(answer), **(extra or {})})
            case "stream-json":
                print_json({"type": "result", **self._as_json(answer), **(extra or {})})
            case _:
                if answer.text:
                    print(without_controls(answer.text))
                if answer.error and answer.error not in self._opened.chat.session.notices:
                    say(answer.error)
        sys.stdout.flush()

    def _as_json(self, answer: Answer) -> dict[str, Json]:
        report = answer.report or self._opened.report()
        return {
            "session_id": self._opened.session_id if self._is_saved else None,
            "reply": answer.text,
            "model": self._opened.model,
            "usage": {"input_tokens": answer.usage.input_tokens, "output_tokens": answer.usage.output_tokens},
            "tool_calls": answer.tool_calls,
            "context": report.totals(),
            "error": answer.error or None,
        }


def _as_object(event: Event) -> dict[str, Json] | None:
    """Return an event as a printable object; None for an event that is not printed."""
    match event:
        case TextAdded(text=text):
            return {"type": "text", "text": text}
        case ReasoningAdded(text=text):
            return {"type": "reasoning", "text": text}
        case PromptPlanned(report):
            return {"type": "prompt", "context": report.totals()}
        case ToolStarted(call):
            arguments = parsed_arguments(call.arguments)
            return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments}
        case ToolEnded(call=call, message=message):
            ending = message.ending.value
            return {"type": "tool_result", "id": call.id, "ending": ending, "text": message.text}
        case RetryWaiting(attempt=attempt, left=left, delay=delay, reason=reason):
            return {
                "type": "retry",
                "attempt": attempt,
                "seconds_left": round(left, 3),
                "delay": round(delay, 3),
                "reason": reason,
            }
        case Noticed(text=text):
            return {"type": "notice", "text": text}
        case TaskEvent(call, session_id, inner):
            shown = _as_object(inner)
            return None if shown is None else {**shown, "task": call.id, "task_session": session_id}
        case _:
            return None


def print_json(value: Mapping[str, Json]) -> None:
    """Print an object on a line of its own."""
    # ASCII escapes keep control sequences out of stdout, and work with any encoding of it
    print(json.dumps(value, ensure_ascii=True), flush=True)


def say(line: str) -> None:
    """Print a note on stderr."""
    print(f"rolling-chat: {without_controls(line)}", file=sys.stderr)
