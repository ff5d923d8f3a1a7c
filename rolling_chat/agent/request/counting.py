"""The token counts of a session's messages: our own raw counts, and the sizes that models reported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from rolling_chat.context import Calibration, CountMemo
from rolling_chat.context.measured_sizes import (
    Confirmed,
    MeasuredSizes,
    SizeKey,
    TokensByKey,
    characters_of,
    reply_size,
)
from rolling_chat.context.prompt_items import PromptItem
from rolling_chat.context.tokens import bounding_estimator
from rolling_chat.messages import Ending, Message, Usage
from rolling_chat.partly_read import read_parts
from rolling_chat.providers import wire
from rolling_chat.providers.background_thread import in_background
from rolling_chat.sessions.records import Counts

_LONG = 50_000  # characters; counting them takes some 5 ms, or ten times that for dense text
_NEWEST = 16  # the newest messages, of which some may not have been counted yet

# Prefixes of the names under which a message's counts store the sizes that a model reported:
# `=812=model`: the tokens of the 812 characters that were sent of the message; `=model` if all of it was sent
# `+812=model`: the tokens of the 812 characters, reported when the model wrote them
# `@340=model`: the tokens of system message and tools in the request that ended with the message, whose plain
#   estimate was 340
_MEASURED, _REPLY, _FIXED = "=", "+", "@"


@dataclass(slots=True)
class _Reported:
    """The sizes that one model reported, by message id."""

    sizes: defaultdict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    replies: dict[str, tuple[int, int]] = field(default_factory=dict)  # characters and tokens
    fixed: dict[str, tuple[int, int]] = field(default_factory=dict)  # estimate and tokens

    def load(self, message: Message, sign: str, number: int | None, tokens: int) -> None:
        match sign, number:
            case "=", _:
                characters = characters_of(message) if number is None else number
                self.sizes[message.id][characters] = tokens
            case "+", int():
                self.replies[message.id] = (number, tokens)
            case "@", int():
                self.fixed[message.id] = (number, tokens)

    def stored(self, message_id: str, model: str) -> Iterator[tuple[str, int]]:
        for characters, tokens in self.sizes.get(message_id, {}).items():
            yield f"{_MEASURED}{characters}={model}", tokens
        for sign, known in ((_REPLY, self.replies), (_FIXED, self.fixed)):
            if message_id in known:
                number, tokens = known[message_id]
                yield f"{sign}{number}={model}", tokens


class SessionCounts:
    """The counts of one session's messages: raw counts in `memo`, and the sizes that models reported.

    Both are read from the store with the messages, and new ones are saved there. Thread-safe.
    """

    def __init__(self) -> None:
        self.memo = CountMemo()
        self._reported: defaultdict[str, _Reported] = defaultdict(_Reported)  # by model
        self._unsaved: dict[str, Message] = {}  # by id
        self._being_saved: dict[str, Message] = {}  # by id

    def load(self, messages: Sequence[Message], stored: Counts) -> None:
        """Load the stored counts of messages that were just read."""
        for message in messages:
            raw = dict(stored.get(message.id, {}))
            for name in [name for name in raw if name.startswith((_MEASURED, _REPLY, _FIXED))]:
                number, is_numbered, model = name[1:].partition("=")
                if is_numbered and number.isdecimal():
                    self._reported[model].load(message, name[0], int(number), raw.pop(name))
                else:
                    self._reported[name[1:]].load(message, name[0], None, raw.pop(name))
            self.memo.load(message, raw)

    def take_unsaved(self, messages: Sequence[Message]) -> Counts:
        """Return all counts of those messages that have new ones, and assume that they will be saved.

        `messages` is the branch, in which the memo searches for new counts.
        """
        unsaved, self._unsaved = self._unsaved, {}
        unsaved |= {message.id: message for message in self.memo.take_new(messages)}
        self._being_saved = unsaved
        return {message.id: self._counts_of(message) for message in unsaved.values()}

    def put_back(self) -> None:
        """Mark the counts that were taken last as unsaved again, because they could not be stored."""
        self._unsaved = self._being_saved | self._unsaved

    def known_tokens(self, message: Message) -> int:
        """Return the largest count or measured size of `message`, in tokens; 0 if it has none."""
        measured = [one.sizes.get(message.id, {}).values() for one in tuple(self._reported.values())]
        return max(chain(self.memo.counts_of(message).values(), *measured), default=0)

    def uncounted(self, messages: Sequence[Message]) -> list[Message]:
        """Return the long messages among the newest that have never been counted."""
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
        """Return the sizes that `model` reported for the messages of a prompt, the system message first."""
        reported = self._reported.get(model)
        if reported is None:
            return MeasuredSizes(model)
        sizes, replies = dict[SizeKey, int](), dict[SizeKey, int]()
        for index, given in read_parts(branch):
            for characters, tokens in reported.sizes.get(given.id, {}).items():
                sizes[index + 1, characters] = tokens
            characters, tokens = reported.replies.get(given.id, (0, 0))
            if tokens and characters == characters_of(planned[index + 1]):
                replies[index + 1, characters] = tokens
        return MeasuredSizes(model).add(sizes).add_replies(replies)

    def confirmed(self, branch: Sequence[Message], measured: MeasuredSizes) -> Confirmed | None:
        """Return the newest count of a beginning of `branch` by the model of `measured`; None if none."""
        reported = self._reported.get(measured.model)
        if reported is None or not reported.fixed:
            return None
        for head in range(len(branch), 0, -1):
            if (known := reported.fixed.get(branch[head - 1].id)) is not None:
                estimate, fixed = known
                newest = {index: tokens for (index, _), tokens in measured.sizes.items() if index <= head}
                return Confirmed(measured.model, fixed + sum(newest.values()), fixed, estimate)
        return None

    def measure(
        self,
        branch: Sequence[Message],
        sizes: TokensByKey,
        model: str,
        confirmed: Confirmed | None = None,
        end: int | None = None,
    ) -> None:
        """Add sizes that `model` reported of the messages of `branch` before `end`, whose first has index 1.

        `confirmed` is its count of the prompt that ended with the last of them.
        """
        reported, end = self._reported[model], len(branch) if end is None else end
        for (index, characters), tokens in sizes.items():
            if 0 < index <= end:
                message = branch[index - 1]
                reported.sizes[message.id][characters] = tokens
                self._unsaved[message.id] = message
        if confirmed is not None and end:
            last = branch[end - 1]
            reported.fixed[last.id] = (confirmed.estimate, confirmed.fixed)
            self._unsaved[last.id] = last

    def forget(self, branch: Sequence[Message], model: str) -> None:
        """Forget what `model` reported of messages, those of `branch` in the store as well."""
        forgotten = self._reported.pop(model, _Reported())
        known = {*forgotten.sizes, *forgotten.replies, *forgotten.fixed}
        self._unsaved |= {message.id: message for message in branch if message.id in known}

    def measure_reply(
        self, reply: Message, usage: Usage, seen: Message, model: str, calibration: Calibration
    ) -> int | None:
        """Add the size of a reply that `model` has just written; return it, or None if usage lacks it.

        `seen` is the reply as the model will see it.
        """
        estimator = bounding_estimator(model, calibration, self.memo)
        size = reply_size(seen, _written(reply, usage, seen), estimator)
        if size is not None:
            self._reported[model].replies[reply.id] = (characters_of(seen), size)
            self._unsaved[reply.id] = reply
        return size

    def _counts_of(self, message: Message) -> dict[str, int]:
        counts = self.memo.counts_of(message)
        for model, reported in tuple(self._reported.items()):
            counts.update(reported.stored(message.id, model))
        return counts


def _written(reply: Message, usage: Usage, seen: Message) -> int:
    """Return the output tokens of a reply that later requests contain; 0 if unknown."""
    extras, kept = reply.extras or {}, seen.extras or {}
    if reply.ending is not Ending.COMPLETE and (reply.ending is not Ending.LENGTH or reply.tool_calls):
        return 0
    if wire.THINKING_BLOCKS in extras:
        return 0  # providers keep as many of these blocks as they like, and report an estimate
    if kept.get(wire.REASONING):
        return usage.output_tokens
    if extras.get(wire.REASONING) and not usage.reasoning_tokens:
        return 0
    return usage.output_tokens - usage.reasoning_tokens


def new_sizes(sent: Iterable[PromptItem], before: MeasuredSizes, after: MeasuredSizes) -> dict[SizeKey, int]:
    """Return the newly measured sizes of the sent items, by index in the prompt and characters sent."""
    found = dict[SizeKey, int]()
    for item in sent:
        key = (item.index, characters_of(item.message))
        tokens = after.sizes.get(key)
        if tokens is not None and tokens != before.sizes.get(key):
            found[key] = tokens
    return found
