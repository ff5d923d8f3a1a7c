"""The vocabulary of a conversation: messages, tool calls, usage."""

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
"""The name among a result's extras of what the screen shows instead of its text; no model is sent it."""


NOTE = "note"
"""The name among a user message's extras of what the program tells the model below the user's own text."""

TEXT_CALLS = "text_calls"
"""The name among a reply's extras of the index in its text at which the calls begin that it wrote as text."""

ATTACHED = "attached"
"""The name among a user message's extras of where in its text the attached files are; no model is sent it."""


GONE = "gone"
"""What stands for the hash of a file that was deleted."""


class Ending(StrEnum):
    """Name how a message came to its end."""

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
    """A file that a tool read or wrote, whole or in part, and what all of its bytes were then.

    "read" and "written" say that the model then knew all of the file, "in part" that it may not have.
    `path` is absolute; `sha256` is in hexadecimal, empty where the file was too large to be read whole, and
    GONE where it was deleted.
    """

    path: str
    action: Literal["read", "read in part", "written", "written in part"]
    sha256: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file, folder or picture that goes with a user's message.

    `mention` is what names it in the words of the message, without the `@`; `note` says what it is in a few
    words; `text` is what the model is sent of it, `tokens` its size, 0 where it was not counted. `picture` is
    the address that contains a picture, which is sent below its text.
    """

    mention: str
    note: str
    text: str
    tokens: int = 0
    picture: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool by the model; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Message:
    """Hold one message of the OpenAI chat format, with what we know besides.

    `id` is the store's, empty for a message that was never stored. `extras` are fields of a
    provider's own (signed reasoning, for one), kept unread for the model in `made_by`.
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
    created_at: float = 0.0  # seconds since the epoch; 0.0 where unknown

    @property
    def text(self) -> str:
        """The text of the content; images and other parts are left out."""
        content = self.content
        if isinstance(content, str):
            return content
        parts = (part.get("text") for part in content if part.get("type") == "text")
        return "\n".join(text for text in parts if isinstance(text, str))

    @property
    def note(self) -> str:
        """What the program tells the model below a user's text; empty for nothing."""
        note = self.extras.get(NOTE) if self.extras and self.role == "user" else None
        return note if isinstance(note, str) else ""

    @property
    def writes_calls(self) -> bool:
        """Whether the model wrote the calls of this reply as text."""
        return bool(self.tool_calls and self.extras and TEXT_CALLS in self.extras)

    @property
    def prose(self) -> str:
        """The text without the calls that the model wrote as a part of it."""
        start = (self.extras or {}).get(TEXT_CALLS) if self.writes_calls else None
        return self.text[:start].rstrip() if isinstance(start, int) and start >= 0 else self.text

    @property
    def words(self) -> str:
        """The text without what is attached to it."""
        places = self._attached
        return self.text[: places[0]["at"]].rstrip("\n") if places else self.text

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """What is attached to a user's message."""
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
        """Where the attachments are; none where what says so was not written by this program."""
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
        """Read one OpenAI-format message. Fields that are not the format's go to `extras`.

        Takes any dictionary: fields of a wrong type are made the format's own, see `message_validation`.
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
    """Return a user's message with files attached below its words; the model is sent `note` below all."""
    text = normalize_text(text)
    places: list[dict[str, Json]] = []
    for one in attachments:
        attached = normalize_text(one.text)
        text += "\n\n"
        place = {"at": len(text), "length": len(attached), "tokens": one.tokens}
        # half a character in a name is nothing that can be stored
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
    """Return the part of a message that is the picture at `address`, in OpenAI's format."""
    return {"type": "image_url", "image_url": {"url": address}}


def picture_address(part: JsonObject) -> str:
    """Return the address of a picture, which may contain it; empty for a part of another form."""
    picture = part.get("image_url")
    address = picture.get("url") if isinstance(picture, Mapping) else picture
    return address if isinstance(address, str) else ""


def is_picture(part: JsonObject) -> bool:
    """Return whether a part of a message is a picture, in the form of any provider."""
    return part.get("type") in {"image_url", "image", "input_image"}


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


# what is asked of every message of a long branch is answered by this, so that a compressed text stays so
_CONTENT = text_slot(Message, "content", Packed)


def pack_contents(messages: Iterable[Message]) -> None:
    """Compress the texts of messages in memory; they read as before."""
    pack(_CONTENT, messages)


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage that a provider reported for one request, in tokens; 0 means that it did not say.

    `input_tokens` includes what was read from and written to the provider's prompt cache.
    `cost` is in US dollars, None where the price is unknown. `is_sum` says that the provider made several
    requests of it, for tools of its own or to make a prompt shorter: then no figure is that of one prompt.
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
