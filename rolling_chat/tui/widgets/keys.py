"""The bottom row: hints for the keys that work now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding
from textual.color import Color
from textual.widget import Widget

from rolling_chat.tui.keymap import ACTIONS, KeyHint, Keymap, Owner


def bindings_of(owner: Owner) -> list[Binding]:
    """Return the Textual bindings of an owner's actions; the app's keymap may rebind them by id."""
    return [
        Binding(",".join(action.keys), action.action, id=action.name, show=False, priority=True)
        for action in ACTIONS.values()
        if action.owner == owner
    ]


class KeyBar(Widget):
    """A row of keys and what they do; keys that do not fit are omitted from the end."""

    DEFAULT_CSS = """
    KeyBar { height: 1; padding: 0 1; background: $panel; color: $text-muted; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._hints: tuple[KeyHint, ...] = ()

    def show(self, hints: Sequence[KeyHint]) -> None:
        """Draw key hints, most important first."""
        if tuple(hints) != self._hints:
            self._hints = tuple(hints)
            self.refresh()

    def render(self) -> Text:
        """Draw the row."""
        key_style = f"bold {Color.parse(self.app.theme_variables['footer-key-foreground']).hex6}"
        line = Text(no_wrap=True, end="")
        for key, what in self._hints:
            gap = "  " if line else ""
            if cell_len(line.plain) + len(gap) + cell_len(f"{key} {what}") > self.size.width:
                break
            line.append(gap).append(key, key_style).append(f" {what}")
        return line


@dataclass(frozen=True, slots=True)
class Moment:
    """The state that decides which keys work."""

    busy: bool = False
    waiting: bool = False
    drafting: bool = False
    completing: bool = False
    mentioning: bool = False
    can_carry_on: bool = False
    has_plan: bool = False  # an answer in plan mode, which could be carried out
    scrolled_up: bool = False
    searching: bool = False
    finding: bool = False
    is_find_unfocused: bool = False  # the find bar is open, but has no focus
    summarizing: bool = False  # by request
    reading: Sequence[KeyHint] = ()
    next_to_paste: bool = False
    newline_key: str = "ctrl+j"
    vim: str = ""  # the mode of the vim keys; empty if they are off
    answers: tuple[KeyHint, ...] = ()
    escapes: str = ""  # the answer that esc gives to a question without focus
    sends_words: bool = False  # Enter sends the draft with the answer to a question
    keymap: Keymap = field(default_factory=Keymap)


def key_hints(moment: Moment) -> list[KeyHint]:
    """Return hints for the keys that work now, most important first."""
    hints = _hints(moment)
    match moment.vim:
        case "normal":
            return [("i", "type (normal mode)"), *hints]
        case "visual":
            return [("d c y", "delete, change, copy (visual mode)"), ("esc", "end it"), *hints]
        case "insert" if not (moment.completing or moment.searching):
            return [("esc esc" if key == "esc" else key, what) for key, what in hints]
    return hints


def _hints(moment: Moment) -> list[KeyHint]:
    hint = moment.keymap.hint
    if moment.answers:
        return [*moment.answers, hint("quit")]
    if moment.finding:
        return [("enter", "next"), ("↑↓", "previous, next"), ("esc", "close"), hint("quit")]
    if moment.completing:
        return [
            ("tab", "complete"),
            ("enter", "attach" if moment.mentioning else "run"),
            ("↑↓", "choose"),
            ("esc", "close"),
        ]
    if moment.searching:
        return [("ctrl+r", "older"), ("enter", "take"), ("esc", "back")]
    if moment.reading:
        return [*moment.reading, hint("quit")]
    close = "close find" if moment.is_find_unfocused else ""
    down = [hint("end")] if moment.scrolled_up else []
    unfold = [("tab", "unfold")] if moment.next_to_paste else []
    rest = [
        *unfold,
        *down,
        (moment.newline_key, "newline"),
        ("/", "commands"),
        hint("help"),
        hint("details"),
    ]
    context, sends = hint("context"), _sending(moment)
    if moment.escapes:
        # next to a folded paste, tab unfolds it first
        tab = [] if unfold else [("tab", "answer")]
        return [*tab, ("esc", close or moment.escapes), *sends, *rest, context]
    if moment.busy:
        return [("esc", close or "stop"), *sends, *rest, context]
    stops = close or ("stop the summary" if moment.summarizing else "")
    escape = [("esc", stops)] if stops else []
    do_it = [hint("carry_out")] if moment.has_plan else []
    return [*do_it, *sends, *escape, *rest, hint("quit"), context, hint("find"), hint("read"), hint("mode")]


def _sending(moment: Moment) -> list[KeyHint]:
    """Return the hints for sending the draft and for taking back a waiting message."""
    if moment.sends_words:
        return [("enter", "refuse, with this")]
    if not moment.busy:
        return [("enter", "go on" if moment.can_carry_on else "send")]
    if moment.waiting and not moment.drafting:
        return [("up", "take back")]
    return [("enter", "send now"), ("alt+enter", "send after")]
