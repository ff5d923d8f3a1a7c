"""Open links only after the user confirms, and only to web pages and email addresses."""

from __future__ import annotations

import re
from typing import Any, Protocol

from textual.app import App

from rolling_chat.programs import trusted_path
from rolling_chat.text import exact
from rolling_chat.tui.dialogs.confirm_screen import ConfirmScreen

_OPENED = re.compile(r"(?:https?://|mailto:)\S+", re.IGNORECASE)


class LinkStage(Protocol):
    """The part of the screen that opening a link uses."""

    @property
    def app(self) -> App[Any]:
        """The app, which asks the user and opens the address."""
        ...

    def copy(self, text: str) -> bool:
        """Copy `text` to the clipboard; return whether it got there."""
        ...


def may_be_opened(address: str) -> bool:
    """Return whether a browser may open an address: http, https or mailto, without blanks or controls."""
    return _OPENED.fullmatch(address) is not None and exact(address) == address


async def ask_and_open(stage: LinkStage, address: str) -> None:
    """Ask the user, showing the whole address; then open it, or copy it if it must not be opened."""
    opens = may_be_opened(address)
    question = (
        "The address of the link:"
        if opens
        else "Such an address is never opened in a browser; you can copy it:"
    )
    answer = "open it" if opens else "copy it"
    title = "Open a link" if opens else "Copy a link"
    if not await stage.app.push_screen_wait(ConfirmScreen(title, question, exact(address), answer)):
        return
    if opens:
        with trusted_path():
            stage.app.open_url(address)
    else:
        stage.copy(address)
