"""What is typed is keys, and what is pasted only ever text, whatever control characters it holds.

Textual's parser takes what looks like an escape sequence within a bracketed paste for keys, so that
coloured output with a line end in it would press Enter. And it waits a tenth of a second for more of what
alt with a letter is: where the next key comes sooner, as a held key does, both become text. And it drops
letters that Python would not print, as the joiners of Persian, Hindi and emoji and the wide space of Chinese
and Japanese.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator

from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.message import Message

from rolling_chat.text import typed

if sys.platform == "win32":
    from textual.drivers import win32 as reader
else:
    from textual.drivers import linux_driver as reader


# alt with a key that begins nothing longer; in a second read the escape may have come in the first
_ALT = re.compile("(\x1b[^\x1b\\[\\]OPX^_])")
_ESC = "\x1b"


class Key(events.Key):
    """A key that is text, though Python would not print it. Handlers go by the name of the class."""

    @property
    def is_printable(self) -> bool:
        """It is, for a terminal."""
        return True


def keep_pastes_whole() -> None:
    """Let the terminal be read by a `PasteParser` from now on."""
    # it is made by this name amid a long method of Textual's, which has no other way in
    reader.XTermParser = PasteParser  # type: ignore[attr-defined]


class PasteParser(XTermParser):
    """Textual's parser, which never sees what stands between the marks of a bracketed paste.

    It sees the marks, for the first may come in parts, each of which could be a key. A paste ends at
    the first end mark; NULs are left out, as Textual does.
    """

    def __init__(self, debug: bool = False) -> None:
        self._pasted: list[str] | None = None
        self._escaped = False  # an escape is the last that was read
        self._tail = ""  # of what was read, as much as may be the beginning of the mark that is awaited
        super().__init__(debug)

    def feed(self, data: str) -> Iterable[Message]:
        """The events of what was read; the empty text is the end of it all."""
        if not data:
            yield from super().feed(data)
        while data:
            if self._pasted is None:
                keys, is_whole, data = self._up_to(BRACKETED_PASTE_START, data)
                yield from self._keys(keys)
                self._pasted = [] if is_whole else None
                continue
            text, is_whole, data = self._up_to(BRACKETED_PASTE_END, data)
            self._pasted.append(text)
            if is_whole:
                yield from self._end()

    def _keys(self, keys: str) -> Iterator[Message]:
        """The events of keys; alt with a letter is never waited for."""
        at = int(self._escaped and self._is_waiting)  # what was fed already of what is looked at
        whole = _ESC * at + keys
        for part in filter(None, _ALT.split(whole)):
            yield from map(_as_text, super().feed(part[at:]))
            if _ALT.fullmatch(part) and self._is_waiting:
                self._timeout_time = 0.0  # nothing follows that would make it something else
                yield from self.tick()
            at = 0
        self._escaped = whole.endswith(_ESC)

    @property
    def _is_waiting(self) -> bool:
        return self._timeout_time is not None

    def _end(self) -> Iterator[Message]:
        text = "".join(self._pasted or ())
        self._pasted = None
        yield events.Paste(text.removesuffix(BRACKETED_PASTE_END).replace("\0", ""))
        for event in super().feed(BRACKETED_PASTE_END):
            # to Textual it was a paste of nothing
            if not isinstance(event, events.Paste):
                yield event

    def _up_to(self, mark: str, data: str) -> tuple[str, bool, str]:
        """`data` up to the end of `mark`, be it begun in an earlier read; is it there; what is behind it."""
        joined = self._tail + data
        at = joined.find(mark)
        if at < 0:
            self._tail = joined[1 - len(mark) :]
            return data, False, ""
        end = at + len(mark) - len(self._tail)
        self._tail = ""
        return data[:end], True, data[end:]


def _as_text(event: Message) -> Message:
    if isinstance(event, events.Key) and _is_unprinted_text(event.character or ""):
        return Key(event.key, event.character)
    return event


def _is_unprinted_text(character: str) -> bool:
    if len(character) != 1 or character.isprintable():
        return False
    return unicodedata.category(character) in ("Cf", "Zs") and typed(character) == character
