"""Token estimators, their registry by model family, and the upper bound for the hard rule.

With a memo, a text is counted once per message and encoding. The family's factor turns that raw count into
the best estimate, its prior into the bound.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol, TypeAlias

from rolling_chat.context.calibration import NOT_CALIBRATED, Calibration
from rolling_chat.context.character_classes import count_by_class
from rolling_chat.context.count_memo import CountMemo, CountText
from rolling_chat.context.encodings import ENCODINGS, count_encoded, find_encoding
from rolling_chat.context.families import UNKNOWN, Family, family_of
from rolling_chat.context.pictures import PictureTokens
from rolling_chat.context.turns import TURN
from rolling_chat.messages import (
    Json,
    JsonObject,
    Message,
    count_text_bytes,
    is_picture,
    parts_of,
    picture_address,
)
from rolling_chat.pictures import header_of

# Tokens that a template may add to a message or a call, observed in real sessions. They count only after
# replies have lowered the bound below the family's prior, which otherwise covers them.
_UNSEEN_MESSAGE, _UNSEEN_CALL = 12, 64
# Opaque to the tokenizer: billed, if at all, by a rule of the provider, never as text.
_OPAQUE_EXTRAS = frozenset({"signature", "thought_signature", "thoughtSignature", "cache_control"})


Tools: TypeAlias = Sequence[JsonObject] | str | None
"""Tool schemas, or the part of the system prompt that describes the tools instead."""


class TokenEstimator(Protocol):
    """A token counter; every result is 0 or more."""

    def count_text(self, text: str) -> int:
        """Count the tokens of a text alone."""
        ...

    def count_message(self, message: Message | JsonObject) -> int:
        """Count the tokens of one message, including framing, calls and images."""
        ...

    def count_messages(self, messages: Iterable[Message | JsonObject]) -> int:
        """Count the tokens of a list of messages, including what goes with every request."""
        ...

    def count_tools(self, tools: Sequence[JsonObject] | None) -> int:
        """Count the tokens of the tool schemas, including what the provider adds for them."""
        ...


@dataclass(frozen=True, slots=True)
class FamilyEstimator:
    """A token estimator for a model family: the raw count of a text times the family's factor.

    `name` identifies its raw counts in `memo`; without a memo nothing is cached. `raw_tool` counts tool text,
    which the `ratio` estimator treats as denser than prose. `calibration` corrects both estimate and bound by
    the model's reports. With `calls_as_json` a call costs its JSON, otherwise its name, its arguments and a
    fixed framing.
    """

    family: Family
    name: str
    raw: CountText
    raw_tool: CountText
    calibration: Calibration = NOT_CALIBRATED
    calls_as_json: bool = False
    memo: CountMemo | None = field(default=None, compare=False, repr=False)

    @property
    def prior(self) -> float:
        """The factor from a raw count to the upper bound."""
        return self.calibration.prior(self.family.factor, self.family.prior)

    def count_text(self, text: str) -> int:
        return self._corrected(math.ceil(self.raw(text) * self.family.factor))

    def count_message(self, message: Message | JsonObject) -> int:
        message = _as_message(message)
        counted = math.ceil(self.raw_message(message) * self.family.factor)
        if self.family.factor > 1.0:
            counted = min(counted, _wire_bytes(message))  # as in the bound: a token is at least a byte
        return self._corrected(counted + self._framing(message)) + self._pictures(message).estimate

    def count_messages(self, messages: Iterable[Message | JsonObject]) -> int:
        return sum(map(self.count_message, messages)) + self.family.request_extra

    def count_tools(self, tools: Sequence[JsonObject] | None) -> int:
        if not tools:
            return 0
        family, raw = self.family, self._raw_tools(tools)
        written = math.ceil(raw * (family.tools_factor or family.factor)) + family.tool_framing * len(tools)
        return self._corrected(max(0, written) + family.tools_extra)

    @property
    def bound_request(self) -> int:
        """The upper bound of what the provider adds to every request, in tokens."""
        return max(self.family.request_extra, self.family.request_extra_bound)

    def bound_text(self, text: str) -> int:
        """Return the upper bound of a text alone, in tokens."""
        counted = math.ceil(self.raw_tool(text) * self.prior)
        return min(counted, len(text.encode("utf-8", "surrogatepass")))

    def bound_part(self, text: str) -> int:
        """Return the upper bound of what `text` adds to a longer text; may exceed `bound_text`."""
        return math.ceil(self.raw_tool(text) * self.prior)

    def bound_message(self, message: Message | JsonObject) -> int:
        """Return the upper bound of `message` in tokens; its text counts at most its bytes."""
        message = _as_message(message)
        counted = math.ceil(self.raw_message(message) * self.prior)
        # if words split into more tokens than expected, so do the words of the framing
        stretch = max(1.0, self.prior / self.family.prior)
        framing = math.ceil(self._framing(message) * stretch)
        if self.calibration.replies:
            framing += _UNSEEN_MESSAGE + _UNSEEN_CALL * len(message.tool_calls)
        return min(counted, _wire_bytes(message)) + framing + self._pictures(message).bound

    def bound_tools(self, tools: Tools) -> int:
        """Return the upper bound of the tool schemas, including what the provider adds for them."""
        if not tools:
            return 0
        if isinstance(tools, str):
            return math.ceil(self._raw_tool_text(tools) * self.prior)
        return math.ceil(self._raw_tools(tools) * self.prior) + self.family.tools_extra_bound

    def raw_message(self, message: Message) -> int:
        """Return the raw count of the message's text; cache it in the memo, if any."""
        known = self.memo.find(message, self.name) if self.memo is not None else None
        if known is not None:
            return known
        # a shortened result is a new object in every prompt, but its text is the same and may be cached
        count = self._raw_tool_text if message.role == "tool" else self.raw
        calls = _call_json(message) if self.calls_as_json else _call_texts(message)
        tokens = sum(map(count, _texts(message))) + sum(map(self.raw_tool, calls))
        if self.memo is not None:
            self.memo.add(message, self.name, tokens)
        return tokens

    def _raw_tool_text(self, text: str) -> int:
        return self.raw_tool(text) if self.memo is None else self.memo.count_text(text, self.raw_tool)

    def _raw_tools(self, tools: Sequence[JsonObject]) -> int:
        # the same schemas are sent with every request of a session
        return self._raw_tool_text(_compact(list(tools)))

    def _corrected(self, tokens: int) -> int:
        return math.ceil(tokens * self.calibration.estimate)

    def _framing(self, message: Message) -> int:
        framed = 0 if self.calls_as_json else len(message.tool_calls)
        return self.family.framing + self.family.call_framing * framed

    def _pictures(self, message: Message) -> PictureTokens:
        counts = [self._picture(part) for part in parts_of(message) if is_picture(part)]
        return PictureTokens(sum(one.estimate for one in counts), sum(one.bound for one in counts))

    def _picture(self, part: JsonObject) -> PictureTokens:
        """Count a picture by the size in its header, or by the family's ceiling if there is none."""
        header = header_of(picture_address(part))
        if header is None or not header.width or not header.height:
            return PictureTokens(self.family.image, self.family.image)
        return self.family.picture(header.width, header.height)


_registered: dict[str, TokenEstimator] = {}


def register_estimator(family: str, estimator: TokenEstimator) -> None:
    """Use `estimator` for every model whose lower-cased name contains `family`.

    It affects the gauge and the decisions. The hard rule keeps its own bound, which caps every count.
    Existing counts are not cleared: register before the first prompt.
    """
    _registered[family.lower()] = estimator


def estimator_for(
    model: str | None,
    choice: str = "auto",
    calibration: Calibration | None = None,
    memo: CountMemo | None = None,
) -> TokenEstimator:
    """Return the estimator for `model`, or the one named by `choice`.

    `choice` is `auto`, `ratio` (3.5 characters a token; 3.0 in results, schemas and the JSON of calls),
    `chars` (4), `bytes` (4) or an encoding's name. Raises ValueError for any other. `calibration` corrects
    `auto` only, not a registered or named estimator. Counts of messages are cached in `memo`.
    """
    if choice == "auto":
        name = (model or "").lower()
        for family, estimator in _registered.items():
            if family in name:
                return estimator
        return bounding_estimator(model, calibration, memo)
    return _with_memo(_named_estimator(choice), memo)


def bounding_estimator(
    model: str | None, calibration: Calibration | None = None, memo: CountMemo | None = None
) -> FamilyEstimator:
    """Return the estimator of upper bounds for `model`; its bounds decide whether a request is sent."""
    plain = _family_estimator(family_of(model))
    return _with_memo(plain if calibration is None else _calibrated(plain, calibration), memo)


def count_tokens(text: str, model: str | None = None) -> int:
    """Estimate the tokens of `text` for `model`; without a model, as for an unknown one."""
    return estimator_for(model).count_text(text)


def estimate_tokens(
    messages: Sequence[Message | JsonObject],
    model: str | None = None,
    tools: Sequence[JsonObject] | None = None,
    *,
    estimator: TokenEstimator | str = "auto",
    memo: CountMemo | None = None,
) -> int:
    """Estimate the tokens of a whole request: messages, tool schemas, framing.

    `estimator` is an object, or a name as for `ContextConfig.token_estimator`. Raises ValueError for an
    unknown name.
    """
    counting = estimator_for(model, estimator, memo=memo) if isinstance(estimator, str) else estimator
    return counting.count_messages(messages) + counting.count_tools(tools)


def count_tools(estimator: TokenEstimator, tools: Tools) -> int:
    """Count the tokens of tools, given as schemas or as a part of the system prompt."""
    return estimator.count_text(tools) if isinstance(tools, str) else estimator.count_tools(tools)


def prompt_bound(
    messages: Sequence[Message | JsonObject],
    *,
    tools: Tools = None,
    model: str | None = None,
    calibration: Calibration | None = None,
    memo: CountMemo | None = None,
) -> int:
    """Return the upper bound of a request in tokens; it must fit the context window."""
    estimator = bounding_estimator(model, calibration, memo)
    return sum(map(estimator.bound_message, messages), estimator.bound_request) + estimator.bound_tools(tools)


def _with_memo(estimator: FamilyEstimator, memo: CountMemo | None) -> FamilyEstimator:
    return estimator if memo is None else replace(estimator, memo=memo)


@lru_cache(maxsize=64)
def _calibrated(plain: FamilyEstimator, calibration: Calibration) -> FamilyEstimator:
    # the same object each time, because it is part of the cache key of cut texts
    return replace(plain, calibration=calibration)


@lru_cache(maxsize=64)
def _family_estimator(family: Family) -> FamilyEstimator:
    encoding = find_encoding(family.encoding) if family.encoding else None
    if encoding is None:
        # without the encoding's file there is no exact count: the count by class is its own bound
        careful = (
            family
            if family.name == UNKNOWN.name
            else replace(
                family,
                encoding="",
                factor=1.0,
                prior=1.0,
                framing=max(family.framing, UNKNOWN.framing),
                tools_factor=0.0,
                tool_framing=0,
                tools_extra=family.tools_extra_bound,
            )
        )
        return FamilyEstimator(careful, "class", count_by_class, count_by_class)

    def count(text: str) -> int:
        return count_encoded(encoding, text)

    return FamilyEstimator(family, family.encoding, count, count)


@lru_cache(maxsize=64)
def _named_estimator(choice: str) -> FamilyEstimator:
    plain = Family(choice, framing=4)
    match choice:
        case "ratio":
            # counts stored under the old name left out the JSON around a call's arguments
            name = "ratio:json"
            return FamilyEstimator(plain, name, _per_char(3.5), _per_char(3.0), calls_as_json=True)
        case "chars":
            return FamilyEstimator(plain, choice, _per_char(4), _per_char(4))
        case "bytes":
            return FamilyEstimator(plain, choice, _per_byte, _per_byte)
        case _ if choice in ENCODINGS:
            return _family_estimator(Family(choice, choice))
        case _:
            allowed = ", ".join(("auto", "ratio", "chars", "bytes", *ENCODINGS))
            raise ValueError(f"token_estimator must be one of {allowed}, not {choice!r}")


def _per_char(ratio: float) -> CountText:
    return lambda text: math.ceil(len(text) / ratio)


def _per_byte(text: str) -> int:
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / 4)


def _as_message(message: Message | JsonObject) -> Message:
    return message if isinstance(message, Message) else Message.from_dict(message)


def _texts(message: Message) -> Iterable[str]:
    if isinstance(message.content, str):
        yield message.content
    yield from _other_texts(message)


def _other_texts(message: Message) -> Iterable[str]:
    """Yield the texts of a message, except its content if that is a text."""
    for part in parts_of(message):
        yield from _part_texts(part)
    if message.name:
        yield message.name
    if message.extras:
        yield from _extra_texts({key: value for key, value in message.extras.items() if key != TURN})


def _part_texts(part: JsonObject) -> Iterable[str]:
    if is_picture(part):
        return
    text = part.get("text")
    rest = {key: value for key, value in part.items() if key not in _OPAQUE_EXTRAS and key != "type"}
    if isinstance(text, str) and (part.get("type") == "text" or len(rest) == 1):
        yield text
    elif rest:
        yield _compact(rest)


def _extra_texts(value: Json) -> Iterable[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for key, inner in value.items():
                if key not in _OPAQUE_EXTRAS:
                    yield from _extra_texts(inner)
        case list() | tuple():
            for inner in value:
                yield from _extra_texts(inner)


def _call_texts(message: Message) -> Iterable[str]:
    for call in message.tool_calls:
        yield call.name
        yield call.arguments


def _call_json(message: Message) -> Iterable[str]:
    return map(_compact, message.to_dict(with_extras=False).get("tool_calls", ()))


def count_images(message: Message) -> int:
    """Return the number of images in a message."""
    return sum(map(is_picture, parts_of(message)))


def _wire_bytes(message: Message) -> int:
    texts = (*_other_texts(message), *_call_texts(message))
    return count_text_bytes(message) + sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
