"""Web addresses: parse them strictly, normalize them, and classify the networks they lead to.

If two programs parse the host of a link differently, the link may reach a server of the local network. So
questions, rules and connections all use one normalized spelling.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import quote

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

Network: TypeAlias = Literal["public", "private", "special"]

MAX_LENGTH = 4_000  # characters of an address
_PORTS = {"http": 80, "https": 443}
_ADDRESS = re.compile(r"(https?)://([^/?#]*)([^#]*)(?:#.*)?", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::(\d{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_PATTERN = re.compile(r"(?:(https?)://)?(\*\.)?(\[[^\]]*\]|[^:/\[\]]+)(?::(\d{1,5}))?/?", re.IGNORECASE)
_KEPT = "/%:=&?~+!$,;'@()*[]-._"  # of a path and a query; everything else is percent-encoded

# public addresses that are answered by the cloud in which the machine runs
_CLOUD = frozenset({"168.63.129.16"})
_NOT_PUBLIC = (
    "192.88.99.0/24",
    "192.0.0.0/24",
)  # relays and protocol assignments, which older Pythons call global


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A web address: `host` is in lower case, without brackets; `target` is path and query."""

    scheme: str
    host: str
    port: int
    target: str = "/"

    @property
    def site(self) -> str:
        """The host as written in a URL, with its port unless that is the scheme's default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.has_own_port else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{self.site}"

    @property
    def url(self) -> str:
        """The whole address, in ASCII."""
        return self.origin + self.target

    @property
    def has_own_port(self) -> bool:
        """Whether the port is the scheme's default."""
        return _PORTS[self.scheme] == self.port


def parse_address(text: str) -> WebAddress:
    """Parse a web address. Raises ValueError with the reason, as the end of a sentence."""
    text = text.strip()
    if not text.isprintable() or " " in text or "\\" in text:
        raise ValueError("has a character that no address has")
    if len(text) > MAX_LENGTH:
        raise ValueError(f"is longer than {MAX_LENGTH:,} characters")
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise ValueError("is not an address that begins with http:// or https://")
    scheme, authority, target = match[1].lower(), match[2], match[3]
    if "@" in authority:
        raise ValueError("has a user name in it, which is not sent")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None or not parts[1]:
        raise ValueError("has no valid host")
    port = int(parts[2]) if parts[2] else _PORTS[scheme]
    if not 0 < port < 65_536:
        raise ValueError("has no valid port")
    path = target if target.startswith("/") else f"/{target}"
    return WebAddress(scheme, _host(parts[1]), port, quote(path, safe=_KEPT))


@dataclass(frozen=True, slots=True)
class SitePattern:
    """The pattern of a rule: a host, or with `below` (`*.`) its subdomains; scheme and port optional."""

    scheme: str
    host: str
    port: int
    below: bool = False

    def allows(self, address: WebAddress) -> bool:
        """Return whether an allow rule permits the address: at the named port, or else at the default one."""
        is_port = address.port == self.port if self.port else address.has_own_port
        return self.scheme in ("", address.scheme) and is_port and self._is_host(address.host)

    def opens(self, address: WebAddress) -> bool:
        """Return whether an allow rule names this scheme and host exactly, and so permits a local network.

        Rules from the user's answers have no scheme: a name that was public then may lead anywhere later.
        """
        return bool(self.scheme) and not self.below and self.allows(address)

    def denies(self, address: WebAddress) -> bool:
        """Return whether a deny rule forbids the address; a host is denied with its subdomains."""
        is_named = self._is_host(address.host) or address.host.endswith(f".{self.host}")
        return is_named and self.scheme in ("", address.scheme) and self.port in (0, address.port)

    def _is_host(self, host: str) -> bool:
        return host.endswith(f".{self.host}") if self.below else host == self.host


def parse_pattern(text: str) -> SitePattern:
    """Parse a rule's pattern: `python.org`, `*.python.org`, `http://127.0.0.1:8000`. Raises ValueError."""
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    scheme = (match[1] or "").lower()
    port = int(match[4]) if match[4] else _PORTS.get(scheme, 0)
    if port > 65_535 or (match[4] and not port):
        raise ValueError(text)
    return SitePattern(scheme, _host(match[3]), port, below=bool(match[2]))


def _host(text: str) -> str:
    """Return a host in normalized spelling. Raises ValueError for one that programs parse differently."""
    from ipaddress import IPv4Address, IPv6Address  # noqa: PLC0415  # not needed before the first paint

    if text.startswith("["):
        try:
            address = IPv6Address(text[1:-1])
        except ValueError:
            raise ValueError("has no valid host") from None
        if address.scope_id:
            raise ValueError("has no valid host")
        return str(address)
    name = _ascii(text).lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError("has no valid host")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(name))
        except ValueError:
            raise ValueError("has a number for a host; write it as four numbers from 0 to 255") from None
    return name


def _ascii(name: str) -> str:
    if name.isascii():
        return name
    import idna  # noqa: PLC0415  # came with litellm

    try:
        return idna.encode(name, uts46=True).decode()
    except idna.IDNAError:
        raise ValueError("has no valid host") from None


def network_of(number: str) -> Network:
    """Return the kind of network that an IP address belongs to.

    "private" is this machine and local networks; "special" are addresses that never have web pages:
    link-local ones, where clouds answer with secrets, multicast, and addresses that embed others.
    """
    from ipaddress import IPv4Address, ip_address  # noqa: PLC0415

    address = ip_address(number)
    if isinstance(address, IPv4Address):
        return _network4(address)
    return _network6(address)


def _network4(address: IPv4Address) -> Network:
    from ipaddress import ip_network  # noqa: PLC0415

    if address.is_loopback or any(
        address in ip_network(net) for net in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
    ):
        return "private"
    is_other = str(address) in _CLOUD or any(address in ip_network(net) for net in _NOT_PUBLIC)
    is_public = address.is_global and not (address.is_multicast or address.is_reserved or is_other)
    return "public" if is_public else "special"


def _network6(address: IPv6Address) -> Network:
    from ipaddress import ip_network  # noqa: PLC0415

    if address.is_loopback or address in ip_network("fc00::/7"):
        # Amazon's service addresses are in this range
        return "special" if address in ip_network("fd00:ec2::/32") else "private"
    # all public addresses are in this range; 6to4 and Teredo inside it, and NAT64 outside, embed others
    is_public = address in ip_network("2000::/3") and address.is_global
    is_translated = address.sixtofour is not None or address.teredo is not None
    is_isatap = int(address) >> 32 & 0xFCFFFFFF == 0x5EFE
    return "public" if is_public and not (is_translated or is_isatap) else "special"


def is_local(address: WebAddress) -> bool:
    """Return whether an address names this machine or a network that is not public, without a DNS lookup."""
    if address.host == "localhost" or address.host.endswith((".localhost", ".local", ".internal")):
        return True
    is_number = ":" in address.host or address.host.replace(".", "").isdigit()
    return is_number and network_of(address.host) != "public"
