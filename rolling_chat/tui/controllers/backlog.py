"""What is read of a long conversation after its newest part: shown above it, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from rolling_chat.agent import ChatError

if TYPE_CHECKING:
    from rolling_chat.agent import Chat
    from rolling_chat.messages import Message
    from rolling_chat.tui.state import ScreenState


class Shows(Protocol):
    """What the backlog needs of the screen."""

    def refresh_report(self) -> None:
        """The branch is whole: show its report and its marks."""
        ...


class Backlog:
    """Brings in the older messages of the open session while keys are answered."""

    def __init__(self, chat: Chat, state: ScreenState, screen: Shows) -> None:
        self._chat = chat
        self._state = state
        self._screen = screen
        chat.on_older = self._put_above

    async def catch_up(self) -> None:
        """Read what is above, make the report of the next request, show both; a fault is one line."""
        try:
            await self._chat.warm_report()
        except ChatError as error:
            self._state.notice(str(error), warning=True)
        self._screen.refresh_report()

    def _put_above(self, older: Sequence[Message]) -> None:
        self._state.prepend(older)
