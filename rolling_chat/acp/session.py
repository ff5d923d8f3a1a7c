"""One session of a client: its chat, its running prompt, and the state last sent to the client."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from acp import Client, RequestError
from acp.schema import (
    AvailableCommand,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    SessionInfoUpdate,
    SessionModeState,
    StopReason,
)

from rolling_chat.acp.buffers import Buffers
from rolling_chat.acp.codes import AUTH_REQUIRED, INVALID_REQUEST
from rolling_chat.acp.commands import ClientCommands, available_commands
from rolling_chat.acp.options import Options, modes_of, options_of, set_mode, set_option, values_of
from rolling_chat.acp.prompts import Block, PromptReader
from rolling_chat.acp.questions import Questions
from rolling_chat.acp.times import as_iso
from rolling_chat.acp.turns import Turns
from rolling_chat.acp.updates import notice_chunk, plan_of, replayed
from rolling_chat.agent import Chat, ChatError
from rolling_chat.agent.model_list import ListedModel
from rolling_chat.commands import custom_commands, parse
from rolling_chat.tools.background import BACKGROUND

_log = logging.getLogger("rolling_chat.acp")


@dataclass(frozen=True, slots=True)
class _SentState:
    """The state last sent to the client: commands, mode, options, title."""

    commands: tuple[AvailableCommand, ...] = ()
    mode: str = ""
    options: tuple[str, ...] = ()
    title: str = ""


class ClientSession:
    """Runs the prompts of one open session, one at a time; `name` is the id by which the client knows it."""

    def __init__(
        self, chat: Chat, client: Client, models: Sequence[ListedModel], *, name: str, has_buffers: bool
    ) -> None:
        self.chat = chat
        self.id = name
        self._client = client
        self._models = models
        self._work: asyncio.Task[StopReason] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._sending_changes: asyncio.Task[None] | None = None
        self._notices = [*chat.session.notices]
        self._sent = _SentState()
        questions = Questions(client, self.id, chat.trust.folder, self.cancel)
        chat.listener.ask = questions.ask_permission
        chat.listener.ask_attachment = questions.ask_attachment
        chat.listener.ask_spending = questions.ask_spending
        if has_buffers:
            chat.listener.unsaved = Buffers(client, self.id).unsaved
        chat.listener.on_server = self._on_server_line
        self._turns = Turns(chat, questions, self.send, self.sync)
        self._commands = ClientCommands(chat, questions, self._turns, self.send)

    @property
    def is_blank(self) -> bool:
        """Whether the session has no messages yet."""
        return not self.chat.session.conversation.recent

    @property
    def modes(self) -> SessionModeState:
        """The modes and the active one."""
        return modes_of(self.chat)

    @property
    def options(self) -> Options:
        """The options, with their values."""
        return options_of(self.chat, self._models)

    async def send(self, update: Any) -> None:
        """Send an update of this session."""
        await self._client.session_update(self.id, update)

    def begin(self) -> None:
        """Send unrequested updates, and load what the first request needs, in the background."""
        self._sent = self._current_state()
        self.chat.session.servers.start()
        if self._warming is None or self._warming.done():
            self._warming = asyncio.create_task(self._warm_up())

    async def prompt(self, blocks: Sequence[Block]) -> StopReason:
        """Answer a prompt; return why the turn stopped. Raises RequestError with one line."""
        if self._work is not None:
            raise RequestError(INVALID_REQUEST, "The last prompt is still being answered: cancel it first.")
        work = self._work = asyncio.create_task(self._answer(blocks))
        try:
            await asyncio.wait({work})
        finally:
            if not work.done():  # the connection is being closed
                work.cancel()
                await asyncio.wait({work})
            self._work = None
        if work.cancelled():
            return "cancelled"
        return work.result()

    def cancel(self) -> None:
        """Stop the running prompt, which ends as canceled."""
        if self.chat.busy:
            self.chat.stop()
        elif self._work is not None:
            self._work.cancel()

    async def replay(self) -> None:
        """Send the whole conversation, and the plan at its end."""
        session = self.chat.session
        await session.read_up(whole=True)
        for update in replayed(session.messages, self.chat.trust.folder):
            await self.send(update)
        if session.todo is not None:
            await self.send(plan_of(session.todo))

    async def set_mode(self, name: str) -> None:
        """Activate a mode. Raises ChatError."""
        set_mode(self.chat, name)
        await self.sync()

    async def set_option(self, name: str, value: str) -> None:
        """Set an option. Raises ChatError."""
        self._notices += await set_option(self.chat, name, value)
        await self.sync()
        if self._work is None:
            await self._turns.show_usage()

    async def sync(self) -> None:
        """Send the commands, the mode, the options and the title, if they changed since the last call."""
        before, now = self._sent, self._current_state()
        self._sent = now
        if now.commands != before.commands:
            await self._send_commands()
        if now.mode != before.mode:
            await self.send(CurrentModeUpdate(session_update="current_mode_update", current_mode_id=now.mode))
        if now.options != before.options:
            await self.send(
                ConfigOptionUpdate(session_update="config_option_update", config_options=self.options)
            )
        if now.title != before.title:
            updated = as_iso(self.chat.session.info.updated_at)
            await self.send(
                SessionInfoUpdate(session_update="session_info_update", title=now.title, updated_at=updated)
            )

    def _on_server_line(self, line: str) -> None:
        """Keep a line about an MCP server for the next prompt, and send changes to the client."""
        self._notices += filter(None, [line])
        if self._work is None and (self._sending_changes is None or self._sending_changes.done()):
            self._sending_changes = asyncio.create_task(self._send_changes())

    async def _send_changes(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self.sync()
            await self._turns.show_usage()

    async def close(self) -> None:
        """Stop running work, and close the session, which stays saved."""
        for task in (self._warming, self._sending_changes, self._work):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        self.chat.stop()
        for command in BACKGROUND.running():
            if command.owner == self.id:
                await BACKGROUND.end(command)
        await self.chat.disconnect()
        self.chat.dispose()

    async def _answer(self, blocks: Sequence[Block]) -> StopReason:
        try:
            reader = PromptReader(
                self.chat.trust.folder, self.chat.session.mentions.keep_picture, self.chat.listener.unsaved
            )
            said = await reader.read(blocks)
            await self._send_notices()
            is_command = said.text.lstrip().startswith("/") and not said.given
            command = parse(said.text) if is_command else None
            if command is not None:
                return await self._commands.run(command)
            self._require_key()
            return await self._turns.run(partial(self.chat.send, said.text, given=said.given))
        except ChatError as error:
            raise RequestError(INVALID_REQUEST, str(error)) from error
        finally:
            await self._send_notices()
            await self.sync()

    def _require_key(self) -> None:
        """Raise RequestError if the model's provider needs a key and there is none."""
        line = self.chat.session.missing_key
        if line:
            raise RequestError(AUTH_REQUIRED, line)

    async def _send_notices(self) -> None:
        notices, self._notices = self._notices, []
        for line in notices:
            await self.send(notice_chunk(line))

    async def _warm_up(self) -> None:
        """Load what the first request needs, and show the commands and the gauge before it."""
        try:
            await self._send_commands()
            if title := self._sent.title:
                await self.send(SessionInfoUpdate(session_update="session_info_update", title=title))
            chat = self.chat
            await chat.warm_counting()
            self._notices += filter(None, [await chat.session.ask_server()])
            await chat.session.count_beginning()
            await self._turns.show_usage()
            await chat.warm_up()
            await chat.remove_leftovers()
        except Exception as error:  # the first request reports what is wrong
            _log.warning("warming up failed", exc_info=error)

    async def _send_commands(self) -> None:
        await self.send(
            AvailableCommandsUpdate(
                session_update="available_commands_update", available_commands=list(self._sent.commands)
            )
        )

    def _current_state(self) -> _SentState:
        session = self.chat.session
        commands = tuple(available_commands(custom_commands(self.chat)))
        return _SentState(commands, session.permissions.policy, values_of(self.chat), session.info.title)
