"""The windows that model servers have reported in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial

from rolling_chat.providers.addresses import may_report_window
from rolling_chat.providers.background_thread import in_background

_log = logging.getLogger("rolling_chat.agent.server_facts")
_PATIENCE = 2.0
"""Seconds to wait for a server to describe its models."""


class ServerFacts:
    """Asks servers for the windows of their models, once for each model at an address.

    `environ` has keys and addresses. An address is in the form that sessions store: without credentials,
    empty for the provider's own.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._windows: dict[tuple[str, str], tuple[int, str]] = {}

    def window(self, model: str, address: str | None) -> int:
        """Return the window that the server reported, in tokens; 0 if it reported none or was not asked."""
        return self._windows.get((model, address or ""), (0, ""))[0]

    def source(self, model: str, address: str | None) -> str:
        """Return the source of the window; empty if there is none."""
        return self._windows.get((model, address or ""), (0, ""))[1]

    def is_due(self, model: str, address: str | None) -> bool:
        """Return whether the server can be asked and has not been."""
        return (model, address or "") not in self._windows and may_report_window(model, address or "")

    async def ask(self, model: str, address: str | None, call_address: str | None) -> None:
        """Ask the server of `model`; `call_address` is its address with credentials, if it needs any."""
        from rolling_chat.providers.served import ask_about  # noqa: PLC0415  # not before the first paint

        question = partial(ask_about, model, call_address or "", self._environ, _PATIENCE)
        try:
            answer = await asyncio.wait_for(in_background(question), _PATIENCE)
        except TimeoutError:
            answer = None
        if answer is None or not answer.window:
            _log.info("the server of %s names no window", model)
        self._windows[model, address or ""] = (answer.window, answer.source) if answer else (0, "")
