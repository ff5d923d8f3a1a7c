"""Messages that the user wrote while a turn runs, until they are sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """A message to send in the running turn with the next tool results, or `after_turn`.

    The files that its text mentions with marks are attached when it is sent.
    """

    text: str
    after_turn: bool = False


class WaitingMessages:
    """The waiting messages, oldest first; `revision` grows with every change."""

    def __init__(self) -> None:
        self._messages: list[WaitingMessage] = []
        self.revision = 0

    def __iter__(self) -> Iterator[WaitingMessage]:
        return iter(tuple(self._messages))

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def next_in_turn(self) -> WaitingMessage | None:
        """The oldest message for the running turn; None if there is none."""
        return next((message for message in self._messages if not message.after_turn), None)

    def add(self, text: str, *, after_turn: bool = False) -> None:
        """Add a message to the queue."""
        self._messages.append(WaitingMessage(text, after_turn))
        self.revision += 1

    def remove(self, message: WaitingMessage) -> None:
        """Remove the oldest message that equals `message`, once it is stored."""
        self._messages.remove(message)
        self.revision += 1

    def postpone(self, message: WaitingMessage) -> None:
        """Postpone the oldest message that equals `message` to the end of the turn."""
        if message in self._messages:
            self._messages[self._messages.index(message)] = replace(message, after_turn=True)
            self.revision += 1

    def take_oldest(self) -> str:
        """Remove the oldest message and return its text."""
        return self._take(0)

    def take_newest(self) -> str:
        """Remove the newest message and return its text."""
        return self._take(-1)

    def take_all(self) -> list[str]:
        """Remove all messages and return their texts."""
        texts = [message.text for message in self._messages]
        self._messages.clear()
        self.revision += 1
        return texts

    def _take(self, index: int) -> str:
        self.revision += 1
        return self._messages.pop(index).text
