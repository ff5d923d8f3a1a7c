"""Decode server-sent events from bytes that arrive in arbitrary chunks."""

from __future__ import annotations

from collections.abc import Iterator


class ServerEvents:
    r"""Splits a stream of bytes into events.

    According to the HTML standard, lines end with \n, \r or \r\n, and an empty line ends an event. Only the
    `data` field is used here. Invalid UTF-8 becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def add(self, piece: bytes) -> Iterator[str]:
        """Yield the data of the events completed by `piece`."""
        lines = (self._rest + piece if self._rest else piece).splitlines(keepends=True)
        self._rest = b""
        if lines and not lines[-1].endswith(b"\n"):  # a \r may be half of a line end
            self._rest = lines.pop()
        for line in lines:
            yield from self._add_line(line.rstrip(b"\r\n"))

    def end(self) -> Iterator[str]:
        """Yield the data of an event that the end of the stream completes."""
        rest, self._rest = self._rest, b""
        if rest:
            yield from self._add_line(rest.rstrip(b"\r"))
        yield from self._add_line(b"")

    def _add_line(self, line: bytes) -> Iterator[str]:
        if not line:
            if self._data:
                yield b"\n".join(self._data).decode("utf-8", "replace")
                self._data = []
        elif line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
