"""The text of a file with its format, so that an edit changes no other bytes."""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.tools.base import ToolError

_SNIFF = 8_192  # git looks for NUL in the first 8,000 bytes to tell binary from text
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class FileText:
    """A file's text with `\\n` as its only line end, and what is needed to write it back.

    `mark` is the byte order mark. `returns` are the indices in `text` of the `\\n` that were `\\r\\n`.
    Invalid bytes are kept as lone surrogates; `is_valid`: there are none.
    """

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""
    returns: Sequence[int] = ()
    is_valid: bool = True

    @property
    def as_in_file(self) -> str:
        """The text with the file's line ends."""
        return self._original(0, len(self.text))

    @property
    def with_mark(self) -> str:
        """The text with the file's line ends and its byte order mark as the first character."""
        return self.mark.decode(self.encoding) + self.as_in_file

    @property
    def line_ends(self) -> str:
        """The kind of all line ends, "LF", "CRLF" or "mixed line ends"; empty for a text of one line."""
        count = self.text.count("\n")
        if not count:
            return ""
        return {0: "LF", count: "CRLF"}.get(len(self.returns), "mixed line ends")

    @property
    def line_end(self) -> str:
        """The most frequent line end; `\\n` by default."""
        return "\r\n" if len(self.returns) * 2 > self.text.count("\n") else "\n"

    def replaced(self, spans: Sequence[tuple[int, int]], new: str) -> bytes:
        """Return the file's bytes with each span of `text` replaced by `new`, and no other byte changed.

        Lines of `new` get the line end of the line in which the span begins. Raises ToolError for a character
        that the file's encoding lacks, and if the bytes would be read as other text.
        """
        new = new.replace("\r\n", "\n")
        self._require_encodable(new)
        parts, at, line_end, line_stop = [], 0, "", -1
        for start, end in spans:
            if start > line_stop and "\n" in new:
                line_stop = self._line_stop(start)
                line_end = self._line_end_at(line_stop)
            parts += [self._original(at, start), new.replace("\n", line_end)]
            at = end
        parts.append(self._original(at, len(self.text)))
        return self._encode("".join(parts))

    def rewritten(self, content: str) -> bytes:
        """Return new content in this file's format: its mark, line ends and final newline."""
        content = content.replace("\r\n", "\n").removeprefix("\ufeff" if self.mark else "")
        self._require_encodable(content)
        if self.text.endswith("\n") and content and not content.endswith("\n"):
            content += "\n"
        return self._encode(content.replace("\n", self.line_end))

    def line_at(self, index: int) -> int:
        """Return the number, from 1, of the line that contains the character at `index`."""
        return self.text.count("\n", 0, index) + 1

    def _original(self, start: int, end: int) -> str:
        """Return a part of the text with the file's line ends."""
        first, last = bisect_left(self.returns, start), bisect_left(self.returns, end)
        parts, at = [], start
        for index in self.returns[first:last]:
            parts.append(self.text[at:index])
            parts.append("\r\n")
            at = index + 1
        parts.append(self.text[at:end])
        return "".join(parts)

    def _line_stop(self, index: int) -> int:
        stop = self.text.find("\n", index)
        return stop if stop >= 0 else len(self.text)

    def _line_end_at(self, stop: int) -> str:
        if stop == len(self.text):
            return self.line_end
        found = bisect_left(self.returns, stop)
        return "\r\n" if found < len(self.returns) and self.returns[found] == stop else "\n"

    def _require_encodable(self, new: str) -> None:
        if "\0" in new:
            raise ToolError("U+0000 makes a file binary and cannot be written to one; only text can.")
        if not self.is_valid and not new.isascii():
            raise ToolError(
                "The file is not UTF-8, and its encoding is not known: only ASCII can be written into it."
            )
        try:
            new.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise ToolError(
                f"U+{ord(new[error.start]):04X} is half a character and cannot be written to a file."
            ) from None

    def _encode(self, text: str) -> bytes:
        """Return the bytes of a text. Raises ToolError if they would be read as another text or as binary."""
        data = self.mark + text.encode(self.encoding, "strict" if self.is_valid else "surrogateescape")
        try:
            read = read_file_text(data, "")
        except ToolError:
            read = None
        marked = self.mark.decode(self.encoding) + text
        if read is None or read.encoding != self.encoding or read.with_mark != marked:
            raise ToolError(
                f"The file would no longer be read as {self.encoding.upper()} text with this content; "
                "nothing can be changed so."
            )
        return data


def read_file_text(data: bytes, name: str) -> FileText:
    """Decode a file's bytes. Raises ToolError, naming the file `name`, if they are not text."""
    mark, encoding = next(
        ((mark, encoding) for mark, encoding in _MARKS if data.startswith(mark)), (b"", "utf-8")
    )
    body = data[len(mark) :]
    if encoding == "utf-8" and b"\0" in body[:_SNIFF]:
        raise ToolError(f"{name} is a binary file; only text can be edited.")
    try:
        decoded, is_valid = body.decode(encoding), True
    except UnicodeDecodeError:
        if encoding != "utf-8":
            raise ToolError(f"{name} is not valid {encoding[:6].upper()}; it cannot be edited.") from None
        decoded, is_valid = body.decode(encoding, "surrogateescape"), False
    text, returns = _with_plain_line_ends(decoded)
    return FileText(text, encoding, mark, returns, is_valid)


def new_file_text() -> FileText:
    """Return the format of a new file: UTF-8 without a mark, and `\\n` as line end."""
    return FileText("")


def _with_plain_line_ends(text: str) -> tuple[str, Sequence[int]]:
    parts = text.split("\r\n")
    if len(parts) == 1:
        return text, ()
    returns, at = [], -1
    for part in parts[:-1]:
        at += len(part) + 1
        returns.append(at)
    return "\n".join(parts), returns
