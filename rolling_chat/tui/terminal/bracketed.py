"""Parse terminal input so that pasted text is never keys, whatever control characters it contains.

Textual's parser has three faults here. It reads escape sequences within a bracketed paste as keys, so that
pasting colored output with a line end would press Enter. It waits a tenth of a second after alt with a
letter; if the next key arrives sooner, as with a held key, both become text. And it drops characters that
Python calls unprintable, such as the joiners of Persian, Hindi and emoji, and the wide space of Chinese and
Japanese.
"""

from __future__ import annotations

import codecs
import re
import select
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.keys import Keys
from textual.message import Message

from rolling_chat.text import typed
from rolling_chat.tui.terminal.sequences import Sequences, proper_text

if sys.platform == "win32":
    from textual.drivers import win32 as reader
else:
    from textual.drivers import linux_driver as reader


# alt with a key that does not begin a longer sequence
_ALT = re.compile("\x1b[^\x1b\\[\\]OPX^_]")


class Key(events.Key):
    """A key whose character is text although Python calls it unprintable.

    Named `Key` because Textual finds handlers by class name.
    """

    @property
    def is_printable(self) -> bool:
        """True: a terminal can print the character."""
        return True


def keep_pastes_whole() -> None:
    """Make Textual parse the terminal's input with a `PasteParser` from now on."""
    # Textual creates them by these names inside a long method, so only the names can be replaced
    reader.XTermParser = PasteParser  # type: ignore[attr-defined]
    if sys.platform != "win32":
        reader.XTermParser = partial(PasteParser, has_input=_has_input)  # type: ignore[assignment, attr-defined]
        reader.getincrementaldecoder = _lenient_decoder  # type: ignore[assignment, attr-defined]


def _has_input() -> bool:
    """Return whether there is unread input from the terminal."""
    return sys.__stdin__ is not None and bool(select.select([sys.__stdin__], [], [], 0)[0])


def _lenient_decoder(encoding: str) -> Callable[[], codecs.IncrementalDecoder]:
    """Return a decoder that passes invalid UTF-8, which old mouse reports contain."""
    return partial(codecs.getincrementaldecoder(encoding), errors="surrogateescape")


class PasteParser(XTermParser):
    """A parser of terminal input that hides the content of a bracketed paste from Textual's parser.

    Textual's parser still sees the marks, because the first may arrive in parts that could be keys. A paste
    ends at the first end mark; NULs are dropped, as in Textual. An incomplete sequence does not time out
    while `has_input` is true: on a busy machine this process may be late, not the terminal.
    """

    def __init__(self, debug: bool = False, *, has_input: Callable[[], bool] = lambda: False) -> None:
        self._has_input = has_input
        self._pasted: list[str] | None = None
        self._sequences = Sequences()
        self._tail = ""  # end of the input so far, which may begin the awaited mark
        super().__init__(debug)

    def feed(self, data: str) -> Iterable[Message]:
        """Yield the events of the input `data`; an empty string ends the input."""
        if not data:
            yield from self._overdue(now=True)
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

    def tick(self) -> Iterable[Message]:
        """Yield the events of incomplete input that was not completed in time."""
        if not self._has_input():
            yield from self._overdue()
        yield from super().tick()

    def _overdue(self, *, now: bool = False) -> Iterator[Message]:
        if held := self._sequences.overdue(now=now):
            yield from self._piece(held, is_whole=True)

    def _keys(self, keys: str) -> Iterator[Message]:
        """Yield the events of typed keys, without delaying alt with a letter."""
        for piece in self._sequences.take(keys):
            yield from self._piece(piece, is_whole=_ALT.fullmatch(piece) is not None)

    def _piece(self, piece: str, *, is_whole: bool) -> Iterator[Message]:
        yield from map(_as_text, super().feed(piece))
        if is_whole and self._timeout_time is not None:
            self._timeout_time = 0.0  # it is complete: do not wait for more
            yield from map(_as_text, super().tick())

    def parse_mouse_code(self, code: str) -> Message | None:
        """Return the event of a mouse report; None if its figures are out of range."""
        try:
            return super().parse_mouse_code(code)
        except (ArithmeticError, ValueError):
            return None

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        """Return the key events of a sequence; code points that are no characters become ignored keys."""
        if alt and sequence == "\r":  # Textual drops the alt of named keys
            return [events.Key("alt+enter", None)]
        try:
            keys = list(super()._sequence_to_key_events(sequence, alt))
        except (ArithmeticError, ValueError):
            return [events.Key(Keys.Ignore, sequence)]
        return [key if _is_character(key) else events.Key(Keys.Ignore, sequence) for key in keys]

    def _end(self) -> Iterator[Message]:
        text = "".join(self._pasted or ())
        self._pasted = None
        yield events.Paste(proper_text(text.removesuffix(BRACKETED_PASTE_END)).replace("\0", ""))
        for event in super().feed(BRACKETED_PASTE_END):
            # Textual saw an empty paste
            if not isinstance(event, events.Paste):
                yield event

    def _up_to(self, mark: str, data: str) -> tuple[str, bool, str]:
        """Split `data` after `mark`, which may begin in an earlier read.

        Returns the part up to the end of the mark, whether the mark was found, and the rest.
        """
        joined = self._tail + data
        at = joined.find(mark)
        if at < 0:
            self._tail = joined[1 - len(mark) :]
            return data, False, ""
        end = at + len(mark) - len(self._tail)
        self._tail = ""
        return data[:end], True, data[end:]


def _is_character(key: events.Key) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in key.character or "")


def _as_text(event: Message) -> Message:
    if isinstance(event, events.Key) and _is_unprinted_text(event.character or ""):
        return Key(event.key, event.character)
    return event


def _is_unprinted_text(character: str) -> bool:
    if len(character) != 1 or character.isprintable():
        return False
    return unicodedata.category(character) in ("Cf", "Zs") and typed(character) == character
