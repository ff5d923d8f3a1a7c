"""A provider that answers by a script, a runtime around it, and a checker of what it leaves behind."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from rolling_chat.agent import Chat, Runtime
from rolling_chat.events import Event, TurnEnded
from rolling_chat.messages import Ending, Json, Message, ToolCall, Usage
from rolling_chat.providers.protocol import (
    Delta,
    Finished,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCallDelta,
)
from rolling_chat.providers.wire import to_wire
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.catalog import ModelCatalog
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import Settings
from rolling_chat.settings.trust import FolderTrust
from tests.support.prompt_rules import broken_rules

MODEL = "openai/scripted"
FEW_TOOLS = ("read_file", "list_files", "search_files", "run_command", "recall")


@dataclass
class Gate:
    """A place in a script where the stream waits until the test lets it go on."""

    def __post_init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()


Step: TypeAlias = Delta | Gate | Exception | Callable[[], None]
Script: TypeAlias = Sequence[Step]


class ScriptedProvider:
    """A provider after the protocol: every request gets the next script, the last one forever."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.requests: list[Request] = []
        self.counted: list[Request] = []
        self.open_streams = 0

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        script = self.scripts[min(len(self.requests), len(self.scripts) - 1)]
        self.requests.append(request)
        self.open_streams += 1
        try:
            for step in script:
                await asyncio.sleep(0)
                match step:
                    case Gate():
                        step.reached.set()
                        await step.opened.wait()
                    case Exception():
                        raise step
                    case _ if callable(step):
                        step()
                    case _:
                        yield step
        finally:
            self.open_streams -= 1

    def wire_form(self, request: Request) -> Sequence[dict[str, Json]]:
        return to_wire(request, marks=False)

    async def count_tokens(self, request: Request, seconds: float) -> int:
        self.counted.append(request)
        return 0

    async def warm_up(self, model: str, api_base: str | None) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        await asyncio.sleep(0)


Opened: TypeAlias = Callable[..., tuple[Chat, Runtime, ScriptedProvider]]


def says(text: str, *, ending: Ending = Ending.COMPLETE, reasoning: str = "", tokens: int = 10) -> Script:
    """A reply in pieces of a few characters, with thoughts before it where there are any."""
    extras = {"reasoning_content": reasoning} if reasoning else None
    return [
        *(ReasoningDelta(piece) for piece in _pieces(reasoning)),
        *(TextDelta(piece) for piece in _pieces(text)),
        Finished(Message("assistant", text, extras=extras, ending=ending), Usage(tokens, len(text))),
    ]


def calls(*made: ToolCall, text: str = "", ending: Ending = Ending.COMPLETE) -> Script:
    """A reply that calls tools, the arguments in fragments."""
    fragments: list[Delta] = [TextDelta(text)] if text else []
    for index, call in enumerate(made):
        fragments.append(ToolCallDelta(index, call.id, call.name, ""))
        fragments += [ToolCallDelta(index, "", "", piece) for piece in _pieces(call.arguments)]
    message = Message("assistant", text, tool_calls=made, ending=ending)
    return [*fragments, Finished(message, Usage(10, 5))]


def call(name: str, arguments: str = "{}", id: str = "c1") -> ToolCall:
    return ToolCall(id, name, arguments)


def make_runtime(
    tmp_path: Path,
    provider: ScriptedProvider,
    *,
    settings: Settings | None = None,
    window: int = 32_000,
    database: str | Path | None = None,
) -> Runtime:
    """A runtime with a real store in `tmp_path` and an empty working folder beside it.

    A model with a small window is offered few tools, so that the conversation is what fills it.
    """
    folder = tmp_path / "work"
    folder.mkdir(exist_ok=True)
    settings = settings or Settings()
    if window < 10_000 and settings.agent.tools == "all":
        settings = replace(settings, agent=replace(settings.agent, tools=FEW_TOOLS))
    environ = {
        "ROLLING_CHAT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "HOME": str(tmp_path),
        "OPENAI_API_KEY": "sk-test-of-no-one",
    }  # fmt: skip
    paths = find_paths(environ)
    return Runtime(
        settings=replace(settings, model=MODEL),
        paths=paths,
        catalog=ModelCatalog(
            {
                MODEL: {
                    "mode": "chat",
                    "litellm_provider": "openai",
                    "max_input_tokens": window,
                    "supports_function_calling": True,
                }
            }
        ),
        store=open_store(database or paths.database),
        provider=provider,
        folder=folder,
        environ=environ,
        given_trust=FolderTrust(folder, paths, everything=True),
    )


async def collect(events: AsyncIterator[Event]) -> list[Event]:
    """All events of a turn; exactly the last one ends it."""
    seen = [event async for event in events]
    ends = [index for index, event in enumerate(seen) if isinstance(event, TurnEnded)]
    assert ends == [len(seen) - 1], seen
    return seen


def of_kind(events: Sequence[Event], kind: type) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def assert_well_formed(chat: Chat, runtime: Runtime) -> None:
    """What is stored is what is shown, nothing is open, and a provider would take it."""
    stored = runtime.store.branch(chat.session.info.id)
    assert list(chat.session.messages) == stored
    assert [message.id for message in chat.session.messages] == [message.id for message in stored]
    sent = [{**message.to_dict(), "content": message.content or "(reasoning only)"} for message in stored]
    assert broken_rules(sent) == []
    for message in stored:
        if message.role == "assistant" and not message.text and not message.tool_calls:
            assert message.extras, "a reply that never got a byte was kept"
    with closing(sqlite3.connect(runtime.paths.database)) as database:
        assert database.execute("SELECT count(*) FROM growing").fetchone() == (0,)
        assert database.execute("SELECT count(*) FROM chunk").fetchone() == (0,)


def _pieces(text: str, size: int = 4) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
