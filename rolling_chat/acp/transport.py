"""JSON-RPC messages, one per line: an invalid one is answered with an error; the connection stays open."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, BinaryIO

from rolling_chat.acp.codes import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from rolling_chat.acp.pipes import MAX_LINE, TOO_LONG, LineReader, LineWriter

_log = logging.getLogger("rolling_chat.acp")


class BadMessageError(ValueError):
    """A line that is not a valid message; `code` is its error code, and `str()` says what is wrong."""

    def __init__(self, code: int, text: str, id: int | str | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.id = id


def read_message(line: bytes) -> dict[str, Any]:
    """Return the message on a line. Raises BadMessageError for anything else."""
    if line is TOO_LONG:
        raise BadMessageError(INVALID_REQUEST, f"a message has at most {MAX_LINE:,} bytes")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadMessageError(PARSE_ERROR, f"not JSON: {type(error).__name__}") from None
    if not isinstance(message, dict):
        raise BadMessageError(INVALID_REQUEST, "a message is a JSON object")
    given = message.get("id")
    if isinstance(given, bool) or not isinstance(given, int | str | None):
        raise BadMessageError(INVALID_REQUEST, "an id is a number or a text")
    if "method" in message:
        if not isinstance(message["method"], str):
            raise BadMessageError(INVALID_REQUEST, "a method is a text", given)
        return message
    if "id" not in message:
        raise BadMessageError(INVALID_REQUEST, "neither a request nor an answer")
    return message if "result" in message else {**message, "error": _error_in(message.get("error"))}


def _error_in(error: object) -> dict[str, Any]:
    """Return the error of an answer; an invalid one is replaced, because the request is over anyway."""
    match error:
        case {"code": int(code), "message": str(text)}:
            return {"code": code, "message": text}
        case _:
            return {"code": INTERNAL_ERROR, "message": "an answer without a result"}


class StdioTransport:
    """The protocol's transport over this process's own pipes."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        loop = asyncio.get_running_loop()
        self._reader = LineReader(incoming, loop)
        self._writer = LineWriter(outgoing, loop, self._reader.end)

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message. Raises ConnectionError once the client is gone."""
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), default=str)
        # no client can read a lone surrogate
        await self._writer.write(f"{text}\n".encode("utf-8", "replace"))

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None once the client is gone."""
        while (line := await self._reader.next()) is not None:
            if not line.strip():
                continue
            try:
                return read_message(line)
            except BadMessageError as error:
                _log.warning("a message was not understood: %s", error)
                refusal = {"code": error.code, "message": f"Not understood: {error}."}
                try:
                    await self.send({"jsonrpc": "2.0", "id": error.id, "error": refusal})
                except ConnectionError:
                    return None
        return None

    def stop(self) -> None:
        """Receive nothing more, as if the client were gone."""
        self._reader.end()

    async def close(self) -> None:
        """Write the remaining messages."""
        await self._writer.close()
