"""Vim keys for a text: translate keys to edits and cursor moves. No Textual here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from rolling_chat.tui.drafts.vim_motions import (
    INCLUSIVE,
    MOTIONS,
    Span,
    find_on_line,
    first_word,
    last_on_line,
    line_end,
    line_start,
    text_object,
    vertical,
)

_MAX_COUNT = 999
_OPERATORS = frozenset("dcy")
_FINDS = frozenset("fFtT")
_ARROWS = {"left": "h", "right": "l", "up": "k", "down": "j", "home": "0", "end": "$", "backspace": "h"}
# abbreviations of operator and motion
_SHORT = {"x": "dl", "X": "dh", "s": "cl", "D": "d$", "C": "c$", "S": "cc", "Y": "yy"}


class Mode(StrEnum):
    """The meaning of a letter: it is inserted, is a command, or moves the end of a selection."""

    INSERT = "insert"
    NORMAL = "normal"
    VISUAL = "visual"


class Ask(StrEnum):
    """Something that only the text area can do."""

    UNDO = "undo"
    REDO = "redo"
    OLDER = "older"  # the previous prompt, by k on the first line
    NEWER = "newer"


@dataclass(frozen=True, slots=True)
class Step:
    """The effect of a key: text to replace, the new cursor, and requests to the text area.

    `cursor` is an index in the text after the edit. `selected` is the other end of a selection.
    """

    cursor: int
    edit: tuple[int, int, str] | None = None
    selected: int | None = None
    asks: tuple[Ask, ...] = ()


@dataclass(frozen=True, slots=True)
class _Pending:
    """The keys of an incomplete command: counts, operator, and a key that `wants` one more."""

    count: str = ""
    operator: str = ""
    operator_count: str = ""
    wants: str = ""  # f, F, t, T, r, g, i or a

    @property
    def times(self) -> int:
        """How often to repeat the command."""
        return min(_MAX_COUNT, int(self.count or 1) * int(self.operator_count or 1))


@dataclass(slots=True)
class VimKeys:
    """The state of vim keys in one prompt box: mode, register, the command being typed, the last change."""

    mode: Mode = Mode.INSERT
    register: str = ""
    is_linewise: bool = False
    _pending: _Pending = field(default_factory=_Pending)
    _keys: list[str] = field(default_factory=list)
    _last_change: tuple[str, ...] = ()
    _last_inserted: str = ""
    _inserts_from: int | None = None
    _last_find: tuple[str, str] = ("", "")
    _anchor: int = 0

    @property
    def is_typing(self) -> bool:
        """Whether part of a command was typed, which Esc discards."""
        return self._pending != _Pending()

    def escape(self, text: str, cursor: int) -> Step | None:
        """End inserting, a selection, or the command being typed; None if there was nothing to end."""
        if self.mode is Mode.NORMAL:
            was_typing = self.is_typing
            self._forget()
            return Step(cursor) if was_typing else None
        if self.mode is Mode.INSERT and self._inserts_from is not None:
            self._last_inserted = text[self._inserts_from : cursor] if cursor > self._inserts_from else ""
        was_inserting = self.mode is Mode.INSERT
        self.mode, self._inserts_from = Mode.NORMAL, None
        self._forget()
        back = cursor - 1 if was_inserting and cursor > line_start(text, cursor) else cursor
        return Step(min(back, last_on_line(text, cursor)))

    def return_to_insert(self) -> None:
        """Return to insert mode, as in a box that was just emptied."""
        self.mode, self._inserts_from = Mode.INSERT, None
        self._forget()

    def press(self, key: str, text: str, cursor: int) -> Step | None:
        """Handle a key in normal or visual mode: a character, or a name such as "left".

        Returns None for a named key that vim does not use. A letter that is no command changes nothing.
        """
        key = _ARROWS.get(key, key)
        if len(key) > 1 and key != "ctrl+r":
            return None
        self._keys.append(key)
        step = self._read_key(key, text, cursor)
        if not self.is_typing:
            self._keys.clear()
        return step or Step(cursor, selected=self._anchor if self.mode is Mode.VISUAL else None)

    # -- reading a command

    def _read_key(self, key: str, text: str, cursor: int) -> Step | None:
        """Run the command once it is complete; return None until then, or if there is no such command."""
        pending = self._pending
        if pending.wants:
            return self._read_wanted_key(key, text, cursor)
        if key.isdecimal() and (key != "0" or pending.count):
            self._pending = replace(pending, count=(pending.count + key)[-3:])
            return None
        if (
            key in _FINDS
            or key in {"r", "g"}
            or (key in {"i", "a"} and (pending.operator or self._is_visual))
        ):
            self._pending = replace(pending, wants=key)
            return None
        if self._is_visual:
            return self._done(self._in_visual(key, text, cursor))
        if key in _OPERATORS and not pending.operator:
            self._pending = _Pending(operator=key, operator_count=pending.count)
            return None
        if pending.operator:
            return self._done(self._operate_by(key, text, cursor))
        return self._done(self._in_normal(key, text, cursor))

    def _read_wanted_key(self, key: str, text: str, cursor: int) -> Step | None:
        pending = self._pending
        wanted = pending.wants
        if wanted == "r":
            return self._done(self._replace_characters(key, text, cursor))
        if wanted in {"i", "a"}:
            span = text_object(text, cursor, key, around=wanted == "a")
            if span is None:
                return self._done(None)
            if self._is_visual:
                self._anchor = span[0]
                return self._done(self._selecting(text, max(span[0], span[1] - 1)))
            return self._done(self._operate(text, span))
        if wanted == "g":
            target = first_word(text, 0) if key == "g" else None
            return self._done(self._move_or_operate(target, text, cursor, linewise=True))
        self._last_find = (wanted, key)
        return self._done(
            self._move_or_operate(self._found(text, cursor), text, cursor, inclusive=wanted in "ft")
        )

    def _done(self, step: Step | None) -> Step | None:
        self._pending = _Pending()
        return step

    # -- moves

    def _target(self, key: str, text: str, cursor: int) -> int | None:
        """Return the target index of a motion; None if the key is no motion."""
        times = self._pending.times
        match key:
            case "j" | "k":
                return vertical(text, cursor, times if key == "j" else -times)
            case "G":
                at = vertical(text, 0, times - 1) if self._pending.count else line_start(text, len(text))
                return first_word(text, at)
            case ";" | ",":
                return self._found(text, cursor, turned=key == ",")
        motion = MOTIONS.get(key)
        if motion is None:
            return None
        at = cursor
        for _ in range(times):
            at = motion(text, at)
        return at

    def _found(self, text: str, cursor: int, *, turned: bool = False) -> int | None:
        how, character = self._last_find
        if not how:
            return None
        forward = (how in "ft") is not turned
        at: int | None = cursor
        for _ in range(self._pending.times):
            near = 0
            if how in "tT" and (turned or self._keys[-1:] == [";"]):
                near = 1 if forward else -1  # already next to a match: search beyond it
            at = find_on_line(text, (at or 0) + near, character, forward=forward, before=how in "tT")
            if at is None:
                return None
        return at

    def _move_or_operate(
        self, target: int | None, text: str, cursor: int, *, inclusive: bool = False, linewise: bool = False
    ) -> Step | None:
        """Move to an index, or apply the operator up to it."""
        if target is None:
            return None
        if self._is_visual:
            return self._selecting(text, target)
        if not self._pending.operator:
            return Step(min(target, last_on_line(text, target)))
        start, end = sorted((cursor, target))
        if not (linewise or inclusive) and line_start(text, start) < end == line_start(text, end):
            # vim's own rule: an exclusive motion keeps the last line feed, or becomes linewise
            linewise = start <= first_word(text, start)
            end -= 1
        if linewise:
            return self._operate(text, _lines(text, start, end), linewise=True)
        return self._operate(text, (start, min(len(text), end + inclusive)))

    # -- operators

    def _operate_by(self, key: str, text: str, cursor: int) -> Step | None:
        operator = self._pending.operator
        if key == operator:
            last, below = vertical(text, cursor, self._pending.times - 1), self._pending.times - 1
            if text.count("\n", line_start(text, cursor), line_start(text, last)) < below:
                return None  # too few lines
            return self._operate(text, _lines(text, cursor, last), linewise=True)
        if key in "jk":
            other = self._target(key, text, cursor)
            is_there = other is not None and line_start(text, other) != line_start(text, cursor)
            return self._move_or_operate(other, text, cursor, linewise=True) if is_there else None
        if key == "G":
            return self._move_or_operate(self._target(key, text, cursor), text, cursor, linewise=True)
        if operator == "c" and key in "wW" and text[cursor : cursor + 1].strip():
            return self._change_words(key, text, cursor)
        target = self._target(key, text, cursor)
        if target is not None and key in "wW":
            target = _without_line_feed(text, cursor, target)
        return self._move_or_operate(target, text, cursor, inclusive=key in INCLUSIVE)

    def _change_words(self, key: str, text: str, cursor: int) -> Step | None:
        """Replace the rest of the word, and further words by count, keeping the space after them."""
        end = cursor
        for at in range(self._pending.times):
            word = text_object(text, end, key, around=False)
            is_at_end = at == 0 and word is not None and word[1] == cursor + 1
            end = cursor if is_at_end else MOTIONS["e" if key == "w" else "E"](text, end)
        return self._operate(text, (cursor, min(len(text), end + 1)))

    def _operate(self, text: str, span: Span, *, linewise: bool = False) -> Step | None:
        """Copy a part of the text, and delete it or begin to insert in its place."""
        start, end = span
        operator = self._pending.operator
        if not linewise and start >= end and operator != "c":
            return None
        self.register, self.is_linewise = text[start:end], linewise
        if operator == "y":
            return Step(start)
        self._remember_change()
        if operator == "c":
            if linewise and text[start:end].endswith("\n"):
                end -= 1
            return self._insert_at(start, edit=(start, end, ""))
        if linewise and end == len(text) and start > 0 and not text[start:end].endswith("\n"):
            start -= 1  # delete the last line with the line feed before it
        after = text[:start] + text[end:]
        cursor = (
            first_word(after, min(start, len(after))) if linewise else min(start, last_on_line(after, start))
        )
        return Step(cursor, (start, end, ""))

    def _replace_characters(self, character: str, text: str, cursor: int) -> Step | None:
        end = cursor + self._pending.times
        if len(character) != 1 or end > line_end(text, cursor):
            return None
        self._remember_change()
        return Step(end - 1, (cursor, end, character * (end - cursor)))

    # -- the other commands of normal mode

    def _in_normal(self, key: str, text: str, cursor: int) -> Step | None:
        if key in _SHORT:
            return self._spelled_out(_SHORT[key], text, cursor)
        target = self._target(key, text, cursor)
        if target is not None:
            return self._moved(key, target, text, cursor)
        match key:
            case "i" | "a" | "I" | "A" | "o" | "O":
                return self._begin_inserting(key, text, cursor)
            case "p" | "P":
                return self._paste(text, cursor, before=key == "P")
            case "u" | "ctrl+r":
                ask = Ask.UNDO if key == "u" else Ask.REDO
                return Step(cursor, asks=(ask,) * self._pending.times)
            case "~":
                return self._switch_case(text, cursor)
            case "J":
                return self._join(text, cursor)
            case "v":
                self.mode, self._anchor = Mode.VISUAL, cursor
                return self._selecting(text, cursor)
            case ".":
                return self._repeat_change(text, cursor)
        return None

    def _moved(self, key: str, target: int, text: str, cursor: int) -> Step:
        """Move to an index; beyond the first or last line, to the previous or next prompt."""
        if key == "k" and line_start(text, cursor) == 0:
            return Step(cursor, asks=(Ask.OLDER,))
        if key == "j" and line_end(text, cursor) == len(text):
            return Step(cursor, asks=(Ask.NEWER,))
        return Step(min(target, last_on_line(text, target)))

    def _spelled_out(self, keys: str, text: str, cursor: int) -> Step | None:
        self._pending = replace(self._pending, operator=keys[0], operator_count=self._pending.count, count="")
        return self._operate_by(keys[1], text, cursor)

    def _begin_inserting(self, key: str, text: str, cursor: int) -> Step:
        self._remember_change()
        match key:
            case "a":
                return self._insert_at(min(cursor + 1, line_end(text, cursor)))
            case "I":
                return self._insert_at(first_word(text, cursor))
            case "A":
                return self._insert_at(line_end(text, cursor))
            case "o":
                end = line_end(text, cursor)
                return self._insert_at(end + 1, edit=(end, end, "\n"))
            case "O":
                start = line_start(text, cursor)
                return self._insert_at(start, edit=(start, start, "\n"))
        return self._insert_at(cursor)

    def _insert_at(self, index: int, *, edit: tuple[int, int, str] | None = None) -> Step:
        self.mode, self._inserts_from = Mode.INSERT, index
        return Step(index, edit)

    def _paste(self, text: str, cursor: int, *, before: bool) -> Step | None:
        if not self.register:
            return None
        self._remember_change()
        times = self._pending.times
        if not self.is_linewise:
            at = cursor if before or line_end(text, cursor) == cursor else cursor + 1
            put = self.register * times
            return Step(at + len(put) - 1, (at, at, put))
        lines = "\n".join([self.register.removesuffix("\n")] * times)
        indent = len(lines) - len(lines.lstrip())
        if before:
            at = line_start(text, cursor)
            return Step(at + indent, (at, at, f"{lines}\n"))
        at = line_end(text, cursor)
        return Step(at + 1 + indent, (at, at, f"\n{lines}"))

    def _switch_case(self, text: str, cursor: int) -> Step | None:
        end = min(cursor + self._pending.times, line_end(text, cursor))
        if end == cursor:
            return None
        self._remember_change()
        part = text[cursor:end].swapcase()
        return Step(min(cursor + len(part), last_on_line(text, cursor)), (cursor, end, part))

    def _join(self, text: str, cursor: int) -> Step | None:
        end = line_end(text, cursor)
        if end == len(text):
            return None
        self._remember_change()
        after = end + 1
        while after < len(text) and text[after] in " \t":
            after += 1
        is_joined = text[end - 1 : end].isspace() or text[after : after + 1] in {"", "\n", ")"} or end == 0
        return Step(end, (end, after, "" if is_joined else " "))

    # -- visual mode

    @property
    def _is_visual(self) -> bool:
        return self.mode is Mode.VISUAL

    def _selecting(self, text: str, cursor: int) -> Step:
        """Select from the anchor to the cursor, inclusive."""
        cursor = min(cursor, len(text))
        return Step(cursor, selected=self._anchor)

    def _in_visual(self, key: str, text: str, cursor: int) -> Step | None:
        target = self._target(key, text, cursor)
        if target is not None:
            return self._selecting(text, min(target, last_on_line(text, target)))
        start, end = sorted((self._anchor, cursor))
        span = start, min(len(text), end + 1)
        match key:
            case "v":
                self.mode = Mode.NORMAL
                return Step(cursor)
            case "o":
                self._anchor, cursor = cursor, self._anchor
                return self._selecting(text, cursor)
            case "d" | "x" | "c" | "s" | "y":
                self.mode = Mode.NORMAL
                self._pending = _Pending(operator={"x": "d", "s": "c"}.get(key, key))
                step = self._operate(text, span)
                self._last_change = ()  # a selection cannot be repeated
                return step or Step(cursor)
            case "~":
                self.mode = Mode.NORMAL
                return Step(start, (*span, text[slice(*span)].swapcase()))
        return None

    # -- repeating the last change

    def _remember_change(self) -> None:
        if self._keys != ["."]:
            self._last_change = tuple(self._keys)

    def _repeat_change(self, text: str, cursor: int) -> Step | None:
        """Repeat the last change, with the text that was inserted with it."""
        if not self._last_change:
            return None
        keys, inserted, count = self._last_change, self._last_inserted, self._pending.count
        self._pending = _Pending(count=count)
        step: Step | None = None
        self._keys.clear()
        for key in keys:
            self._keys.append(key)
            step = self._read_key(key, text, cursor)
        self._last_change = keys
        if step is None or self.mode is not Mode.INSERT:
            return step
        self.mode, self._inserts_from, self._last_inserted = Mode.NORMAL, None, inserted
        start, end, written = step.edit or (step.cursor, step.cursor, "")
        before = max(0, step.cursor - start)
        whole = written[:before] + inserted + written[before:]
        return Step(max(start, start + before + len(inserted) - 1), (start, end, whole))

    def _forget(self) -> None:
        self._pending = _Pending()
        self._keys.clear()


def _without_line_feed(text: str, start: int, end: int) -> int:
    """Return `end`, moved back to the end of its line if a word motion went on to another line."""
    part = text[start:end]
    words = part.rstrip()
    feed = part.find("\n", len(words))
    return end if feed < 0 else start + feed


def _lines(text: str, start: int, end: int) -> Span:
    """Return the whole lines from one index to another, with the line feed after the last, if any."""
    last = line_end(text, max(start, end))
    return line_start(text, min(start, end)), min(len(text), last + 1)
