"""Split terminal input into text, keys and complete control sequences, and drop everything else.

Textual's parser treats what it does not understand as typed text: a terminal's reply, a sequence of more
than 32 characters, a mouse report in the old encoding. A line end in it would press Enter.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import (
    SPECIAL_SEQUENCES,
    _re_cursor_position,
    _re_extended_key,
    _re_in_band_window_resize,
    _re_mouse_event,
    _re_terminal_mode_response,
)

ESC = "\x1b"
_CSI = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")
_CSI_BEGUN = re.compile("\x1b\\[[0-?]*[ -/]*")
_CONSOLE_KEY = "\x1b[["  # of the Linux console: one more letter follows
_X10_MOUSE, _X10_BYTES = "\x1b[M", 3
_STRINGS = "P]_^X"  # DCS, OSC, APC, PM, SOS
_STRING_END = re.compile("\x07|\x1b\\\\|[\x18\x1a]|\x1b(?=[^\\\\])|\x1b$")
_MAX_LENGTH = 32  # Textual's own
_MAX_HELD = 4_096
_MAX_COLUMNS, _MAX_ROWS = 2_000, 1_000  # no real terminal is larger, and drawing it would take gigabytes
_KEY_WAIT = 0.1  # seconds after which an escape is the Esc key
_STRING_WAIT = 1.0  # seconds after which the rest of a reply is given up
_PARSED = (_re_extended_key, _re_mouse_event, _re_terminal_mode_response, _re_cursor_position)


class Sequences:
    """A splitter of terminal input into text, alt with a key, and sequences that Textual knows."""

    def __init__(self) -> None:
        self._held = ""  # the beginning of a sequence
        self._in_string = False
        self._since = 0.0

    def take(self, data: str) -> Iterator[str]:
        """Yield the parts of the input `data`, keeping an incomplete one for the next call."""
        data, self._held = self._held + data, ""
        at = 0
        while at < len(data):
            if self._in_string:
                at = self._skip_string(data, at)
                continue
            if data[at] != ESC:
                end = data.find(ESC, at)
                end = len(data) if end < 0 else end
                yield proper_text(data[at:end])
            else:
                end = _end_of(data, at)
                if end < 0:
                    self._keep_incomplete(data[at:])
                    return
                if self._begins_string(data, at, end):
                    self._in_string, self._since = True, time.monotonic()
                elif _is_known(data[at:end]):
                    yield data[at:end]
            at = end

    def overdue(self, *, now: bool = False) -> str:
        """Return incomplete input that was kept too long to expect more; empty if there is none."""
        waited = time.monotonic() - self._since
        if self._in_string and (now or waited >= _STRING_WAIT):
            self._in_string, self._held = False, ""
        if self._in_string or not (now or waited >= _KEY_WAIT):
            return ""
        held, self._held = self._held, ""
        return proper_text(held)

    def _keep_incomplete(self, part: str) -> None:
        self._held = part if len(part) <= _MAX_HELD else ""
        self._since = time.monotonic()

    def _skip_string(self, data: str, at: int) -> int:
        found = _STRING_END.search(data, at)
        if found is None:
            return len(data)
        if found[0] == ESC and found.end() == len(data):
            self._held = ESC  # the end may come in parts
            return len(data)
        self._in_string = False
        return found.start() if found[0] == ESC else found.end()

    @staticmethod
    def _begins_string(data: str, at: int, end: int) -> bool:
        """Return whether a string begins here, rather than alt with a capital letter before an escape."""
        return end == at + 2 and data[at + 1] in _STRINGS and data[end] != ESC


def proper_text(text: str) -> str:
    """Return `text` with each byte that was not UTF-8 replaced by U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _end_of(data: str, at: int) -> int:
    """Return where the sequence that begins at `at` ends; -1 if it is incomplete."""
    if at + 1 == len(data):
        return -1
    kind = data[at + 1]
    if kind == ESC:
        return at + 1
    if kind in _STRINGS:
        # anything that follows at once makes it a string; ESC \ is an empty one
        is_empty = data.startswith(ESC, at + 2)
        return -1 if at + 2 + is_empty >= len(data) else at + 2
    if kind != "[":
        return at + 2
    if data.startswith(_X10_MOUSE, at):
        return _end_of_bytes(data, at + len(_X10_MOUSE))
    if data.startswith(_CONSOLE_KEY, at):
        return at + 4 if at + 4 <= len(data) else -1
    if found := _CSI.match(data, at):
        return found.end()
    begun = _CSI_BEGUN.match(data, at)
    end = begun.end() if begun is not None else at + 2
    return -1 if end == len(data) else end


def _end_of_bytes(data: str, at: int) -> int:
    """Return the end of an old mouse report, in text decoded with `surrogateescape`; -1 if incomplete."""
    count = 0
    for end in range(at, len(data)):
        count += len(data[end].encode("utf-8", "surrogateescape"))
        if count >= _X10_BYTES:
            return end + 1
    return -1


def _is_known(sequence: str) -> bool:
    """Return whether Textual knows this sequence."""
    if not sequence.startswith("\x1b[") or sequence == "\x1b[":
        return True
    if sequence in ANSI_SEQUENCES_KEYS or sequence in SPECIAL_SEQUENCES:
        return True
    if resize := _re_in_band_window_resize.fullmatch(sequence):
        rows, columns = (int(group.partition(":")[0][:9]) for group in resize.groups()[:2])
        return 0 < rows <= _MAX_ROWS and 0 < columns <= _MAX_COLUMNS
    return len(sequence) <= _MAX_LENGTH and any(each.fullmatch(sequence) for each in _PARSED)
