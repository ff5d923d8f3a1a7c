"""MCP servers of the official SDK over HTTP in the test's own event loop; one with a login by OAuth."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import time
from collections.abc import AsyncIterator

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

from tests.support.patience import eventually


class Users(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """An authorization server in memory that lets everybody in; `refreshed` counts renewed tokens."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.renewals: dict[str, RefreshToken] = {}
        self.refreshed = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(), scopes=params.scopes or [], expires_at=time.time() + 60,
            client_id=client.client_id, code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri, resource=params.resource,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
        )  # fmt: skip
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issue(client.client_id, authorization_code.scopes)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.renewals.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.refreshed += 1
        return self._issue(client.client_id, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.tokens.pop(token.token, None)

    def _issue(self, client_id: str, scopes: list[str]) -> OAuthToken:
        access, renewal = secrets.token_urlsafe(), secrets.token_urlsafe()
        self.tokens[access] = AccessToken(token=access, client_id=client_id, scopes=scopes)
        self.renewals[renewal] = RefreshToken(token=renewal, client_id=client_id, scopes=scopes)
        return OAuthToken(access_token=access, refresh_token=renewal, expires_in=3600)


@contextlib.asynccontextmanager
async def http_server(users: Users | None = None) -> AsyncIterator[str]:
    """Run a server with one tool, and yield its address; with `users` it wants a login."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        settings = (
            None
            if users is None
            else AuthSettings(
                issuer_url=AnyHttpUrl(base),
                resource_server_url=AnyHttpUrl(f"{base}/mcp"),
                client_registration_options=ClientRegistrationOptions(enabled=True),
                validate_token_resource=False,
            )
        )
        server = MCPServer("over http", auth=settings, auth_server_provider=users, log_level="ERROR")
        server.add_tool(lambda a, b: f"{a}{b}", name="join", description="Join two texts.")
        config = uvicorn.Config(server.streamable_http_app(), log_config=None, lifespan="on")
        running = uvicorn.Server(config)
        with contextlib.ExitStack() as stack:
            stack.callback(setattr, running, "should_exit", True)
            serving = asyncio.create_task(running.serve(sockets=[listening]))
            await eventually(lambda: running.started)
            try:
                yield f"{base}/mcp"
            finally:
                running.should_exit = running.force_exit = True
                await serving
