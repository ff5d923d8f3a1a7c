"""Files that a client has open with unsaved changes, read through the protocol."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from acp import Client, RequestError

_log = logging.getLogger("rolling_chat.acp")

_SECONDS = 5.0  # after this time without an answer, the file counts as saved
_MAX_BYTES = 10_000_000


class Buffers:
    """A reader of a client's versions of files, for one session."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self._session_id = session_id

    async def unsaved(self, path: Path) -> str | None:
        """Return the client's text of a file if it differs from the one on disk; None for any other file."""
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
    """Return the text on disk, empty for a missing file; None if it is no text or too large to compare."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            return None
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError):  # not text, or not a possible path
        return None


def _alike(text: str) -> str:
    """Return a text without parts that editors change by themselves: line ends and a byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").rstrip("\n")
