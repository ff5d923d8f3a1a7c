"""The one table of keys and their descriptions: the source of bindings, hints, help and README.

`[keys]` in the settings binds named actions to other keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from rolling_chat.settings.load import nearest
from rolling_chat.text import one_line

KeyHint: TypeAlias = tuple[str, str]
Owner: TypeAlias = Literal["app", "chat", "reader"]

_SHOWN = {"escape": "esc", "ctrl+underscore": "ctrl+_"}
_MAX_CHARS = 40  # of a quoted setting, in a warning


@dataclass(frozen=True, slots=True)
class Action:
    """An action whose keys the settings can change.

    `name` is its name in `[keys]`, `keys` are its default keys, `action` is the Textual action, defined by
    `owner`; `hint` is its label in the bottom row.
    """

    name: str
    keys: tuple[str, ...]
    owner: Owner
    action: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One line of the help: actions, or fixed keys, which `shown` spells for the user."""

    help: str
    actions: tuple[Action, ...] = ()
    fixed: tuple[str, ...] = ()
    shown: str = ""


def _fixed(shown: str, help: str, *keys: str) -> KeyRow:
    return KeyRow(help, fixed=keys, shown=shown)


def _move(name: str, how: str, step: int, *keys: str) -> Action:
    return Action(name, keys, "reader", f"move('{how}', {step})", "newest" if name == "end" else "")


KEYS: tuple[KeyRow, ...] = (
    _fixed("enter", "send, also while the model works; on a slash command, run it", "enter"),
    _fixed("alt+enter", "new line; while the model works: send when it is done", "alt+enter"),
    _fixed(
        "shift+enter, ctrl+j",
        "new line (shift+enter only if the terminal reports it)",
        "shift+enter",
        "ctrl+j",
    ),
    _fixed(
        "up, down", "on the first or last line: waiting messages, or the ones you sent before", "up", "down"
    ),
    _fixed("ctrl+r", "search what you sent; again for older, enter to use it, esc for your draft", "ctrl+r"),
    _fixed("tab", "complete a command; next to a folded paste, unfold it; go to a question", "tab"),
    _fixed(
        "@", "attach a file or a folder: @src/x.py, @src/x.py:10-20, @src; tab or enter completes it", "at"
    ),
    _fixed("ctrl+x ctrl+e", "edit the draft in $VISUAL or $EDITOR", "ctrl+x"),
    _fixed(
        "1-6, up, down",
        "in a question: choose an answer, enter gives it; pageup, pagedown scroll it",
    ),
    _fixed(
        "esc",
        "say no to a question; otherwise stop the answer or /compact; hide a banner",
        "escape",
    ),
    _fixed("ctrl+c", "copy the selection; otherwise clear the draft or stop; twice quits", "ctrl+c"),
    KeyRow(
        "open or fold thinking and tool results",
        (Action("details", ("ctrl+o",), "chat", "details", "details"),),
    ),
    KeyRow(
        "what needs approval: commands and edits, only commands (edits), or nothing runs (plan, read-only)",
        (Action("mode", ("f4",), "chat", "mode", "mode"),),
    ),
    KeyRow(
        "in plan mode: go on with edits and carry out the plan",
        (Action("carry_out", ("f3",), "chat", "carry_out", "do it"),),
    ),
    KeyRow(
        "attach the picture on the clipboard (/paste)",
        (Action("paste_picture", ("alt+v",), "chat", "paste_picture"),),
    ),
    KeyRow(
        "the next request, message by message (/context)",
        (Action("context", ("ctrl+g",), "chat", "context", "context"),),
    ),
    KeyRow(
        "what was lost: names in dropped messages that the summary does not mention (/lost)",
        (Action("lost", ("f7",), "chat", "lost", "what was lost"),),
    ),
    KeyRow(
        "scroll; at the end, new text is followed again",
        (_move("page_up", "pages", -1, "pageup"), _move("page_down", "pages", 1, "pagedown")),
    ),
    KeyRow(
        "scroll by a line",
        (_move("line_up", "lines", -1, "ctrl+up"), _move("line_down", "lines", 1, "ctrl+down")),
    ),
    KeyRow(
        "to the beginning, to the end",
        (_move("start", "edge", -1, "ctrl+home"), _move("end", "edge", 1, "ctrl+end")),
    ),
    KeyRow(
        "the previous, the next message",
        (_move("previous", "messages", -1, "alt+up"), _move("next", "messages", 1, "alt+down")),
    ),
    KeyRow(
        "your previous, your next message",
        (
            _move("previous_own", "yours", -1, "alt+p", "alt+shift+up"),
            _move("next_own", "yours", 1, "alt+n", "alt+shift+down"),
        ),
    ),
    KeyRow(
        "find in the conversation; enter or down: next, up or shift+enter: previous",
        (Action("find", ("ctrl+f",), "reader", "find", "find"),),
    ),
    KeyRow(
        "read with a cursor; any other typing goes to the prompt box",
        (Action("read", ("f6", "shift+tab"), "reader", "read", "read"),),
    ),
    KeyRow("this help", (Action("help", ("f1",), "chat", "help", "help"),)),
    _fixed("ctrl+_, ctrl+y", "undo and redo in the prompt box", "ctrl+underscore", "ctrl+y"),
    _fixed("ctrl+a, ctrl+e", "to the beginning, the end of the line", "ctrl+a", "ctrl+e"),
    _fixed("alt+b, alt+f", "to the previous, the next word", "alt+b", "alt+f"),
    _fixed("ctrl+w, alt+d", "delete the word before, after the cursor", "ctrl+w", "alt+d"),
    _fixed("ctrl+u, ctrl+k", "delete to the beginning, the end of the line", "ctrl+u", "ctrl+k"),
    KeyRow("back to the shell; fg returns", (Action("suspend", ("ctrl+z",), "app", "suspend_process"),)),
    KeyRow("quit; the session is kept", (Action("quit", ("ctrl+q",), "app", "quit", "quit"),)),
)

READING_KEYS: tuple[tuple[str, str], ...] = (
    ("up, down, j, k", "a line; left, right, ctrl+left, ctrl+right: a character, a word"),
    ("home, end, g, G", "to the beginning, to the end; pages as usual"),
    ("p, n", "the previous, the next message"),
    ("u, U", "your previous, your next message"),
    ("shift+arrows", "select; with ctrl words; shift+home, shift+end to the ends of the row"),
    ("v", "select with the plain keys; esc ends it"),
    ("y, ctrl+c", "copy the selection, or the line"),
    ("c, m", "copy the code block, the message under the cursor"),
    ("e, o", "open the message in $VISUAL or $EDITOR, as a copy; in $PAGER"),
    ("enter", "open or fold thinking and a tool's work"),
    ("/", "find"),
    ("esc", "back to the prompt"),
)

ACTIONS: Mapping[str, Action] = MappingProxyType(
    {action.name: action for row in KEYS for action in row.actions}
)
_FIXED = frozenset(key for row in KEYS for key in row.fixed)


@dataclass(frozen=True)
class Keymap:
    """The keys of the actions; `warnings` are lines about settings that could not be applied."""

    changed: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, wanted: Mapping[str, Iterable[str]]) -> Keymap:
        """Apply the settings `wanted` (keys by action), rejecting those that bind a key twice."""
        changed: dict[str, tuple[str, ...]] = {}
        warnings: list[str] = []
        for name, texts in wanted.items():
            keys = tuple(map(_normalized, texts))
            fault = _fault(name, keys)
            if fault:
                warnings.append(fault)
            else:
                changed[name] = keys
        while clash := _clash(changed):
            name, key, other = clash
            del changed[name]
            warnings.append(f"[keys] {name}: {_written(key)} is {other}'s already; {name} keeps its keys.")
        return cls(MappingProxyType(changed), tuple(warnings))

    def keys(self, name: str) -> tuple[str, ...]:
        """Return the keys of an action."""
        return self.changed.get(name) or ACTIONS[name].keys

    def hint(self, name: str) -> KeyHint:
        """Return the first key of an action, and its word for the row of key hints."""
        return _written(self.keys(name)[0]), ACTIONS[name].hint

    def help(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of the help: keys, and what they do."""
        for row in KEYS:
            keys = [self.keys(action.name) for action in row.actions]
            if len(keys) <= 1:
                yield row.shown or ", ".join(map(_written, keys[0])), row.help
                continue
            others = [_written(key) for own in keys for key in own[1:]]
            also = f"; also {', '.join(others)}" if others else ""
            yield ", ".join(_written(own[0]) for own in keys), row.help + also


def _normalized(text: str) -> str:
    key = text.strip()
    key = key.lower() if len(key) > 1 else key
    return {"esc": "escape", "ctrl+_": "ctrl+underscore"}.get(key, key)


def _written(key: str) -> str:
    return _SHOWN.get(key, key)


def _fault(name: str, keys: tuple[str, ...]) -> str:
    """Return what is wrong with one line of `[keys]` by itself; empty if nothing is."""
    if name not in ACTIONS:
        near = nearest(name, list(ACTIONS))
        hint = f"did you mean {near}?" if near else f"there are {', '.join(ACTIONS)}."
        return f"[keys] {one_line(name, _MAX_CHARS)}: no such action; {hint}"
    if not keys or not all(keys):
        return f"[keys] {name}: no key is given; it keeps its keys."
    typed = next((key for key in keys if len(key) == 1 or "," in key), "")
    if typed:
        return f"[keys] {name}: {one_line(typed, _MAX_CHARS)} is text; take a key such as ctrl+t or f5."
    taken = next((key for key in keys if key in _FIXED), "")
    return f"[keys] {name}: {_written(taken)} cannot be changed; {name} keeps its keys." if taken else ""


def _clash(changed: Mapping[str, tuple[str, ...]]) -> tuple[str, str, str] | None:
    """Return a changed action, one of its keys, and the other action bound to it; None without a clash."""
    owners: dict[str, str] = {}
    # changed actions come last, so that they lose a clash
    for name in sorted(ACTIONS, key=lambda name: name in changed):
        for key in changed.get(name) or ACTIONS[name].keys:
            other = owners.setdefault(key, name)
            if other != name:
                return name, key, other
    return None
