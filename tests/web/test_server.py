"""The server of the pages: who is let in, and what reaches a chat."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from rolling_chat.web.server import HOST, ChatServer
from tests.support.program import program_environment


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ChatServer]:
    for name, value in program_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    served = ChatServer(["--model", "demo/offline"])
    runner = await served.start(0)
    yield served
    await runner.cleanup()


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    # an address by number has no cookies otherwise
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


def base(server: ChatServer) -> str:
    return server.address.partition("/?")[0]


PATHS = ["/", "/page.js", "/page.css", "/static/js/textual.js", "/ws/a"]


@pytest.mark.parametrize("path", PATHS)
async def test_nobody_gets_anything_without_the_token(
    server: ChatServer, client: aiohttp.ClientSession, path: str
) -> None:
    for address in (f"{base(server)}{path}", f"{base(server)}{path}?token=wrong"):
        async with client.get(address, headers={"Origin": base(server)}) as answer:
            assert answer.status == 403
            assert server.token not in await answer.text()


async def test_the_token_leaves_the_address_and_stays_as_a_cookie(
    server: ChatServer, client: aiohttp.ClientSession
) -> None:
    async with client.get(server.address, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
    for path in PATHS[:-1]:
        async with client.get(f"{base(server)}{path}") as answer:
            assert answer.status == 200, path
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


async def test_a_page_names_nothing_of_another_host(
    server: ChatServer, client: aiohttp.ClientSession
) -> None:
    await (await client.get(server.address)).read()
    for path in ("/", "/page.js", "/page.css"):
        async with client.get(f"{base(server)}{path}") as answer:
            addresses = re.findall(r"\w+://\S*|(?<=[\"'(])//\S*", await answer.text())
            assert addresses in ([], ["ws://${window.location.host}/ws/${tab}`;"])


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://{HOST}:1"},
        {"Host": "evil.example"},  # its name was made to point here
        {},  # no page at all
    ],
)
async def test_another_page_with_the_cookie_cannot_connect(
    server: ChatServer, client: aiohttp.ClientSession, headers: dict[str, str]
) -> None:
    await (await client.get(server.address)).read()
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await client.ws_connect(f"{base(server)}/ws/a", headers=headers)
    assert refused.value.status == 403


@pytest.mark.parametrize("tab", ["x" * 65, "ä"])
async def test_a_page_without_a_proper_name_is_refused(
    server: ChatServer, client: aiohttp.ClientSession, tab: str
) -> None:
    await (await client.get(server.address)).read()
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await client.ws_connect(f"{base(server)}/ws/{tab}", headers={"Origin": base(server)})
    assert refused.value.status == 400


async def test_garbage_of_a_page_is_ignored_and_its_keys_arrive(
    server: ChatServer, client: aiohttp.ClientSession
) -> None:
    await (await client.get(server.address)).read()
    address = f"{base(server)}/ws/a?width=80&height=24"
    async with client.ws_connect(address, headers={"Origin": base(server)}) as socket:
        for garbage in ("", "{", "[]", "7", '["stdin"]', '["stdin", 7]', '["resize", {"width": "x"}]',
                        '["resize", {"width": -1, "height": 1e9}]', '["stdin", "\\ud800"]'):  # fmt: skip
            await socket.send_str(garbage)
        await socket.send_bytes(b"\xff")
        seen = b""
        while b"commands" not in seen:
            message = await socket.receive(timeout=60)
            seen += message.data if message.type is aiohttp.WSMsgType.BINARY else b""
        await socket.send_str('["stdin", "xyzzy"]')
        while b"xyzzy" not in seen:
            message = await socket.receive(timeout=60)
            seen += message.data if message.type is aiohttp.WSMsgType.BINARY else b""
