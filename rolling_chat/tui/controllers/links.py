"""A link is opened only when the person says so, and only where it leads to a page or a letter."""

from __future__ import annotations

import re
from typing import Any, Protocol

from textual.app import App

from rolling_chat.programs import trusted_path
from rolling_chat.text import exact
from rolling_chat.tui.dialogs.confirm_screen import ConfirmScreen

_OPENED = re.compile(r"(?:https?://|mailto:)\S+", re.IGNORECASE)


class LinkStage(Protocol):
    """What a link needs of the screen."""

    @property
    def app(self) -> App[Any]:
        """What asks, and opens."""
        ...

    def copy(self, text: str) -> bool:
        """Put `text` on the clipboard; whether it is there."""
        ...


def may_be_opened(address: str) -> bool:
    """May a browser be given this address? Only http, https and mailto, and no blanks or controls in it."""
    return _OPENED.fullmatch(address) is not None and exact(address) == address


async def ask_and_open(stage: LinkStage, address: str) -> None:
    """Show the whole address; open it, or where no browser may have it copy it, if the person says so."""
    opens = may_be_opened(address)
    question = (
        "The address of the link:" if opens else "No browser is given such an address; it can be copied:"
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
