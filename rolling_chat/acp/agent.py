"""The methods that clients call: open, list, prompt, change, cancel and close sessions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from acp import PROTOCOL_VERSION, Client, RequestError
from acp.interfaces import Agent
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    ClientCapabilities,
    CloseSessionResponse,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)

from rolling_chat import __version__
from rolling_chat.acp.codes import INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND
from rolling_chat.acp.mcp_servers import GivenServer, add_servers, can_use_servers
from rolling_chat.acp.opening import Opener
from rolling_chat.acp.prompts import Block
from rolling_chat.acp.session import ClientSession
from rolling_chat.acp.sign_in import methods_for, require_key
from rolling_chat.acp.times import as_iso
from rolling_chat.agent import ChatError
from rolling_chat.api import saved_sessions
from rolling_chat.text import one_line

_log = logging.getLogger("rolling_chat.acp")

_PAGE = 50  # sessions per page of a list


class ClientAgent(Agent):
    """The agent of one client, with any number of open sessions."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._client: Client | None = None
        self._sessions: dict[str, ClientSession] = {}
        self._has_buffers = False
        self._opening: dict[str, asyncio.Lock] = {}

    def on_connect(self, conn: Client) -> None:
        """Use a connection to send updates and questions."""
        self._client = conn

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        """Return this agent's capabilities."""
        fs = client_capabilities.fs if client_capabilities is not None else None
        self._has_buffers = bool(fs is not None and fs.read_text_file)
        name = f"{client_info.name} {client_info.version}" if client_info is not None else "a client"
        _log.info("%s speaks version %s of the protocol", one_line(name, 80), protocol_version)
        sessions = SessionCapabilities(
            list=SessionListCapabilities(),
            fork=SessionForkCapabilities(),
            resume=SessionResumeCapabilities(),
            close=SessionCloseCapabilities(),
        )
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                mcp_capabilities=McpCapabilities(http=can_use_servers()),
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=sessions,
            ),
            agent_info=Implementation(name="rolling-chat", title="Rolling Chat", version=__version__),
            auth_methods=methods_for(client_capabilities),
        )

    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        """Check whether there is a key by now."""
        await asyncio.to_thread(require_key, method_id)
        return AuthenticateResponse()

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[GivenServer] | None = None,
        **_: Any,
    ) -> NewSessionResponse:
        """Open a new session in a folder."""
        _log_unused(additional_directories)
        session = await self._open(cwd, mcp_servers)
        response = NewSessionResponse(
            session_id=session.id, modes=session.modes, config_options=session.options
        )
        session.begin()
        return response

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[GivenServer] | None = None,
        additional_directories: list[str] | None = None,
        **_: Any,
    ) -> LoadSessionResponse:
        """Open a saved session and send its whole conversation."""
        _log_unused(additional_directories)
        session = await self._reopen(cwd, session_id, mcp_servers)
        await _in_words(session.replay())
        response = LoadSessionResponse(modes=session.modes, config_options=session.options)
        session.begin()
        return response

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[GivenServer] | None = None,
        **_: Any,
    ) -> ResumeSessionResponse:
        """Open a saved session whose messages the client already has."""
        _log_unused(additional_directories)
        session = await self._reopen(cwd, session_id, mcp_servers)
        response = ResumeSessionResponse(modes=session.modes, config_options=session.options)
        session.begin()
        return response

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[GivenServer] | None = None,
        **_: Any,
    ) -> ForkSessionResponse:
        """Copy a saved session, leaving the original unchanged."""
        _log_unused(additional_directories)
        known = self._sessions.get(session_id)
        if known is not None and known.is_blank:  # nothing of it is saved, so a new session is a copy
            session = await self._open(cwd, mcp_servers)
        else:
            session = await self._open(cwd, mcp_servers, session_id, forked=True)
        response = ForkSessionResponse(
            session_id=session.id, modes=session.modes, config_options=session.options
        )
        session.begin()
        return response

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> ListSessionsResponse:
        """List the saved sessions of a folder, or of all, newest first."""
        start = int(cursor) if cursor and cursor.isdecimal() and len(cursor) < 10 else 0
        if cursor and not start:
            raise RequestError(INVALID_PARAMS, "That cursor is not from this agent.")
        found = await _in_words(asyncio.to_thread(saved_sessions, cwd))
        page = [
            SessionInfo(
                session_id=info.id, cwd=info.folder, title=one_line(info.title) or None,
                updated_at=as_iso(info.updated_at),
            )
            for info in found[start : start + _PAGE]
        ]  # fmt: skip
        following = str(start + _PAGE) if len(found) > start + _PAGE else None
        return ListSessionsResponse(sessions=page, next_cursor=following)

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Close a session, which stays saved."""
        session = self._session(session_id)
        del self._sessions[session_id]
        await session.close()
        return CloseSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Change the permission policy."""
        await _in_words(self._session(session_id).set_mode(mode_id))
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Change an option, and return all of them."""
        session = self._session(session_id)
        await _in_words(session.set_option(config_id, str(value)))
        return SetSessionConfigOptionResponse(config_options=session.options)

    async def prompt(self, session_id: str, prompt: Sequence[Block], **_: Any) -> PromptResponse:
        """Answer a prompt."""
        return PromptResponse(stop_reason=await self._session(session_id).prompt(prompt))

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the answer to the running prompt."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.cancel()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Refuse a method that is not part of the protocol."""
        _log.info("%s was refused, with %s parameters", one_line(method, 80), len(params))
        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Ignore a notification that is not part of the protocol."""
        _log.info("%s was ignored, with %s parameters", one_line(method, 80), len(params))

    async def close(self) -> None:
        """Stop everything, and close all sessions, which stay saved."""
        sessions, self._sessions = list(self._sessions.values()), {}
        for result in await asyncio.gather(*(one.close() for one in sessions), return_exceptions=True):
            if isinstance(result, BaseException):
                _log.error("a session could not be closed", exc_info=result)

    async def _reopen(
        self, cwd: str, session_id: str, servers: Sequence[GivenServer] | None
    ) -> ClientSession:
        """Return a saved session; if it is open already, it keeps the servers that it has."""
        async with self._opening.setdefault(session_id, asyncio.Lock()):
            known = self._sessions.get(session_id)
            return known if known is not None else await self._open(cwd, servers, session_id)

    async def _open(
        self,
        cwd: str,
        servers: Sequence[GivenServer] | None,
        resume: str | None = None,
        *,
        forked: bool = False,
    ) -> ClientSession:
        assert self._client is not None
        chat = await asyncio.to_thread(partial(self._opener.open, cwd, resume, forked=forked))
        chat.session.notices.extend(add_servers(chat, servers or ()))
        models = await asyncio.to_thread(chat.list_models)
        # the client may know a session of an older version by its old id
        name = resume if resume is not None and not forked else chat.session.info.id
        session = ClientSession(chat, self._client, models, name=name, has_buffers=self._has_buffers)
        self._sessions[session.id] = session
        return session

    def _session(self, session_id: str) -> ClientSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise RequestError(
                NOT_FOUND, "No session with that id is open: load or resume it.", {"sessionId": session_id}
            )
        return session


async def _in_words(work: Any) -> Any:
    try:
        return await work
    except ChatError as error:
        raise RequestError(INVALID_REQUEST, str(error)) from error


def _log_unused(additional_directories: list[str] | None) -> None:
    """Log additional directories that a client passes without this agent announcing support for them."""
    if additional_directories:
        _log.warning("%s additional directories are not used", len(additional_directories))
