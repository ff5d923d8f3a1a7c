"""The values of a conversation: messages, tool calls, usage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, TypeAlias, cast

from rolling_chat.message_validation import normalize_message, normalize_role
from rolling_chat.text import normalize_text
from rolling_chat.text_compression import Packed, pack, text_slot

Json: TypeAlias = Any
JsonObject: TypeAlias = Mapping[str, Json]
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Content: TypeAlias = str | tuple[JsonObject, ...]

_KNOWN_FIELDS = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})


SHOWN = "shown"
"""The key, in a result's extras, of the text that the screen shows instead; it is never sent to a model."""


NOTE = "note"
"""The key, in a user message's extras, of the program's own text for the model below the user's."""

TEXT_CALLS = "text_calls"
"""The key, in a reply's extras, of the index in its text where tool calls written as text begin."""

ATTACHED = "attached"
"""The key, in a user message's extras, of the places of attached files in its text; never sent to a model."""


GONE = "gone"
"""Replaces the hash of a file that was deleted."""


class Ending(StrEnum):
    """How a message ended."""

    COMPLETE = "complete"
    LENGTH = "length"  # a reply cut at its output limit
    CANCELLED = "cancelled"  # stopped by the user, or the program died
    FAILED = "failed"  # a tool or a provider broke
    REFUSED = "refused"  # a tool that was not approved


@dataclass(frozen=True, slots=True)
class MadeBy:
    """The provider and model that wrote a message."""

    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class FileTouch:
    """A file that a tool read or wrote, whole or in part, and the hash of all its bytes at that time.

    "read" and "written" mean that the model then knew all of the file, "in part" that it may not have.
    `path` is absolute; `sha256` is in hexadecimal, empty if the file was too large to be read whole, and
    GONE if it was deleted.
    """

    path: str
    action: Literal["read", "read in part", "written", "written in part"]
    sha256: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file, folder or picture attached to a user's message.

    `mention` is its name in the message's words, without the `@`; `note` describes it in a few words; `text`
    is what is sent to the model, `tokens` the size of that, 0 if it was not counted. `picture` is a data URI
    with the picture, which is sent below the text.
    """

    mention: str
    note: str
    text: str
    tokens: int = 0
    picture: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call by the model; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Message:
    """One message of the OpenAI chat format, with the program's own data about it.

    `id` is the store's, empty for a message that was never stored. `extras` are a provider's own fields
    (such as signed reasoning), kept uninterpreted for the model in `made_by`.
    """

    role: Role
    content: Content = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    id: str = ""
    extras: JsonObject | None = None
    made_by: MadeBy | None = None
    ending: Ending = Ending.COMPLETE
    created_at: float = 0.0  # seconds since the epoch; 0.0 if unknown

    @property
    def text(self) -> str:
        """The text of the content, without images and other parts."""
        content = self.content
        if isinstance(content, str):
            return content
        parts = (part.get("text") for part in content if part.get("type") == "text")
        return "\n".join(text for text in parts if isinstance(text, str))

    @property
    def note(self) -> str:
        """The program's own text for the model below a user's text; empty if there is none."""
        note = self.extras.get(NOTE) if self.extras and self.role == "user" else None
        return note if isinstance(note, str) else ""

    @property
    def writes_calls(self) -> bool:
        """Whether the model wrote this reply's tool calls as text."""
        return bool(self.tool_calls and self.extras and TEXT_CALLS in self.extras)

    @property
    def prose(self) -> str:
        """The text without tool calls that the model wrote in it."""
        start = (self.extras or {}).get(TEXT_CALLS) if self.writes_calls else None
        return self.text[:start].rstrip() if isinstance(start, int) and start >= 0 else self.text

    @property
    def words(self) -> str:
        """The text without attachments."""
        places = self._attached
        return self.text[: places[0]["at"]].rstrip("\n") if places else self.text

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The attachments of a user's message."""
        text, pictures = self.text, iter(() if isinstance(self.content, str) else self.content[1:])
        return tuple(
            Attachment(
                place["mention"],
                place["note"],
                text[place["at"] : place["at"] + place["length"]],
                place["tokens"],
                picture_address(next(pictures, {})) if place.get("is_picture") is True else "",
            )
            for place in self._attached
        )

    @property
    def _attached(self) -> Sequence[Mapping[str, Any]]:
        """The places of the attachments; none if the extras were not written by this program."""
        places = self.extras.get(ATTACHED) if self.role == "user" and self.extras else None
        if not isinstance(places, list | tuple) or not all(map(_is_attached_place, places)):
            return ()
        at = 0
        for place in places:
            if place["at"] < at:
                return ()
            at = place["at"] + place["length"]
        return places if at <= len(self.text) else ()

    @classmethod
    def from_dict(cls, data: JsonObject, *, id: str = "") -> Message:
        """Read one OpenAI-format message. Unknown fields go to `extras`.

        Accepts any dictionary: fields of a wrong type are converted, see `message_validation`.
        """
        data = normalize_message(data)
        content = data.get("content") or ""
        extras = {key: value for key, value in data.items() if key not in _KNOWN_FIELDS}
        return cls(
            role=cast(Role, normalize_role(data)),
            content=content if isinstance(content, str) else tuple(content),
            tool_calls=tuple(map(_tool_call, data.get("tool_calls") or ())),
            tool_call_id=data.get("tool_call_id"),
            name=data.get("name"),
            id=id,
            extras=extras or None,
        )

    def to_dict(self, *, with_extras: bool = True) -> dict[str, Json]:
        """Write the message in OpenAI's format, ready for JSON."""
        data: dict[str, Json] = {"role": self.role}
        content = self.content
        if isinstance(content, str):
            data["content"] = content or (None if self.tool_calls else "")
        else:
            data["content"] = [dict(part) for part in content]
        if self.name is not None:
            data["name"] = self.name
        if self.tool_calls:
            data["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.tool_calls
            ]
        if self.tool_call_id is not None:
            data["tool_call_id"] = self.tool_call_id
        if with_extras and self.extras:
            data.update(self.extras)
        return data


def user_message(text: str, attachments: Sequence[Attachment] = (), note: str = "") -> Message:
    """Return a user's message with files attached below its words, and `note` sent below everything."""
    text = normalize_text(text)
    places: list[dict[str, Json]] = []
    for one in attachments:
        attached = normalize_text(one.text)
        text += "\n\n"
        place = {"at": len(text), "length": len(attached), "tokens": one.tokens}
        # names may contain lone surrogates, which cannot be stored
        kind = {"is_picture": True} if one.picture else {}
        places.append(
            {"mention": normalize_text(one.mention), "note": normalize_text(one.note), **place, **kind}
        )
        text += attached
    extras = {**({ATTACHED: places} if places else {}), **({NOTE: note} if note else {})}
    pictures = tuple(picture_part(one.picture) for one in attachments if one.picture)
    content = ({"type": "text", "text": text}, *pictures) if pictures else text
    return Message("user", content, extras=extras or None)


def picture_part(address: str) -> JsonObject:
    """Return a message part with the picture at `address`, in OpenAI's format."""
    return {"type": "image_url", "image_url": {"url": address}}


def picture_address(part: JsonObject) -> str:
    """Return the address of a picture, perhaps a data URI; empty for a part of another form."""
    picture = part.get("image_url")
    address = picture.get("url") if isinstance(picture, Mapping) else picture
    return address if isinstance(address, str) else ""


def is_picture(part: JsonObject) -> bool:
    """Return whether a part of a message is a picture, in the form of any provider."""
    return part.get("type") in ("image_url", "image", "input_image")  # which may be a list


def parts_of(message: Message) -> Sequence[JsonObject]:
    """Return the parts of a message's content; none if it is a text."""
    content = _CONTENT.held(message)
    return content if isinstance(content, tuple | list) else ()


def has_pictures(message: Message) -> bool:
    """Return whether a message has a picture."""
    return any(map(is_picture, parts_of(message)))


def is_spoken(message: Message) -> bool:
    """Return whether a message's content is a text that is not blank."""
    text = _CONTENT.held(message)
    return isinstance(text, Packed) or (isinstance(text, str) and bool(text) and not text.isspace())


def count_characters(message: Message) -> int:
    """Return the length of a message's text, in characters."""
    text = _CONTENT.held(message)
    return text.characters if isinstance(text, Packed) else len(message.text)


def count_text_bytes(message: Message) -> int:
    """Return the length of a message's content in UTF-8 if it is a text, in bytes; 0 if it has parts."""
    text = _CONTENT.held(message)
    if isinstance(text, Packed):
        return text.bytes
    return len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else 0


def without_pictures(message: Message, line: str) -> Message:
    """Return a message with `line` in place of each picture; the same object if it has none."""
    if not has_pictures(message) or isinstance(message.content, str):
        return message
    parts = tuple({"type": "text", "text": line} if is_picture(part) else part for part in message.content)
    if any(part.get("type") != "text" for part in parts):
        return replace(message, content=parts)
    return replace(message, content="\n\n".join(part["text"] for part in parts))


# functions that are called for every message of a long branch use this, so that texts stay compressed
_CONTENT = text_slot(Message, "content", Packed)


def pack_contents(messages: Iterable[Message]) -> None:
    """Compress the texts of messages in memory; they read as before."""
    pack(_CONTENT, messages)


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage that a provider reported for one request, in tokens; 0 means not reported.

    `input_tokens` includes tokens read from and written to the provider's prompt cache. `cost` is in US
    dollars, None if the price is unknown. `is_sum`: the provider split the request into several, for its own
    tools or to shorten the prompt, so that no figure describes a single prompt.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_read_tokens: int = 0
    cached_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    is_sum: bool = False

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_read_tokens + other.cached_read_tokens,
            self.cached_write_tokens + other.cached_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            sum(costs) if costs else None,
            self.is_sum or other.is_sum,
        )


def _is_attached_place(place: object) -> bool:
    if not isinstance(place, Mapping):
        return False
    texts, counts = ("mention", "note"), ("at", "length", "tokens")
    return all(isinstance(place.get(name), str) for name in texts) and all(
        type(place.get(name)) is int and place[name] >= 0 for name in counts
    )


def _tool_call(call: JsonObject) -> ToolCall:
    function = call.get("function") or {}
    return ToolCall(call.get("id", ""), function.get("name", ""), function.get("arguments", ""))
