"""Read transcripts: a JSON array of messages, JSONL by conversation or by message, gzip, or a session."""

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
from typing import BinaryIO, TypeAlias, cast

from rolling_chat.lenient_json import read_json_with_nulls
from rolling_chat.message_validation import as_text, normalize_message
from rolling_chat.messages import Json, JsonObject, Message
from rolling_chat.providers import wire
from rolling_chat.sessions.records import SessionInfo
from rolling_chat.text import one_line

MAX_BYTES = 256 * 1024 * 1024
"""The longest line or array that is read into memory."""

_GZIP = b"\x1f\x8b"
_EXPECTED = 'expected an array of messages or {"id", "messages"}'


READ_ERRORS = (OSError, EOFError, zlib.error)
"""The errors that reading a file, including a gzip file, may raise."""

PARQUET = b"PAR1"
"""The first bytes of a Parquet file."""

_LONG_LINE = 1024 * 1024


class TranscriptError(Exception):
    """An unreadable transcript; `str()` is one line for the user."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation read from a transcript: its id, messages and tools.

    `sources` are the dictionaries from which `messages` were read, in the same order; empty for a saved
    session. `tools` are the offered schemas. `repaired` counts messages with fields of wrong types. `read` is
    the share of the file read so far, 0 to 1.
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
        """Return the dictionary that `message` was read from, or a new one from its fields."""
        given = self._given.get(id(message))
        return given if given is not None and given.get("role") == message.role else message.to_dict()


Entry: TypeAlias = Transcript | TranscriptError


def session_transcript(
    info: SessionInfo,
    branch: Sequence[Message],
    model: str,
    *,
    system: str = "",
    tools: Sequence[JsonObject] = (),
) -> Transcript:
    """Return a transcript of a saved session's branch, in the form that `model` may see."""
    lead = (Message("system", system),) if system else ()
    return Transcript(info.id, (*lead, *wire.for_model(branch, model)), tools=tools)


def cannot_read(path: Path, error: Exception) -> TranscriptError:
    """Return the error for a file that cannot be read or unpacked."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return TranscriptError(f"cannot read {name_of(path)}: {one_line(reason)}")


class TranscriptFile:
    """JSON conversations, read line by line from a file or a part of one."""

    def __init__(self, path: Path, stream: BinaryIO, *, lines_before: int = 0) -> None:
        self._path = path
        self._name = name_of(path)
        self._stem = stem_of(path)
        self._stream = stream
        self._number = lines_before
        self._ahead = io.BytesIO()  # data that was read ahead of the stream
        self._raw: BinaryIO | None = None
        self._size = 0
        self._has_failed = False

    @classmethod
    def open(cls, path: Path, raw: io.BufferedReader) -> TranscriptFile:
        """Create an instance from an open file, which may be packed by gzip."""
        packed = raw.peek(len(_GZIP)).startswith(_GZIP)
        file = cls(path, cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw)
        status = os.fstat(raw.fileno())
        if stat.S_ISREG(status.st_mode):
            file._raw, file._size = raw, status.st_size
        return file

    def entries(self) -> Iterator[Entry]:
        """Read all conversations, with errors in place of those that cannot be read."""
        try:
            yield from self._entries()
        except READ_ERRORS as error:
            yield cannot_read(self._path, error)
        except TranscriptError as error:
            yield error

    def _entries(self) -> Iterator[Entry]:
        line = self._next_line()
        if isinstance(line, TranscriptError):
            yield line
            yield from self.line_entries()
            return
        if not line:
            raise TranscriptError(f"{self._name} is empty: {_EXPECTED}")
        try:
            first = read_json_with_nulls(line)
        except ValueError as error:
            # not one value per line: a value that is spread over lines
            yield from self._multiline_value(line, error)
            return
        if is_message(first):
            yield self._transcript({"messages": list(self._messages(first))}, self._stem)
            return
        yield from self._conversations(first)
        yield from self.line_entries()

    def line_entries(self) -> Iterator[Entry]:
        """Read the remaining lines, each of which contains conversations."""
        while line := self._next_line():
            if isinstance(line, TranscriptError):
                yield line
                continue
            try:
                value = read_json_with_nulls(line)
            except ValueError as error:
                yield self._broken(self._number, error)
                continue
            yield from self._conversations(value)

    def chunks(self, first: bytes, size: int) -> Iterator[tuple[int, bytes | TranscriptError]]:
        """Split `first` and the remaining lines into chunks of about `size` bytes.

        Each chunk comes with the number of lines before it; a line that is too long is replaced by its error.
        """
        before, lines, size_so_far = max(self._number - 1, 0), [first], len(first)
        while line := self._next_line_or_error():
            if isinstance(line, TranscriptError) or size_so_far >= size:
                yield before, b"".join(lines)
                before, lines, size_so_far = self._number - 1, [], 0
            if isinstance(line, TranscriptError):
                yield before, line
                before = self._number
                continue
            lines.append(line)
            size_so_far += len(line)
        yield before, b"".join(lines)

    def first_lines(self) -> tuple[bytes, bool]:
        """Read the first line; return it, and whether every line contains conversations of its own.

        If not, only `rest` may be called next. Raises TranscriptError.
        """
        line = self._next_line()
        if isinstance(line, TranscriptError):
            return b"", True
        if len(line) > _LONG_LINE:
            # a file that is a single line need not be parsed here
            self._ahead = io.BytesIO(self._stream.readline(MAX_BYTES + 1))
            if not self._ahead.getvalue():
                return line, False
        try:
            return line, not is_message(read_json_with_nulls(line)) if line else False
        except ValueError:
            second = self._ahead.getvalue() or self._stream.readline(MAX_BYTES + 1)
            self._ahead = io.BytesIO(second)
            # an array with its only conversation on its own line also begins like this
            return line, line.strip() != b"[" and _is_value(second)

    def rest(self, first: bytes) -> bytes:
        """Return `first` and the rest of the file as one value, up to the limit on one value."""
        return first + self._ahead.read() + self._stream.read(MAX_BYTES + 1)

    def _messages(self, first: Json) -> Iterator[Json]:
        """Yield the messages of a file with one message per line, which is a single conversation."""
        yield first
        size = 0
        while line := self._next_line():
            if isinstance(line, TranscriptError):
                raise line
            size += len(line)
            if size > MAX_BYTES:
                raise TranscriptError(
                    f"{self._name} is one conversation of more than {MAX_BYTES // 1024**2} MB: split it"
                )
            try:
                message = read_json_with_nulls(line)
            except ValueError as error:
                raise self._broken(self._number, error) from error
            if not is_message(message):
                raise TranscriptError(f"line {self._number} of {self._name} is not a message with a role")
            yield message

    def _next_line(self, *, blank: bool = False) -> bytes | TranscriptError:
        """Return the next line that is not blank; empty at the end of the file.

        A line that is too long is replaced by its error.
        """
        while line := self._read_line(MAX_BYTES + 1):
            self._number += 1
            if len(line) > MAX_BYTES:
                while line and not line.endswith(b"\n"):
                    line = self._read_line(_LONG_LINE)
                return TranscriptError(
                    f"line {self._number} of {self._name} is longer than "
                    f"{MAX_BYTES // 1024**2} MB: split it into conversations of their own"
                )
            if blank or line.strip():
                return line
        return b""

    def _next_line_or_error(self) -> bytes | TranscriptError:
        """Return the next line, blank or not; a read error is returned and ends the file."""
        if self._has_failed:
            return b""
        try:
            return self._next_line(blank=True)
        except READ_ERRORS as error:
            self._has_failed = True
            return cannot_read(self._path, error)

    def _read_line(self, limit: int) -> bytes:
        line = self._ahead.readline(limit)
        if line.endswith(b"\n") or len(line) == limit:
            return line
        return line + self._stream.readline(limit - len(line))

    def _multiline_value(self, first: bytes, broken: ValueError) -> Iterator[Entry]:
        """Read the single value that the whole file contains; `first` is its first line, not a value itself.

        If the other lines are values of their own after all, only the first is an error.
        """
        number = self._number
        second = self._next_line()
        if isinstance(second, TranscriptError):
            raise second from broken
        rest = self._ahead.read() + self._stream.read(MAX_BYTES + 1)
        try:
            if len(rest) <= MAX_BYTES:
                value = read_json_with_nulls(first + second + rest)
                self._number = number
                yield from self._conversations(value)
                return
        except ValueError as error:
            if not _is_value(second):
                line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
                raise self._broken(number + line - 1, error) from error
        if second and not _is_value(second):
            raise TranscriptError(
                f"{self._name} is one value of more than {MAX_BYTES // 1024**2} MB: "
                "write one conversation a line"
            )
        yield self._broken(number, broken)
        self._number = number
        self._ahead = io.BytesIO(second + rest)
        yield from self.line_entries()

    def _conversations(self, value: Json) -> Iterator[Entry]:
        if _are_conversations(value):
            named = [(f"{self._stem}:{at}", conversation) for at, conversation in enumerate(value, 1)]
        else:
            name = self._stem if self._number <= 1 else f"{self._stem}:{self._number}"
            named = [(name, value if isinstance(value, Mapping) else {"messages": value})]
        for name, conversation in named:
            try:
                yield self._transcript(conversation, name)
            except TranscriptError as error:
                yield error

    def _transcript(self, value: JsonObject, name: str) -> Transcript:
        return make_transcript(value, name, f"line {self._number} of {self._name}", read=self._read())

    def _read(self) -> float:
        return self._raw.tell() / self._size if self._raw is not None and self._size else 1.0

    def _broken(self, number: int, error: ValueError) -> TranscriptError:
        if isinstance(error, UnicodeDecodeError):
            wrong = f"byte {error.start + 1} is 0x{error.object[error.start]:02x}"
            return TranscriptError(f"line {number} of {self._name} is not UTF-8: {wrong}")
        where = f" (column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        return TranscriptError(f"line {number} of {self._name} is not JSON: {one_line(why, 120)}{where}")


def make_transcript(value: JsonObject, name: str, where: str, *, read: float = 1.0) -> Transcript:
    """Create a transcript from an object with `messages` and optionally `id`, `tools` and `title`.

    Without an id, it is named `name`. Raises TranscriptError, which begins with `where`.
    """
    given = value.get("messages")
    if not isinstance(given, list):
        raise TranscriptError(_no_conversation(value, where))
    sources: list[JsonObject] = []
    repaired = 0
    for index, message in enumerate(given):
        if not isinstance(message, Mapping):
            raise TranscriptError(f"{where}: message {index} is not an object with a role")
        normalized = normalize_message(message)
        repaired += normalized is not message
        sources.append(normalized)
    tools, title = value.get("tools"), value.get("title")
    return Transcript(
        id=name if value.get("id") in (None, "") else as_text(value["id"]),
        messages=tuple(map(Message.from_dict, sources)),
        sources=sources,
        tools=[tool for tool in tools if isinstance(tool, Mapping)] if isinstance(tools, list) else (),
        title=title if isinstance(title, str) else "",
        repaired=repaired,
        read=read,
    )


def _no_conversation(value: JsonObject, where: str) -> str:
    if isinstance(value.get("role"), str):
        return f"{where} is a message, not a conversation: put all messages into one array (jq -s .)"
    return f"{where} is not a conversation: {_EXPECTED}"


def _is_value(line: bytes) -> bool:
    try:
        read_json_with_nulls(line)
    except ValueError:
        return False
    return True


def is_message(value: Json) -> bool:
    """Return whether a value is a single message of a conversation."""
    return isinstance(value, Mapping) and "role" in value and "messages" not in value


def _are_conversations(value: Json) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(item, Mapping) and "messages" in item for item in value)


def name_of(path: Path) -> str:
    """Return a file's name for a line to the user."""
    return one_line(str(path))


def stem_of(path: Path) -> str:
    """Return the name for an unnamed conversation that is alone in a file."""
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name
