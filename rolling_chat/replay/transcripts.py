"""Reading transcripts: a JSON array of messages, JSONL by conversation or by message, gzip, a session."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from rolling_chat.lenient_json import read_json_with_nulls
from rolling_chat.message_validation import as_text, normalize_message
from rolling_chat.messages import Json, JsonObject, Message
from rolling_chat.providers import wire
from rolling_chat.sessions.records import SessionInfo
from rolling_chat.text import one_line

MAX_BYTES = 256 * 1024 * 1024
"""The longest line, or array, that is read into memory."""

_GZIP = b"\x1f\x8b"
_EXPECTED = 'expected an array of messages or {"id", "messages"}'


class TranscriptError(Exception):
    """A transcript that cannot be read; `str()` is the one line for the user."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation that was read from a transcript: its id, its messages, its tools.

    `sources` are the dictionaries that `messages` were read from, in the same order; empty for a
    saved session. `tools` are the schemas that were offered. `repaired` counts the messages whose
    fields were not of the format's types. `read` is the share of the file read so far, 0 to 1.
    """

    id: str
    messages: Sequence[Message]
    sources: Sequence[JsonObject] = ()
    tools: Sequence[JsonObject] = ()
    title: str = ""
    repaired: int = 0
    read: float = 1.0
    _given: dict[int, JsonObject] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = zip(map(id, self.messages), self.sources, strict=False)
        object.__setattr__(self, "_given", dict(given))

    def as_given(self, message: Message) -> JsonObject:
        """Return the dictionary that `message` was read from, or one made of its fields if there is none."""
        given = self._given.get(id(message))
        return given if given is not None and given.get("role") == message.role else message.to_dict()


def session_transcript(
    info: SessionInfo,
    branch: Sequence[Message],
    model: str,
    *,
    system: str = "",
    tools: Sequence[JsonObject] = (),
) -> Transcript:
    """Make a transcript of a saved session's branch, as `model` may see it."""
    lead = (Message("system", system),) if system else ()
    return Transcript(info.id, (*lead, *wire.for_model(branch, model)), tools=tools)


def read_transcripts(path: Path) -> Iterator[Transcript]:
    """Read the conversations of a file, one at a time; gzip is known by its first bytes.

    A conversation without an id is called by the file's name, and by its line where that is not
    the first. Raises TranscriptError, naming the line, for what is no transcript; those before it
    were read.
    """
    try:
        with path.open("rb") as raw:
            yield from _File(path, raw).transcripts()
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TranscriptError(f"cannot read {_name(path)}: {one_line(reason)}") from error


class _File:
    """One open file, read line by line."""

    def __init__(self, path: Path, raw: io.BufferedReader) -> None:
        self._name = _name(path)
        self._stem = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
        self._raw = raw
        status = os.fstat(raw.fileno())
        self._size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        packed = raw.peek(len(_GZIP)).startswith(_GZIP)
        self._stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
        self._number = 0

    def transcripts(self) -> Iterator[Transcript]:
        line = self._next_line()
        if not line:
            raise TranscriptError(f"{self._name} is empty: {_EXPECTED}")
        try:
            first = read_json_with_nulls(line)
        except ValueError:
            # not a value a line: one that is spread over many
            yield from self._conversations(self._decode_whole(line))
            return
        if _is_message(first):
            yield self._transcript({"messages": list(self._messages(first))}, self._stem)
            return
        yield from self._conversations(first)
        while line := self._next_line():
            yield from self._conversations(self._decode(line))

    def _messages(self, first: Json) -> Iterator[Json]:
        """Yield the messages of a file with one message per line, which is one conversation."""
        yield first
        size = 0
        while line := self._next_line():
            size += len(line)
            if size > MAX_BYTES:
                raise TranscriptError(
                    f"{self._name} is one conversation of more than {MAX_BYTES // 1024**2} MB: split it"
                )
            message = self._decode(line)
            if not _is_message(message):
                raise TranscriptError(f"line {self._number} of {self._name} is no message with a role")
            yield message

    def _decode(self, line: bytes) -> Json:
        try:
            return read_json_with_nulls(line)
        except ValueError as error:
            raise self._broken(self._number, error) from error

    def _next_line(self) -> bytes:
        """Return the next line that is not blank; empty at the end of the file."""
        while line := self._stream.readline(MAX_BYTES + 1):
            self._number += 1
            if len(line) > MAX_BYTES:
                raise TranscriptError(
                    f"line {self._number} of {self._name} is longer than "
                    f"{MAX_BYTES // 1024**2} MB: split it into conversations of their own"
                )
            if line.strip():
                return line
        return b""

    def _decode_whole(self, first: bytes) -> Json:
        """Return the one value that the whole file holds; `first` is its first line, which holds none."""
        number = self._number
        second = self._next_line()
        rest = self._stream.read(MAX_BYTES + 1)
        self._number = number
        try:
            if len(rest) <= MAX_BYTES:
                return read_json_with_nulls(first + second + rest)
        except ValueError as error:
            if not _is_value(second):
                line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
                raise self._broken(number + line - 1, error) from error
        if second and not _is_value(second):
            raise TranscriptError(
                f"{self._name} is one value of more than {MAX_BYTES // 1024**2} MB: "
                "write one conversation a line"
            )
        # the lines stand for themselves, all but the first
        try:
            return read_json_with_nulls(first)
        except ValueError as error:
            raise self._broken(number, error) from error

    def _conversations(self, value: Json) -> Iterator[Transcript]:
        if _are_conversations(value):
            for place, conversation in enumerate(value, 1):
                yield self._transcript(conversation, f"{self._stem}:{place}")
            return
        name = self._stem if self._number <= 1 else f"{self._stem}:{self._number}"
        yield self._transcript(value if isinstance(value, Mapping) else {"messages": value}, name)

    def _transcript(self, value: JsonObject, name: str) -> Transcript:
        given = value.get("messages")
        if not isinstance(given, list):
            raise TranscriptError(self._no_conversation(value))
        sources: list[JsonObject] = []
        repaired = 0
        for place, message in enumerate(given):
            if not isinstance(message, Mapping):
                raise TranscriptError(
                    f"line {self._number} of {self._name}: message {place} is no object with a role"
                )
            sound = normalize_message(message)
            repaired += sound is not message
            sources.append(sound)
        tools, title = value.get("tools"), value.get("title")
        return Transcript(
            id=name if value.get("id") in (None, "") else as_text(value["id"]),
            messages=tuple(map(Message.from_dict, sources)),
            sources=sources,
            tools=[tool for tool in tools if isinstance(tool, Mapping)] if isinstance(tools, list) else (),
            title=title if isinstance(title, str) else "",
            repaired=repaired,
            read=self._raw.tell() / self._size if self._size else 1.0,
        )

    def _no_conversation(self, value: JsonObject) -> str:
        where = f"line {self._number} of {self._name}"
        if isinstance(value.get("role"), str):
            return f"{where} is a message and no conversation: put all of them into one array (jq -s .)"
        return f"{where} is no conversation: {_EXPECTED}"

    def _broken(self, number: int, error: ValueError) -> TranscriptError:
        if isinstance(error, UnicodeDecodeError):
            wrong = f"byte {error.start + 1} is 0x{error.object[error.start]:02x}"
            return TranscriptError(f"line {number} of {self._name} is not UTF-8: {wrong}")
        where = f" (column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        return TranscriptError(f"line {number} of {self._name} is no JSON: {one_line(why, 120)}{where}")


def _is_value(line: bytes) -> bool:
    try:
        read_json_with_nulls(line)
    except ValueError:
        return False
    return True


def _is_message(value: Json) -> bool:
    return isinstance(value, Mapping) and "role" in value and "messages" not in value


def _are_conversations(value: Json) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(item, Mapping) and "messages" in item for item in value)


def _name(path: Path) -> str:
    return one_line(str(path))
