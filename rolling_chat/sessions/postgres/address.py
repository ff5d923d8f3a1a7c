"""Where a store in PostgreSQL is, and what of that may be shown."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import ProgrammingError

from rolling_chat.sessions.records import StoreError
from rolling_chat.text import printable

# a server that is gone is noticed, however long nothing was asked
_USUAL = {
    "application_name": "rolling-chat",
    "keepalives_idle": "20",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
_ENCRYPTED = frozenset({"require", "verify-ca", "verify-full"})


@dataclass(frozen=True, slots=True)
class Address:
    """An address of a database; `conninfo` may hold a password, `shown` never does."""

    conninfo: str = field(repr=False)
    shown: str
    _secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, url: str) -> Address:
        """Read an address such as postgresql://ada@db.example.org/sessions. Raises StoreError.

        Off this machine the connection must be encrypted.
        """
        try:
            parts = conninfo_to_dict(url)
        except ProgrammingError:
            raise StoreError(
                "[sessions] store is no address of PostgreSQL such as postgresql://NAME@HOST/DATABASE"
            ) from None
        shown = _shown(parts)
        mode = str(parts.get("sslmode") or "")
        if mode not in _ENCRYPTED and not _stays_here(parts):
            raise StoreError(
                f"[sessions] store: the way to {shown} must be encrypted; "
                "add sslmode=verify-full to the address, or sslmode=require"
            )
        password = str(parts.get("password") or "")
        secrets = tuple(one for one in (password, unquote(urlsplit(url).password or "")) if one)
        return cls(make_conninfo(url, **_USUAL), shown, secrets)

    def redacted(self, text: str) -> str:
        """Return a text without the password of this address."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def _shown(parts: Mapping[str, object]) -> str:
    service = f"service {parts['service']}" if parts.get("service") else ""
    host = str(parts.get("host") or parts.get("hostaddr") or "") or service or "this machine"
    where = f"{host} ({parts['dbname']})" if parts.get("dbname") else host
    return printable(where, 120)


def _stays_here(parts: Mapping[str, object]) -> bool:
    """Return whether a connection does not leave this machine."""
    if parts.get("service") or os.environ.get("PGSERVICE") or os.environ.get("PGHOSTADDR"):
        return False
    hosts = str(parts.get("host") or os.environ.get("PGHOST", "")).split(",")
    addresses = str(parts.get("hostaddr") or "").split(",")
    return all(map(_is_here, hosts)) and all(map(_is_here, addresses))


def _is_here(host: str) -> bool:
    """Return whether a host is this machine: a folder with a socket, or its own address."""
    if not host or host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
