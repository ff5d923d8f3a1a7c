"""What the servers of models have said of them in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial

from rolling_chat.providers.addresses import names_windows
from rolling_chat.providers.background_thread import in_background

_log = logging.getLogger("rolling_chat.agent.server_facts")
_PATIENCE = 2.0
"""Seconds that anybody waits for a server to say what it serves."""


class ServerFacts:
    """Ask servers for the windows of their models, each model at an address once.

    `environ` is where keys and addresses are looked for. An address is as sessions keep it: without
    credentials, empty for the provider's own.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._windows: dict[tuple[str, str], tuple[int, str]] = {}

    def window(self, model: str, address: str | None) -> int:
        """Return the window that the server named, in tokens; 0 if it named none, or was not asked yet."""
        return self._windows.get((model, address or ""), (0, ""))[0]

    def source(self, model: str, address: str | None) -> str:
        """Return what named the window; empty if nothing did."""
        return self._windows.get((model, address or ""), (0, ""))[1]

    def is_due(self, model: str, address: str | None) -> bool:
        """Return whether the server can be asked, and was not."""
        return (model, address or "") not in self._windows and names_windows(model, address or "")

    async def ask(self, model: str, address: str | None, call_address: str | None) -> None:
        """Ask the server of `model`; `call_address` is its address with credentials, if it needs any."""
        from rolling_chat.providers.served import ask_about  # noqa: PLC0415  # not before the first paint

        question = partial(ask_about, model, call_address or "", self._environ, _PATIENCE)
        try:
            said = await asyncio.wait_for(in_background(question), _PATIENCE)
        except TimeoutError:
            said = None
        if said is None or not said.window:
            _log.info("the server of %s names no window", model)
        self._windows[model, address or ""] = (said.window, said.source) if said is not None else (0, "")
