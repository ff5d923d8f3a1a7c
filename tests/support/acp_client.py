"""A client of the Agent Client Protocol: the SDK's own, over real pipes to the real program."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process
from acp.agent.connection import AgentSideConnection
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    Implementation,
    InitializeResponse,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from rolling_chat.acp.agent import ClientAgent
from rolling_chat.acp.opening import Opener
from tests.support.patience import PATIENCE_SECONDS
from tests.support.program import program_environment

Message: TypeAlias = dict[str, Any] | None
Answer = Callable[[ToolCallUpdate, list[PermissionOption]], Awaitable[RequestPermissionResponse]]


async def say_once(_call: ToolCallUpdate, options: list[PermissionOption]) -> RequestPermissionResponse:
    return chosen(next(one for one in options if one.kind == "allow_once").option_id)


def chosen(option_id: str) -> RequestPermissionResponse:
    return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option_id))


CANCELLED = RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


class Editor:
    """An editor's side of the protocol: it keeps every update, and answers questions by a script."""

    def __init__(self) -> None:
        self.updates: list[tuple[str, Any]] = []
        self.questions: list[tuple[ToolCallUpdate, list[PermissionOption]]] = []
        self.answer: Answer = say_once
        self.buffers: dict[str, str] = {}  # what is open, by path
        self.asked_for: list[str] = []
        self._came = asyncio.Condition()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update))
        async with self._came:
            self._came.notify_all()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.questions.append((tool_call, options))
        async with self._came:
            self._came.notify_all()
        return await self.answer(tool_call, options)

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> ReadTextFileResponse:
        self.asked_for.append(path)
        if path in self.buffers:
            return ReadTextFileResponse(content=self.buffers[path])
        raise RequestError.resource_not_found(path)

    def on_connect(self, _conn: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        async def refused(*_: Any, **__: Any) -> Any:
            raise RequestError.method_not_found(name)

        return refused

    def of(self, kind: str, session_id: str = "") -> Iterator[Any]:
        """The updates of a kind, perhaps of one session."""
        for session, update in self.updates:
            if update.session_update == kind and session_id in ("", session):
                yield update

    def text(self, session_id: str = "", kind: str = "agent_message_chunk") -> str:
        """What was streamed so far."""
        return "".join(update.content.text for update in self.of(kind, session_id))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds that an update or a question makes true."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._came:
            await self._came.wait_for(holds)


class Connected:
    """A connection to the agent, and its process if it has one of its own."""

    def __init__(
        self,
        editor: Editor,
        agent: ClientSideConnection,
        process: asyncio.subprocess.Process | None = None,
    ):
        self.editor, self.agent, self._process = editor, agent, process
        self.initialized: InitializeResponse | None = None

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    async def initialize(self, capabilities: ClientCapabilities | None) -> None:
        info = Implementation(name="tests", version="1")
        self.initialized = await self.agent.initialize(PROTOCOL_VERSION, capabilities, info)

    async def new(self, folder: Path) -> str:
        return (await self.agent.new_session(cwd=str(folder))).session_id


@asynccontextmanager
async def connected(
    home: Path, *argv: str, capabilities: ClientCapabilities | None = None, **environ: str
) -> AsyncIterator[Connected]:
    """The program as an editor starts it, with a home of its own."""
    editor = Editor()
    async with spawn_agent_process(
        editor,
        sys.executable, "-m", "rolling_chat", "acp", *argv,
        env=program_environment(home, **environ),
        cwd=home,
        transport_kwargs={"limit": 50_000_000, "shutdown_timeout": PATIENCE_SECONDS},
        use_unstable_protocol=True,
    ) as (agent, process):  # fmt: skip
        connection = Connected(editor, agent, process)
        await connection.initialize(capabilities)
        yield connection


class _QueueEnd:
    """One end of a connection within this process; what is sent is what JSON makes of it."""

    def __init__(self, outgoing: asyncio.Queue[Message], incoming: asyncio.Queue[Message]) -> None:
        self._outgoing, self._incoming = outgoing, incoming

    async def send(self, message: dict[str, Any]) -> None:
        await self._outgoing.put(json.loads(json.dumps(message)))

    async def receive(self) -> dict[str, Any] | None:
        return await self._incoming.get()

    async def close(self) -> None:
        await self._outgoing.put(None)


@asynccontextmanager
async def connected_here(
    opener: Opener, capabilities: ClientCapabilities | None = None
) -> AsyncIterator[Connected]:
    """The agent in this process, which is cheaper: the same messages, and no pipes between."""
    editor, agent = Editor(), ClientAgent(opener)
    there, back = asyncio.Queue[Message](), asyncio.Queue[Message]()
    ours, theirs = _QueueEnd(there, back), _QueueEnd(back, there)
    serving = AgentSideConnection(agent, ours, use_unstable_protocol=True)
    client = ClientSideConnection(editor, theirs, use_unstable_protocol=True)
    connection = Connected(editor, client)
    try:
        await connection.initialize(capabilities)
        yield connection
    finally:
        await agent.close()
        await client.close()
        await serving.close()
