"""The files that a client has open with changes that are not saved, asked for by the protocol."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from acp import Client, RequestError

_log = logging.getLogger("rolling_chat.acp")

_SECONDS = 5.0  # a client that says nothing for so long has nothing to say
_MAX_BYTES = 10_000_000


class Buffers:
    """Reads files as a client has them, for one session."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self._session_id = session_id

    async def unsaved(self, path: Path) -> str | None:
        """Return the text of a file if the client has another than is on disk; None for any other file."""
        text = await self._text_of(path)
        if text is None or "\0" in text or len(text) > _MAX_BYTES:
            return None
        saved = await asyncio.to_thread(_saved, path)
        return None if saved is None or _alike(text) == _alike(saved) else text

    async def _text_of(self, path: Path) -> str | None:
        try:
            async with asyncio.timeout(_SECONDS):
                answer = await self._client.read_text_file(self._session_id, str(path))
        except (RequestError, TimeoutError, ValueError) as error:
            _log.info("the client does not read %s: %s", path.name, error)
            return None
        return answer.content


def _saved(path: Path) -> str | None:
    """Return what is on disk, empty where nothing is; None for what is no text that could be compared."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            return None
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError):  # no text, or no path that a file can have
        return None


def _alike(text: str) -> str:
    """Return a text without what editors may change by themselves: line ends, and a mark at the start."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").rstrip("\n")
