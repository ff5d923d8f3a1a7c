"""Repair a broken transcript so that every provider accepts it.

The result is an order that OpenAI, Anthropic, Gemini and Mistral accept: it begins with a user message, every
call is answered, no result is without a call, an answer separates two requests, and no content is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from rolling_chat.context.call_arguments import is_signed
from rolling_chat.context.turns import is_same_turn
from rolling_chat.messages import Content, Message, ToolCall, is_spoken

# Placeholders for messages that the transcript never recorded.
MISSING_RESULT = "[no result was recorded]"
MISSING_REPLY = "[no reply was recorded]"
MISSING_REQUEST = "[the conversation begins here]"
CONTINUATION = "[goes on]"
# The answer to a request whose real answers were omitted.
REPLY_OMITTED = "[the reply is no longer in this prompt]"
EMPTY_CONTENT = "[empty message]"
ANSWERS_NO_CALL = "a result that answers no call"
NO_ID = "an id that is empty or repeated"
ODD_FIELD = "a field of the wrong type"


@dataclass(frozen=True, slots=True)
class NormalizedMessage:
    """A message after repair, in a form and position that providers accept.

    `index` is its position in the given messages, -1 if it was invented. `repair` says what was repaired, or
    is empty. `is_unsendable` marks a message that no prompt can carry, `excluded` a result that the user
    emptied. `tool` is the tool that produced the result.
    """

    index: int
    message: Message
    repair: str = ""
    is_unsendable: bool = False
    opens_turn: bool = False
    tool: str = ""
    excluded: bool = False


def repair_messages(messages: Sequence[Message], first_index: int = 0) -> list[NormalizedMessage]:
    """Repair a whole conversation; every given message has exactly one normalized message."""
    repairer = Repairer()
    return [*repairer.walk(messages, first_index), *repairer.finish()]


class Repairer:
    """Repairs a conversation incrementally, as it grows.

    Invented messages are inserted where needed: a result for a call without one, a reply between two
    requests, a request before a first answer. Later system messages and unknown roles become user messages.
    Calls of one message that share an id, or have none, are told apart by their order.
    """

    def __init__(
        self,
        before: str = "",
        open_calls: Sequence[tuple[str, ToolCall]] = (),
        skipped: bool = False,
        last: int = -1,
    ) -> None:
        """`open_calls` are unanswered calls with their original ids; `last` is the last index read."""
        self._before = before
        self._open = list(open_calls)
        self._skipped = skipped
        self.last = last

    def copy(self) -> Repairer:
        """Return a copy, so that a conversation can be continued in two ways."""
        return Repairer(self._before, self._open, self._skipped, self.last)

    def walk(
        self, messages: Sequence[Message], first_index: int, without: Set[int] = frozenset()
    ) -> Iterator[NormalizedMessage]:
        """Normalize the next messages, except those at the indexes in `without`."""
        for index, message in enumerate(messages, first_index):
            if index in without:
                self._skipped = True
                continue
            if message.role == "tool":
                normalized = self._result(index, message)
                self.last = self.last if normalized.is_unsendable else index
                yield normalized
                continue
            yield from self.close()
            if message.role == "assistant":
                yield from self._answer(index, message)
            else:
                yield from self._request(index, message)
            self.last = index

    def finish(self) -> Iterator[NormalizedMessage]:
        """Yield messages that close the conversation: results for open calls, a request if there is none."""
        yield from self.close()
        if not self._before:
            yield NormalizedMessage(-1, Message("user", MISSING_REQUEST), opens_turn=True)

    def close(self) -> Iterator[NormalizedMessage]:
        """Yield placeholder results for unanswered calls."""
        for _original, call in self._open:
            self._before = "tool"
            yield NormalizedMessage(-1, Message("tool", MISSING_RESULT, tool_call_id=call.id))
        self._open = []

    def _result(self, index: int, message: Message) -> NormalizedMessage:
        wanted = message.tool_call_id
        # results without a call id are matched in the order of the calls
        position = next(
            (position for position, (given, _call) in enumerate(self._open) if not wanted or given == wanted),
            -1,
        )
        if position < 0:
            return NormalizedMessage(index, message, ANSWERS_NO_CALL, is_unsendable=True)
        self._before = "tool"
        _original, call = self._open.pop(position)
        if call.id == wanted:
            return replace(_without_empty_content(index, message), tool=call.name)
        normalized = _without_empty_content(index, replace(message, tool_call_id=call.id))
        return replace(normalized, repair=normalized.repair or NO_ID, tool=call.name)

    def _answer(self, index: int, message: Message) -> Iterator[NormalizedMessage]:
        if not self._before:
            yield NormalizedMessage(-1, Message("user", MISSING_REQUEST), opens_turn=True)
        elif self._before == "assistant":
            yield NormalizedMessage(-1, Message("user", CONTINUATION))
        calls = _with_unique_ids(index, message.tool_calls)
        self._open = [(given.id, call) for given, call in zip(message.tool_calls, calls, strict=True)]
        repair = "" if self._before else "an answer before any request"
        self._before = "assistant"
        if calls != message.tool_calls:
            repair = repair or NO_ID
            message = replace(message, tool_calls=calls)
        normalized = _without_empty_content(index, message)
        yield replace(normalized, repair=repair) if repair and not normalized.repair else normalized

    def _request(self, index: int, message: Message) -> Iterator[NormalizedMessage]:
        # the first message of a branch opens a turn, even if it is marked as sent into one
        same = is_same_turn(message) and bool(self._before)
        if self._before in {"user", "tool"} and not same:
            yield NormalizedMessage(
                -1, Message("assistant", REPLY_OMITTED if self._skipped else MISSING_REPLY)
            )
        is_users = message.role == "user"
        if not is_users:
            repair = (
                f"a {message.role} message where none is allowed"
                if message.role
                else "a message without a role"
            )
            message = replace(message, role="user", tool_calls=())
        self._before, self._skipped = "user", False
        normalized = replace(_without_empty_content(index, message), opens_turn=not same)
        yield normalized if is_users else replace(normalized, repair=repair)


def _with_unique_ids(index: int, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Return `calls` with new ids for those whose id is missing or repeated."""
    if len({call.id for call in calls} - {""}) == len(calls):
        return calls
    own: dict[str, ToolCall] = {}
    for position, call in enumerate(calls):
        is_own = call.id and call.id not in own
        call_id = call.id if is_own else f"call_{index}_{position}"
        own[call_id] = call if is_own else replace(call, id=call_id)
    return tuple(own.values())


def _without_empty_content(index: int, message: Message) -> NormalizedMessage:
    """Normalize a message; fill empty content that providers would refuse.

    White space counts as empty, except in a result or beside signed reasoning.
    """
    if is_spoken(message):
        return NormalizedMessage(index, message)
    given = message.content
    content = without_blank_text(message, given)
    if content is given:
        return NormalizedMessage(index, message)
    if not content and not message.tool_calls:
        content = EMPTY_CONTENT
    return NormalizedMessage(index, replace(message, content=content), "empty content")


def without_blank_text(message: Message, content: Content) -> Content:
    """Return `content` without blank texts; the same object if there are none."""
    if isinstance(content, str):
        is_said = bool(content.strip()) or (bool(content) and message.role == "tool")
        if is_said or (message.tool_calls and (not content or is_signed(message))):
            return content
        # an empty text that must be filled has to differ from the given object
        return () if not content else ""
    parts = tuple(
        part for part in content if part.get("type") != "text" or str(part.get("text") or "").strip()
    )
    return content if parts and len(parts) == len(content) else parts or ""
