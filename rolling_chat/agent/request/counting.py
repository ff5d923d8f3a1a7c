"""The token counts that a session keeps: raw ones of each message, and the sizes that models reported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from rolling_chat.context import CountMemo
from rolling_chat.context.prompt_items import MeasuredSizes, Size, characters_of
from rolling_chat.context.tokens import bounding_estimator
from rolling_chat.messages import Message
from rolling_chat.providers.background_thread import in_background
from rolling_chat.sessions.records import Counts

_LONG = 50_000  # characters: counted in some 5 ms, dense text in ten times that
_NEWEST = 16  # messages among which there may be one that nobody counted
_MEASURED = "="  # what the name of a model begins with where its sizes are stored among the raw counts


class SessionCounts:
    """The counts of one session's messages: `memo` has the raw ones; sizes that a model reported are by id.

    Both are read from the store with the messages, and saved there when they are new. Safe for threads.
    """

    def __init__(self) -> None:
        self.memo = CountMemo()
        self._measured: defaultdict[str, dict[str, int]] = defaultdict(dict)  # by model and by message id
        self._unsaved: set[str] = set()

    def load(self, messages: Sequence[Message], stored: Counts) -> None:
        """Take in the stored counts of messages that were just read."""
        for message in messages:
            raw = dict(stored.get(message.id, {}))
            for name in [name for name in raw if name.startswith(_MEASURED)]:
                self._measured[name.removeprefix(_MEASURED)][message.id] = raw.pop(name)
            self.memo.load(message, raw)

    def take_unsaved(self, messages: Sequence[Message]) -> Counts:
        """Return all counts of those of `messages` that have new ones; they are taken to be saved now."""
        ids, self._unsaved = self._unsaved, set()
        ids |= {message.id for message in self.memo.take_new(messages)}
        if not ids:
            return {}
        return {message.id: self._counts_of(message) for message in messages if message.id in ids}

    def put_back(self, ids: Collection[str]) -> None:
        """Take the counts of messages for unsaved again: they could not be stored."""
        self._unsaved |= set(ids)

    def known_tokens(self, message: Message) -> int:
        """Return the most tokens that were counted or measured of `message`, 0 if none were."""
        return max(self._counts_of(message).values(), default=0)

    def uncounted(self, messages: Sequence[Message]) -> list[Message]:
        """Return the long messages among the newest that were never counted."""
        recent = (message for message in messages[-_NEWEST:] if len(message.text) > _LONG)
        return [message for message in recent if not self.memo.counts_of(message)]

    async def count_long(self, messages: Sequence[Message], model: str) -> None:
        """Count the tokens of long recent messages for `model` in the background."""
        estimator = bounding_estimator(model, memo=self.memo)
        for message in self.uncounted(messages):
            await in_background(partial(estimator.raw_message, message))

    def measured_sizes(
        self, planned: Sequence[Message], branch: Sequence[Message], model: str
    ) -> MeasuredSizes:
        """Return what `model` measured of the messages of a prompt, the system message first.

        A message of `branch` that is not planned as it is has no known size.
        """
        tokens = self._measured.get(model)
        if not tokens:
            return MeasuredSizes(model)
        pairs = enumerate(zip(planned[1:], branch, strict=True), 1)
        return MeasuredSizes(model).add(
            {
                index: Size(tokens[message.id], characters_of(message))
                for index, (message, given) in pairs
                if message is given and message.id in tokens
            }
        )

    def measure(self, branch: Sequence[Message], sizes: Mapping[int, int], model: str) -> None:
        """Add sizes that `model` measured of the messages of `branch`, whose first has index 1."""
        for index, tokens in sizes.items():
            if 0 < index <= len(branch):
                message_id = branch[index - 1].id
                self._measured[model][message_id] = tokens
                self._unsaved.add(message_id)

    def _counts_of(self, message: Message) -> dict[str, int]:
        measured = tuple(self._measured.items())
        return self.memo.counts_of(message) | {
            f"{_MEASURED}{model}": tokens[message.id] for model, tokens in measured if message.id in tokens
        }


def new_sizes(before: MeasuredSizes, after: MeasuredSizes) -> dict[int, int]:
    """Return the tokens newly measured by a reply, by index in the prompt."""
    return {index: size.tokens for index, size in after.sizes.items() if size is not before.sizes.get(index)}
