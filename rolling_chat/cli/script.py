"""`rolling-chat -p`: one question, one answer on stdout, an exit code for scripts; or a stream of turns."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager

from rolling_chat.agent import AttachmentRefusedError, ChatError
from rolling_chat.agent.models import unknown_address_line
from rolling_chat.api import Answer, OpenChat
from rolling_chat.cli.configured import settings_of, trust_of
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.json_answer import JsonAnswers, read_schema
from rolling_chat.cli.opening import open_chat
from rolling_chat.cli.options import Options
from rolling_chat.cli.pipe import read_pipe
from rolling_chat.cli.script_input import InputError, messages
from rolling_chat.cli.script_output import ScriptOutput, print_json, say
from rolling_chat.events import Outcome
from rolling_chat.mentions import marked, without_marks
from rolling_chat.messages import Json
from rolling_chat.settings.paths import Paths

_CODES: Mapping[Outcome, Exit] = {
    Outcome.DONE: Exit.DONE,
    Outcome.CUT: Exit.DONE,
    Outcome.BROKEN: Exit.FAILED,
    Outcome.FAILED: Exit.FAILED,
    Outcome.FULL: Exit.TOO_LONG,
    Outcome.CANCELLED: Exit.INTERRUPTED,
}


def run_script(options: Options, paths: Paths) -> int:
    """Run `-p`: send one prompt or a stream of them, and print the answers. Raises Failure for bad usage."""
    trust = trust_of(options, paths)
    settings = settings_of(options, paths, trust=trust)
    answers = JsonAnswers(read_schema(options.json_schema)) if options.json_schema else None
    is_stream = options.input_format == "stream-json"
    text = "" if is_stream else _text_of(options)
    if is_stream and (options.print or options.output_format != "stream-json"):
        raise Failure("--input-format stream-json takes no text, and --output-format stream-json", Exit.USAGE)
    chat = open_chat(options, settings, paths, trust, needs_model=True)
    if chat.session.address is None:
        line = unknown_address_line(chat.session.model)
        chat.close()
        raise Failure(line, Exit.USAGE)
    say(chat.session.model_line)
    for notice in chat.session.notices:
        say(notice)
    chat.session.summaries.extract_only()
    chat.listener.on_server = lambda line: say(line) if line else None
    opened = OpenChat(chat)
    output = ScriptOutput(opened, options.output_format, is_saved=options.save)
    script = _Script(opened, output, answers, options.print or "")
    try:
        return asyncio.run(script.converse() if is_stream else script.answer_once(text))
    except AttachmentRefusedError as error:
        raise Failure(str(error), Exit.USAGE) from None
    finally:
        chat.close()


def _text_of(options: Options) -> str:
    given = options.print or ""
    piped = read_pipe(wait=not given)
    # only typed text mentions files, never piped text
    parts = (marked(given), without_marks(piped).strip("\n"))
    text = "\n\n".join(part for part in parts if part.strip())
    if not text:
        raise Failure('-p needs a text, as in rolling-chat -p "text", or through a pipe', Exit.USAGE)
    return text


class _Script:
    """Runs the turns of `-p`, and prints their results."""

    def __init__(
        self, opened: OpenChat, output: ScriptOutput, answers: JsonAnswers | None, typed: str = ""
    ) -> None:
        self._opened = opened
        self._output = output
        self._answers = answers
        self._typed = typed

    async def answer_once(self, text: str) -> Exit:
        """Run one turn; return the exit code."""
        async with self._open():
            return await self._answer(text)

    async def converse(self) -> Exit:
        """Run a turn for each message on stdin; return the exit code of the last that failed."""
        code = Exit.DONE
        async with self._open(), aclosing(messages(sys.stdin, self._opened.stop)) as incoming:
            async for message in incoming:
                if isinstance(message, InputError):
                    print_json({"type": "error", "error": message.line})
                    code = Exit.FAILED
                else:
                    code = await self._answer(without_marks(message), says_outcome=True) or code
        return code

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        """Let signals stop the turn, and close everything at the end."""
        loop = asyncio.get_running_loop()
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            # not every platform has signal handlers on the loop; there KeyboardInterrupt does the same
            with contextlib.suppress(NotImplementedError, ValueError, AttributeError):
                loop.add_signal_handler(getattr(signal, name), self._opened.stop)
        try:
            yield
        finally:
            if ended := await self._opened.close():
                say(f"ended processes that commands left running: {', '.join(ended)}")

    async def _answer(self, text: str, *, says_outcome: bool = False) -> Exit:
        extra: Mapping[str, Json] = {}
        try:
            if self._answers is None:
                answer = await self._turn(text)
            else:
                answer, extra = await self._answers.ask(self._turn, text)
        except AttachmentRefusedError:
            raise
        except ChatError as error:
            answer = Answer(outcome=Outcome.FAILED, error=str(error))
        # of a single turn, the exit code reports the outcome
        self._output.finish(answer, {**extra, **({"outcome": answer.outcome.value} if says_outcome else {})})
        return _CODES[answer.outcome]

    async def _turn(self, text: str) -> Answer:
        answer = Answer()
        typed, self._typed = self._typed, ""  # a second turn asks for a better answer to the first
        inserted = await self._opened.chat.session.extensions.called_by(typed)
        async with aclosing(self._opened.chat.send(text, inserted)) as events:
            async for event in events:
                answer.fold(event)
                self._output.print_event(event)
        return answer
