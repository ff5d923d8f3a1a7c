"""The names of MCP servers' tools for the model: `mcp__SERVER__TOOL`.

Providers accept at most 64 letters, digits, `_` and `-`. If a name has to be changed for that and then equals
another, it ends with a hash of the original, so that it does not depend on the order of the servers.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rolling_chat.permissions.rules import MCP_PREFIX

MAX_NAME = 64
_MAX_SERVER = 24  # characters, so that enough are left for the tool
_HASH = 6
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_UNDERSCORES = re.compile(r"_{2,}")


def server_prefixes(names: Iterable[str]) -> Mapping[str, str]:
    """Return the prefix of the names of each server's tools, by the server's name."""
    plain = {name: _plain_server(name) for name in names}
    taken = Counter(plain.values())

    def short(name: str) -> str:
        is_own = plain[name] == name or taken[plain[name]] == 1
        return plain[name] if is_own else _hashed(plain[name], name, _MAX_SERVER)

    return {name: f"{MCP_PREFIX}{short(name)}__" for name in plain}


def tool_names(prefix: str, tools: Sequence[str]) -> Mapping[str, str]:
    """Return the name of each tool of a server for the model, by the tool's own name."""
    limit = MAX_NAME - len(prefix)
    plain = {name: _NOT_IN_NAMES.sub("_", name) or "_" for name in tools}
    taken = Counter(plain.values())
    return {
        name: prefix
        + (
            short
            if len(short) <= limit and (short == name or taken[short] == 1)
            else _hashed(short, name, limit)
        )
        for name, short in plain.items()
    }


def _plain_server(name: str) -> str:
    # two underscores end a server's name
    short = _UNDERSCORES.sub("_", _NOT_IN_NAMES.sub("_", name)).strip("_") or "server"
    return short if len(short) <= _MAX_SERVER else _hashed(short, name, _MAX_SERVER)


def _hashed(short: str, name: str, limit: int) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{short[: limit - _HASH - 1].rstrip('_')}_{digest}"
