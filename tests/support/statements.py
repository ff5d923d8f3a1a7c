"""The statements that a server was sent, by its own log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tests.support.postgres import Server

_SAID = re.compile(r"^.*? LOG:  (?:execute [^:]*|statement): ", re.MULTILINE)
_NEXT = re.compile(r"^\d{4}-\d\d-\d\d ", re.MULTILINE)
_CALL = re.compile(r"SELECT (?:[\w, ]* FROM )?(\w+)\(")
_INNERMOST = re.compile(r"\([^()]*\)")
_TABLE = re.compile(r"(?:FROM|INTO|UPDATE) (\w+)\b")


def with_statements_logged(server: Server) -> Server:
    """Have a server log what it is sent."""
    return replace(server, settings=(*server.settings, ("log_statement", "all")))


class StatementLog:
    """Reads the log of a server from where it was read last."""

    def __init__(self, server: Server) -> None:
        self._path = server.folder / "log"
        self._read = 0

    def news(self) -> list[str]:
        """Return the statements that were logged since this was last asked, each in one line."""
        text = self._path.read_bytes()[self._read :]
        self._read += len(text)
        log = text.decode(errors="replace")
        found = []
        for said in _SAID.finditer(log):
            after = _NEXT.search(log, said.end())
            found.append(" ".join(log[said.end() : after.start() if after else len(log)].split()))
        return found


def named(statement: str) -> str:
    """Return a short name of a statement: the function that it calls, or what it does to which table."""
    if call := _CALL.match(statement):
        return call.group(1)
    outermost, inner = statement, ""
    while outermost != inner:  # without what stands in parentheses
        outermost, inner = _INNERMOST.sub("", outermost), outermost
    table = _TABLE.search(outermost)
    return f"{statement.split(maxsplit=1)[0].lower()} {table.group(1) if table else ''}".strip()


def counted(statements: Sequence[str]) -> list[tuple[str, int]]:
    """Return the names of statements and how often each was sent, the most frequent first."""
    return Counter(map(named, statements)).most_common()
