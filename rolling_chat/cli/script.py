"""`rolling-chat -p`: one question, one answer on stdout, an exit code for the script."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from rolling_chat.agent import AttachmentRefusedError, Chat, ChatError
from rolling_chat.agent.models import unknown_address_line
from rolling_chat.cli.configured import settings_of, trust_of
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.opening import open_chat
from rolling_chat.cli.options import Options
from rolling_chat.cli.pipe import read_pipe
from rolling_chat.context import PromptReport
from rolling_chat.events import (
    Event,
    Noticed,
    Outcome,
    PromptPlanned,
    ReasoningAdded,
    ReplyEnded,
    RetryWaiting,
    TextAdded,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from rolling_chat.lenient_json import read_json
from rolling_chat.mentions import marked, without_marks
from rolling_chat.messages import Ending, Json, Usage
from rolling_chat.settings.paths import Paths
from rolling_chat.text import without_controls
from rolling_chat.tools.background import BACKGROUND
from rolling_chat.tools.leftover_processes import CHILDREN, end_children

_CODES: Mapping[Outcome, Exit] = {
    Outcome.DONE: Exit.DONE,
    Outcome.CUT: Exit.DONE,
    Outcome.BROKEN: Exit.FAILED,
    Outcome.FAILED: Exit.FAILED,
    Outcome.FULL: Exit.TOO_LONG,
    Outcome.CANCELLED: Exit.INTERRUPTED,
}


@dataclass(slots=True)
class Result:
    """The result of `-p`, accumulated from the turn's events."""

    chat: Chat
    saved: bool
    reply: str = ""
    partial: str = ""
    usage: Usage = field(default_factory=Usage)
    tool_calls: list[dict[str, Json]] = field(default_factory=list)
    report: PromptReport | None = None
    outcome: Outcome = Outcome.DONE
    error: str = ""

    def fold(self, event: Event) -> None:
        """Update the result with one event of the turn."""
        match event:
            case PromptPlanned(report):
                self.report, self.partial = report, ""
            case TextAdded(text=text):
                self.partial += text
            case ReplyEnded(message=message) if not message.tool_calls:
                self.reply = message.text
            case ToolEnded(call=call, message=message):
                self.tool_calls.append(
                    {
                        "id": call.id,
                        "name": call.name,
                        "arguments": _parsed(call.arguments),
                        "ok": message.ending is Ending.COMPLETE,
                        "ending": message.ending.value,
                    }
                )
            case TurnEnded(outcome=outcome, usage=usage, error=error):
                self.outcome, self.usage, self.error = outcome, usage, error
                self.reply = self.reply or self.partial

    def as_json(self) -> dict[str, Json]:
        """Return the object that `--output-format json` prints."""
        report = self.report or self.chat.session.preview.report()
        return {
            "session_id": self.chat.session.info.id if self.saved else None,
            "reply": self.reply,
            "model": self.chat.session.model,
            "usage": {"input_tokens": self.usage.input_tokens, "output_tokens": self.usage.output_tokens},
            "tool_calls": self.tool_calls,
            "context": report.totals(),
            "error": self.error or None,
        }


def run_script(options: Options, paths: Paths) -> int:
    """Run `-p`: send one prompt and print the answer. Raises Failure for bad usage."""
    trust = trust_of(options, paths)
    settings = settings_of(options, paths, trust=trust)
    given = options.print or ""
    piped = read_pipe(wait=not given)
    # only what was typed mentions files, and never what came through the pipe
    parts = (marked(given), without_marks(piped).strip("\n"))
    text = "\n\n".join(part for part in parts if part.strip())
    if not text:
        raise Failure('-p needs a text, as in rolling-chat -p "text", or through a pipe', Exit.USAGE)
    chat = open_chat(options, settings, paths, trust, needs_model=True)
    if chat.session.address is None:
        line = unknown_address_line(chat.session.model)
        chat.close()
        raise Failure(line, Exit.USAGE)
    _say(chat.session.model_line)
    for notice in chat.session.notices:
        _say(notice)
    result = Result(chat, options.save)
    try:
        asyncio.run(_ask(chat, text, result, options.output_format))
    except AttachmentRefusedError as error:
        raise Failure(str(error), Exit.USAGE) from None
    except ChatError as error:
        result.outcome, result.error = Outcome.FAILED, str(error)
    finally:
        chat.close()
    _print_result(result, options.output_format)
    return _CODES[result.outcome]


async def _ask(chat: Chat, text: str, result: Result, output_format: str) -> None:
    loop = asyncio.get_running_loop()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        # not every platform has signal handlers on the loop; there KeyboardInterrupt does the same
        with contextlib.suppress(NotImplementedError, ValueError, AttributeError):
            loop.add_signal_handler(getattr(signal, name), chat.stop)
    chat.session.summaries.extract_only()
    try:
        async with aclosing(chat.send(text)) as events:
            async for event in events:
                result.fold(event)
                _tell(event, output_format)
        await chat.session.summaries.settled()
    finally:
        await _end_processes()
        await chat.disconnect()


async def _end_processes() -> None:
    """Nobody will end later what the commands of this run left running."""
    running = BACKGROUND.running()
    await BACKGROUND.end_all()
    left = CHILDREN.left_running()
    await end_children(left)
    if ended := [*map(str, running), *map(str, left)]:
        _say(f"ended what commands left running: {', '.join(ended)}")


def _print_result(result: Result, output_format: str) -> None:
    if result.outcome is Outcome.CUT:
        _say("the answer was cut at its output limit")
    match output_format:
        case "json":
            _print_json(result.as_json())
        case "stream-json":
            _print_json({"type": "result", **result.as_json()})
        case _:
            if result.reply:
                print(without_controls(result.reply))
            if result.error and result.error not in result.chat.session.notices:
                _say(result.error)
    sys.stdout.flush()


def _tell(event: Event, output_format: str) -> None:
    if output_format == "stream-json":
        _print_event(event)
    if isinstance(event, RetryWaiting):
        reason = event.reason.rstrip(".")
        _say(f"{reason}; trying again in {event.delay:.1f} s, for {event.left:.0f} s more at most")
    elif isinstance(event, Noticed) and output_format != "stream-json":
        _say(event.text)


def _print_event(event: Event) -> None:
    match event:
        case TextAdded(text=text):
            _print_json({"type": "text", "text": text})
        case ReasoningAdded(text=text):
            _print_json({"type": "reasoning", "text": text})
        case PromptPlanned(report):
            _print_json({"type": "prompt", "context": report.totals()})
        case ToolStarted(call):
            _print_json(
                {"type": "tool_call", "id": call.id, "name": call.name, "arguments": _parsed(call.arguments)}
            )
        case ToolEnded(call=call, message=message):
            _print_json(
                {"type": "tool_result", "id": call.id, "ending": message.ending.value, "text": message.text}
            )
        case RetryWaiting(attempt=attempt, left=left, delay=delay, reason=reason):
            _print_json(
                {
                    "type": "retry",
                    "attempt": attempt,
                    "seconds_left": round(left, 3),
                    "delay": round(delay, 3),
                    "reason": reason,
                }
            )
        case Noticed(text=text):
            _print_json({"type": "notice", "text": text})
        case _:
            return


def _print_json(value: Mapping[str, Json]) -> None:
    # ASCII escapes keep every control sequence out of stdout, and any encoding of stdout able to carry it
    print(json.dumps(value, ensure_ascii=True), flush=True)


def _parsed(arguments: str) -> Json:
    try:
        return read_json(arguments or "{}")
    except ValueError:
        return arguments


def _say(line: str) -> None:
    print(f"rolling-chat: {without_controls(line)}", file=sys.stderr)
