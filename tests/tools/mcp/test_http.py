"""Servers at an address: of the SDK, one with a login by OAuth, and such as send too much."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from rolling_chat.settings.mcp_servers import McpServerConfig
from rolling_chat.tools.mcp.logins import McpLogins
from rolling_chat.tools.mcp.peer import ServerError, load_client
from rolling_chat.tools.mcp.results import as_result
from rolling_chat.tools.mcp.server import McpServer, Status
from tests.support.mcp import started, surroundings
from tests.support.patience import eventually
from tests.support.servers.mcp_http import Users, http_server


def server_at(url: str, folder: Path, **more: Any) -> McpServer:
    config = McpServerConfig("test", url=url, **more)
    return McpServer(config, "mcp__test__", surroundings(folder, TOKEN="let-me-in"), 20)


async def test_a_server_over_http_is_connected_to_again_after_it_was_gone(tmp_path: Path) -> None:
    async with http_server() as url:
        server = await started(server_at(url, tmp_path))
        assert [tool.own_name for tool in server.offer.tools] == ["join"], server.line
        assert as_result(await server.call("join", {"a": "1", "b": "2"}), "t").text == "12"
    with pytest.raises(ServerError):
        await server.call("join", {"a": "1", "b": "2"})
    assert [tool.own_name for tool in server.offer.tools] == ["join"]
    await server.stop()


async def test_a_login_is_kept_renewed_and_forgotten(tmp_path: Path) -> None:
    users, logins = Users(), McpLogins(tmp_path / "logins.json")
    async with http_server(users) as url:
        server = await started(server_at(url, tmp_path))
        assert server.status is Status.LOGIN, server.line
        assert not users.clients

        shown: list[str] = []
        login = asyncio.create_task(server.login(shown.append))
        await eventually(lambda: shown)
        async with httpx.AsyncClient(follow_redirects=True) as browser:
            # where litellm was loaded before, every client of the process refuses to go to another server
            browser.event_hooks = {}
            page = await browser.get(shown[0])
        assert "You are logged in." in page.text
        await login
        assert as_result(await server.call("join", {"a": "x", "b": "y"}), "t").text == "xy"
        await server.stop()
        assert stat.S_IMODE(logins.file.stat().st_mode) == 0o600

        again = await started(server_at(url, tmp_path))
        assert again.status is Status.READY, again.line
        await again.stop()

        kept = json.loads(logins.file.read_text())
        users.tokens.clear()
        logins.put(url, {**kept[url], "ends": 1.0})
        renewed = await started(server_at(url, tmp_path))
        assert renewed.status is Status.READY, renewed.line
        assert users.refreshed == 1
        await renewed.stop()

        assert logins.forget(url)
        assert (await started(server_at(url, tmp_path))).status is Status.LOGIN


async def test_a_login_that_is_refused_is_one_line(tmp_path: Path) -> None:
    async with http_server(Users()) as url:
        server = server_at(url, tmp_path)
        shown: list[str] = []
        login = asyncio.create_task(server.login(shown.append))
        await eventually(lambda: shown)
        back = httpx.URL(shown[0]).params["redirect_uri"]
        async with httpx.AsyncClient() as browser:
            assert (await browser.get(back.replace("/callback", "/other"))).status_code == 404
            await browser.get(f"{back}?error=access_denied&error_description=not%20you%1b%5B2J")
        with pytest.raises(ServerError, match="refused the login: not you"):
            await login
        assert "\x1b" not in server.problem
        await server.stop()


async def test_what_is_sent_without_an_end_or_compressed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await load_client()
    monkeypatch.setattr("rolling_chat.tools.mcp.http.MAX_MESSAGE", 100_000)
    asked: list[str] = []

    async def flood(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers.get("Authorization", ""))
        headers = {"Content-Type": "application/json"}
        if request.path == "/packed":
            headers["Content-Encoding"] = "gzip"
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for _ in range(100):
            await response.write(b"x" * 10_000)
        return response

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", flood)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        headers = {"Authorization": "Bearer ${TOKEN}"}
        for path, why in (("flood", "more than 0 MB were sent"), ("packed", "compressed")):
            server = await started(server_at(f"http://127.0.0.1:{port}/{path}", tmp_path, headers=headers))
            assert server.status is Status.FAILED
            assert why in server.problem
    finally:
        await runner.cleanup()
    assert asked[0] == "Bearer let-me-in"
