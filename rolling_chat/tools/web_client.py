"""Fetch one page within limits: look up its host, check the addresses, and connect to exactly these.

This module imports httpcore, which comes with litellm: load it when a page is fetched.
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import httpcore

from rolling_chat import __version__
from rolling_chat.text import one_line
from rolling_chat.tools.base import ToolError
from rolling_chat.web_addresses import WebAddress, network_of, parse_address

if TYPE_CHECKING:
    from ssl import SSLContext

MAX_BYTES = 2_000_000
"""The size, after decompression, at which a page is cut."""

TIMEOUT = 30.0  # seconds in total, for lookups, redirects and the body
_CONNECT = 10.0  # seconds to connect to each IP address
_MAX_NUMBERS = 4  # IP addresses of a host to try
_MAX_REDIRECTS = 10
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_HEADERS: Mapping[bytes | str, bytes | str] = {
    "User-Agent": f"rolling-chat/{__version__}",
    "Accept": "text/html, text/plain, application/json, */*;q=0.5",
    "Accept-Encoding": "identity",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer: `data` is cut at MAX_BYTES, and not read at all if `wants` refused the type.

    `moved` is the address on another host that it redirects to.
    """

    address: WebAddress
    media_type: str = ""  # such as "text/html; charset=utf-8"
    data: bytes = b""
    is_cut: bool = False
    length: int | None = None  # as reported by the server
    moved: WebAddress | None = None


class _Numbers(httpcore.AsyncNetworkBackend):
    """Connects to the IP addresses that were checked, even if the host's name resolves to others by now."""

    def __init__(self, numbers: Sequence[str], *, is_open: bool) -> None:
        self._numbers = numbers
        self._is_open = is_open
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,  # noqa: ARG002  # its IP addresses were looked up before
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first IP address that answers."""
        failure: Exception = httpcore.ConnectError("no address")
        for number in self._numbers:
            try:
                stream = await self._network.connect_tcp(number, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            if not self._is_open and _is_own(stream):
                await stream.aclose()
                raise ToolError("It is an address of this machine, which only a permission rule opens.")
            return stream
        raise failure


def _is_own(stream: httpcore.AsyncNetworkStream) -> bool:
    """Return whether both ends of a connection are this machine, which may have a public address."""
    ends = stream.get_extra_info("client_addr"), stream.get_extra_info("server_addr")
    return None not in ends and ip_address(ends[0][0]) == ip_address(ends[1][0])


async def fetch(
    address: WebAddress,
    *,
    opens: Callable[[WebAddress], bool],
    wants: Callable[[str], bool],
    environ: Iterable[str] = (),
) -> Answer:
    """Fetch an address, following redirects within its host. Raises ToolError.

    `opens` returns whether an address may be on the local network, and `wants` whether to read a media type.
    `environ` are the names of environment variables, which may include a proxy.
    """
    try:
        async with asyncio.timeout(TIMEOUT):
            for _ in range(_MAX_REDIRECTS + 1):
                answer = await _ask(address, opens, wants)
                if answer.moved is None or not _is_same_site(address, answer.moved):
                    return answer
                address = answer.moved
    except TimeoutError:
        raise ToolError(f"{address.origin} did not answer in full within {TIMEOUT:.0f} seconds.") from None
    except httpcore.TimeoutException:
        raise ToolError(f"{address.origin} does not answer.{_about_proxy(environ)}") from None
    except (httpcore.NetworkError, OSError) as error:
        why = one_line(str(error), 200) or type(error).__name__
        raise ToolError(f"{address.origin} cannot be reached: {why}.{_about_proxy(environ)}") from None
    except (httpcore.ProtocolError, zlib.error, UnicodeError) as error:
        raise ToolError(f"{address.origin} answered no sound HTTP: {one_line(str(error), 200)}.") from None
    raise ToolError(f"{address.origin} redirects more than {_MAX_REDIRECTS} times.")


async def _ask(
    address: WebAddress, opens: Callable[[WebAddress], bool], wants: Callable[[str], bool]
) -> Answer:
    is_open = opens(address)
    numbers = await _look_up(address, is_open=is_open)
    context = await asyncio.to_thread(_certificates) if address.scheme == "https" else None
    pool = httpcore.AsyncConnectionPool(
        ssl_context=context, network_backend=_Numbers(numbers, is_open=is_open), max_keepalive_connections=0
    )
    timeouts = {"connect": _CONNECT, "read": TIMEOUT, "write": TIMEOUT, "pool": TIMEOUT}
    async with (
        pool,
        pool.stream("GET", address.url, headers=_HEADERS, extensions={"timeout": timeouts}) as response,
    ):
        headers = {
            name.decode("ascii", "replace").lower(): value.decode("latin-1")
            for name, value in response.headers
        }
        if response.status in _REDIRECTS and "location" in headers:
            return Answer(address, moved=_moved(address, headers["location"]))
        if response.status != 200:
            raise ToolError(f"{one_line(address.url, 200)} answered with the status {response.status}.")
        media_type = one_line(headers.get("content-type", ""), 200)
        length = headers.get("content-length", "")
        answer = Answer(address, media_type, length=int(length) if length.isdecimal() else None)
        if not wants(media_type):
            return answer
        data = await _body(response.aiter_stream(), headers.get("content-encoding", ""))
        is_cut = len(data) > MAX_BYTES
        return Answer(address, media_type, bytes(data[:MAX_BYTES]), is_cut, answer.length)


async def _look_up(address: WebAddress, *, is_open: bool) -> list[str]:
    """Return the permitted IP addresses of a host. Raises ToolError if there are none."""
    host = address.host
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ToolError(f"There is no host {host}, or its name cannot be looked up now.") from None
    numbers = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    networks = {number: network_of(number.partition("%")[0]) for number in numbers}
    allowed = [
        number
        for number in numbers
        if networks[number] == "public"
        # a name may resolve to any address, but one that a rule names itself is intended
        or (is_open and (networks[number] == "private" or number == host))
    ]
    if not allowed:
        raise ToolError(
            f"Not fetched: {host} is at {numbers[0]}, which is this machine or no public network. Only a "
            f"permission rule of the user's that names it whole opens it: fetch_url({address.origin})."
        )
    return allowed[:_MAX_NUMBERS]


def _moved(address: WebAddress, location: str) -> WebAddress:
    try:
        return parse_address(urljoin(address.url, location.encode("latin-1").decode("utf-8", "replace")))
    except ValueError as error:
        target = one_line(location, 100)
        raise ToolError(f"{address.origin} redirects to “{target}”, which {error}.") from None


def _is_same_site(before: WebAddress, after: WebAddress) -> bool:
    """Return whether a redirect stays at the permitted origin, or leads to its HTTPS equivalent."""
    is_upgrade = after.scheme == "https" and before.has_own_port and after.has_own_port
    return after.host == before.host and (after.origin == before.origin or is_upgrade)


async def _body(pieces: AsyncIterator[bytes], encoding: str) -> bytearray:
    """Read a body up to just over MAX_BYTES, decompressing in pieces, as a small one may become huge."""
    encoding = encoding.strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
        raise ToolError(f"The page is packed with “{one_line(encoding, 40)}”, which was not asked for.")
    unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32) if encoding not in {"", "identity"} else None
    data = bytearray()
    async for piece in pieces:
        room = MAX_BYTES + 1 - len(data)
        data += piece[:room] if unpack is None else unpack.decompress(piece, room)
        if len(data) > MAX_BYTES or (unpack is not None and unpack.eof):
            break
    return data


def _about_proxy(environ: Iterable[str]) -> str:
    """Return a remark on a proxy in the environment; it is not used, as it would resolve names unchecked."""
    is_set = any(name.lower() in _PROXIES for name in environ)
    return " Pages are fetched without the proxy of the environment." if is_set else ""


@cache
def _certificates() -> SSLContext:
    import httpx  # noqa: PLC0415  # finds this system's certificates

    return httpx.create_ssl_context()
