"""Estimate the tokens that a draft or a streamed reply adds to the next request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from rolling_chat.context import TokenEstimator
from rolling_chat.events import CallForming, ReasoningAdded, TextAdded
from rolling_chat.messages import Attachment, Json, Message, user_message
from rolling_chat.providers import wire

_SETTLED_CHARACTERS = 2_000  # per settled part; the tail after it is recounted each time
_AT_A_TIME = 100_000  # characters counted per call, some 10 ms; the size of the rest is inferred
_ARGUMENT_CHARACTERS_PER_TOKEN = 4  # JSON has fewer, so the estimate is too low rather than too high
_CALL_FRAMING = 8
_PARTS, _PART = 8, 8_000  # the sample of a long text: the number of parts, and characters of each


class _GrowingText:
    """Counts a growing text, and its settled beginning only once."""

    __slots__ = ("_settled", "_settled_characters", "_tail")

    def __init__(self) -> None:
        self._settled = self._settled_characters = 0
        self._tail = ""

    def add(self, text: str) -> None:
        self._tail += text

    def tokens(self, count: Callable[[str], int]) -> int:
        at = 0
        while len(self._tail) - at > _SETTLED_CHARACTERS and at < _AT_A_TIME:
            # a tokenizer counts a word together with the white space before it
            head = self._tail[at : at + _SETTLED_CHARACTERS]
            cut = len(head.rsplit(maxsplit=1)[0]) if len(head.split(maxsplit=1)) > 1 else len(head)
            self._settled += count(head[:cut])
            at += cut
        self._settled_characters += at
        self._tail = self._tail[at:]
        if len(self._tail) > _SETTLED_CHARACTERS:
            return self._settled + self._settled * len(self._tail) // self._settled_characters
        return self._settled + count(self._tail) if self._tail else self._settled


@dataclass(slots=True)
class StreamedReply:
    """Estimates the tokens of the streamed reply `reply_id` from its events.

    `count` counts a text as the pipeline will, so that the size does not jump when the reply ends. `framing`
    is the number of tokens around a message. Reasoning counts if `keeps_reasoning`: if later requests
    contain it.
    """

    reply_id: str
    count: Callable[[str], int]
    framing: int
    keeps_reasoning: bool
    _text: _GrowingText = field(default_factory=_GrowingText)
    _reasoning: _GrowingText = field(default_factory=_GrowingText)
    _calls: list[tuple[str, int]] = field(default_factory=list)

    def take(self, event: ReasoningAdded | TextAdded | CallForming) -> None:
        """Add the content of an event, ignoring events of other replies."""
        if event.reply_id != self.reply_id:
            return
        match event:
            case TextAdded(_, text):
                self._text.add(text)
            case ReasoningAdded(_, text):
                if self.keeps_reasoning:
                    self._reasoning.add(text)
            case CallForming(_, name, characters):
                self._form(name, characters)

    @property
    def tokens(self) -> int:
        """The estimated tokens received so far."""
        text = self._text.tokens(self.count) + self._reasoning.tokens(self.count)
        calls = sum(
            self.count(name) + characters // _ARGUMENT_CHARACTERS_PER_TOKEN + _CALL_FRAMING
            for name, characters in self._calls
        )
        return text + calls + self.framing if text or calls else 0

    def _form(self, name: str, characters: int) -> None:
        """Note the size of a call; another name, or fewer characters, begins the next parallel call."""
        last = self._calls[-1] if self._calls else None
        if last is not None and last[0] == name and characters >= last[1]:
            self._calls[-1] = (name, characters)
        else:
            self._calls.append((name, characters))


@dataclass(frozen=True, slots=True)
class SizeEstimates:
    """Estimates how many tokens a message, draft or streamed reply adds to the next request to `model`."""

    model: str
    estimator: TokenEstimator
    pictures: bool = True

    def of(self, message: Message) -> int:
        """Return how many tokens `message` would add to the next request."""
        (seen,) = wire.for_model([message], self.model, pictures=self.pictures)
        return self.estimator.count_message(seen)

    def of_draft(self, text: str) -> int:
        """Return how many tokens sending `text` would add to the next request."""
        return self.of(Message("user", text)) if text else 0

    def about(self, text: str) -> int:
        """Return about how many tokens sending `text` would add; a long text is sampled."""
        if len(text) <= _PARTS * _PART:
            return self.of_draft(text)
        step = (len(text) - _PART) // (_PARTS - 1)
        parts = "".join(text[at : at + _PART] for at in range(0, step * _PARTS, step))
        return self.of_draft(parts) * len(text) // len(parts)

    def of_attachment(self, attachment: Attachment) -> int:
        """Return about how many tokens an attachment would add."""
        if attachment.picture:
            return self.of(user_message("", [attachment]))
        return self.about(attachment.text)

    def follow(self, reply_id: str) -> StreamedReply:
        """Return an estimator for a reply about to be streamed."""
        plain = Message("assistant", made_by=wire.made_by(self.model))
        reasoning: dict[str, Json] = {wire.REASONING: "hm", wire.THINKING_BLOCKS: [{"thinking": "hm"}]}
        framing = self.of(plain)
        keeps_reasoning = self.of(replace(plain, extras=reasoning)) > framing
        return StreamedReply(reply_id, self.estimator.count_text, framing, keeps_reasoning)
