"""The Python API: the program's agent, tools, sessions and context planning in a few lines.

    from rolling_chat import open_chat

    async with open_chat(model="openai/gpt-4.1") as chat:
        answer = await chat.ask("What does this folder do?")
        print(answer.text, answer.usage.input_tokens)

The command line opens its chats here, too. Nothing is read from the terminal or written to it, and a tool
that needs approval is refused unless a rule, `approvals` or `ask` allows it.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rolling_chat.agent import Chat, ChatError, Runtime, SessionInfo
from rolling_chat.agent.errors import in_words
from rolling_chat.agent.models import unknown_address_line
from rolling_chat.context import PromptReport
from rolling_chat.events import (
    AskPermission,
    Event,
    Outcome,
    PromptPlanned,
    ReplyEnded,
    TextAdded,
    ToolEnded,
    TurnEnded,
)
from rolling_chat.lenient_json import read_json
from rolling_chat.mentions import marked, without_marks
from rolling_chat.messages import Ending, Json, Usage
from rolling_chat.providers.addresses import PROVIDERS_OWN
from rolling_chat.providers.model_ref import ModelRef
from rolling_chat.providers.served import served_model
from rolling_chat.providers.stored_keys import StoredKeys
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.load import COMMAND_LINE, load_settings
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.store_place import store_place
from rolling_chat.settings.trust import FolderTrust
from rolling_chat.tools.background import BACKGROUND
from rolling_chat.tools.leftover_processes import CHILDREN, end_children

__all__ = ["Answer", "OpenChat", "begin_chat", "open_chat", "parsed_arguments", "saved_sessions"]


@dataclass(slots=True)
class Answer:
    """The result of a turn: the text of its last reply, its usage and tool calls, and how it ended.

    `error` is one line if it failed. `report` contains the fate of every message in the last prompt.
    """

    text: str = ""
    usage: Usage = field(default_factory=Usage)
    tool_calls: list[dict[str, Json]] = field(default_factory=list)
    report: PromptReport | None = None
    outcome: Outcome = Outcome.DONE
    error: str = ""
    _partial: str = ""

    @property
    def ok(self) -> bool:
        """Whether the model has answered, even if the answer was cut at its output limit."""
        return self.outcome in (Outcome.DONE, Outcome.CUT)

    def fold(self, event: Event) -> None:
        """Update the answer with one event of the turn."""
        match event:
            case PromptPlanned(report):
                self.report, self._partial = report, ""
            case TextAdded(text=text):
                self._partial += text
            case ReplyEnded(message=message) if not message.tool_calls:
                self.text = message.text
            case ToolEnded(call=call, message=message):
                self.tool_calls.append(
                    {
                        "id": call.id,
                        "name": call.name,
                        "arguments": parsed_arguments(call.arguments),
                        "ok": message.ending is Ending.COMPLETE,
                        "ending": message.ending.value,
                    }
                )
            case TurnEnded(outcome=outcome, usage=usage, error=error):
                self.outcome, self.usage, self.error = outcome, usage, error
                self.text = self.text or self._partial


class OpenChat:
    """An open session: ask for whole answers, or follow a turn event by event. A context manager."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat

    @property
    def session_id(self) -> str:
        """The id with which the session can be resumed, if it is saved."""
        return self.chat.session.info.id

    @property
    def model(self) -> str:
        """The model that answers."""
        return self.chat.session.model

    def report(self) -> PromptReport:
        """Return the report of the next request: its size, and the fate of every message."""
        return self.chat.session.preview.report()

    async def ask(self, text: str, *, mentions: bool = False) -> Answer:
        """Send `text`, and return the answer once the turn is over; a failed turn is an answer, too.

        With `mentions`, files that it names with `@` are attached. Raises ChatError if it cannot be sent.
        """
        answer = Answer()
        async with aclosing(self.send(text, mentions=mentions)) as events:
            async for event in events:
                answer.fold(event)
        return answer

    def send(self, text: str, *, mentions: bool = False) -> AsyncGenerator[Event]:
        """Send `text` and yield the events of the turn (`rolling_chat.events`); the last is TurnEnded.

        Raises ChatError as `ask` does. Closing the generator stops the turn.
        """
        return self.chat.send(marked(text) if mentions else without_marks(text))

    def stop(self) -> None:
        """Stop the running turn; it ends as cancelled, and the conversation stays well-formed."""
        self.chat.stop()

    async def close(self) -> list[str]:
        """Close the session and its connections; end and return processes that commands left running."""
        await self.chat.session.summaries.settled()
        running = BACKGROUND.running()
        await BACKGROUND.end_all()
        left = CHILDREN.left_running()
        await end_children(left)
        await self.chat.disconnect()
        self.chat.close()
        return [*map(str, running), *map(str, left)]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def open_chat(
    *,
    model: str = "",
    api_base: str = "",
    folder: str | Path = ".",
    resume: str | None = None,
    save: bool = True,
    settings: Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
    trust: bool = False,
    ask: AskPermission | None = None,
    environ: Mapping[str, str] | None = None,
) -> OpenChat:
    """Open a new session in `folder`, or with `resume` the one whose id begins with it.

    Settings and keys are the program's: from its `config.toml` and `environ` (default: the process's own).
    They are overridden by `settings`, with dotted keys such as "context.enabled", and by `overrides`, in the
    syntax of `-c`. The folder's own instructions and settings are read if the user trusted them, or with
    `trust`. Without `save` the session is in memory only. `ask` is called for tools that need approval.
    Raises ChatError and SettingsError, each with one line.
    """
    environ = dict(os.environ) if environ is None else environ
    paths, place = find_paths(environ), Path(folder).resolve()
    trusted = FolderTrust(place, paths, everything=trust)
    given = [f"{key}={json.dumps(value)}" for key, value in (settings or {}).items()]
    active = load_settings(paths, place, environ, [*overrides, *given], trust=trusted)
    environ, lines = StoredKeys(paths.logins_file).added_to(environ)
    with in_words():
        runtime = Runtime.create(active, paths, place, environ, trust=trusted, save=save)
        session = runtime.store.session(resume) if resume is not None else None
        chat = begin_chat(runtime, session, model=model, api_base=api_base, ask=ask, needs_model=True)
    if chat.session.address is None:
        line = unknown_address_line(chat.session.model)
        chat.close()
        raise ChatError(line)
    chat.session.notices.extend(lines)
    return OpenChat(chat)


def saved_sessions(
    folder: str | Path | None = None, *, environ: Mapping[str, str] | None = None
) -> list[SessionInfo]:
    """Return the saved sessions of a folder, or of all, newest first. Raises ChatError."""
    environ = dict(os.environ) if environ is None else environ
    paths = find_paths(environ)
    with in_words():
        settings = load_settings(paths, Path.cwd(), environ)
        store = open_store(store_place(settings, paths))
        try:
            return store.sessions(str(Path(folder).resolve()) if folder is not None else None)
        finally:
            store.close()


def begin_chat(
    runtime: Runtime,
    session: SessionInfo | None,
    *,
    model: str = "",
    api_base: str = "",
    ask: AskPermission | None = None,
    needs_model: bool = False,
) -> Chat:
    """Open `session`, or a new one, with a model and optionally the address of its server.

    With `needs_model`, a missing model is an error instead of a fallback to the demo. Raises ChatError, and
    ProviderError if the server at `api_base` does not report its model.
    """
    runtime.api_base = api_base if api_base != PROVIDERS_OWN else ""
    settings = runtime.settings
    # a switch on the command line overrides the session's own state
    given = settings.origins.get("context.enabled") == COMMAND_LINE
    return Chat.open(
        runtime,
        model=_choose_model(runtime, model, session),
        address=api_base,
        allow_fallback=not needs_model,
        session=session,
        rolling=settings.context.enabled if given else None,
        ask=ask,
    )


def parsed_arguments(arguments: str) -> Json:
    """Return the arguments of a tool call as a parsed value, or as text if they are not JSON."""
    try:
        return read_json(arguments or "{}")
    except ValueError:
        return arguments


def _choose_model(runtime: Runtime, model: str, session: SessionInfo | None) -> str:
    """Return the named model, or the one served at the given address.

    Empty: use the session's own, or the choice of settings and environment.
    """
    if not runtime.api_base:
        return model
    if model:
        # a bare name with an address of its own means an OpenAI-compatible server
        return model if "/" in model else f"openai/{model}"
    if session is not None and session.model and not ModelRef.parse(session.model).is_demo:
        return ""
    return served_model(runtime.api_base, runtime.settings.model, runtime.environ)
