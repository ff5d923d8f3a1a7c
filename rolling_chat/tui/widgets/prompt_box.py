"""The prompt box: a text area in which Enter sends and up and down walk the history."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from rolling_chat.commands.completing import Offer
from rolling_chat.mentions import MARK, Mention, begins, being_typed
from rolling_chat.tui.drafts.pastes import Draft, drawn
from rolling_chat.tui.widgets.vim_area import VimArea

if TYPE_CHECKING:
    from rolling_chat.tui.drafts.prompt_history import History
    from rolling_chat.tui.widgets.completion import Completion
    from rolling_chat.tui.widgets.search_line import SearchLine

_MAX_ROWS = 6
_FEW_ROWS, _SCREEN_SHARE = 20, 5
_TOO_LONG = "This paste is too long to be edited here; ctrl+x ctrl+e opens it in your editor."


class PromptBox(VimArea):
    """The text area in which the user types; posts `Submitted` on Enter and is emptied at once."""

    DEFAULT_CSS = """
    PromptBox {
        height: 1; padding: 0; border: none; background: $background; color: $foreground;
        scrollbar-size-vertical: 1;
    }
    PromptBox:focus { border: none; }
    PromptBox .text-area--cursor-line { background: $background; }
    """

    # ctrl+z, undo in a plain text area, suspends the program here; the other keys are readline's
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+underscore", "undo", show=False),
        Binding("alt+b", "cursor_word_left", show=False),
        Binding("alt+f", "cursor_word_right", show=False),
        Binding("alt+d", "delete_word_right", show=False),
        Binding("ctrl+b", "cursor_left", show=False),
    ]

    @dataclass
    class Submitted(Message):
        """Posted when the user sent the draft, which is no longer in the box.

        `after_turn`: it was sent by the key that makes it wait for the end of the turn.
        """

        draft: Draft
        after_turn: bool = False

    @dataclass
    class TakeBack(Message):
        """Posted when the user pressed Up in an empty box, to take back a waiting message."""

    @dataclass
    class NewlineKeySeen(Message):
        """Posted when the terminal is found to report shift+enter as a key of its own."""

    @dataclass
    class EditorWanted(Message):
        """Posted when the user wants to edit the draft in an external editor."""

    @dataclass
    class Pasted(Message):
        """Posted after pasted text was inserted into the box."""

        text: str

    @dataclass
    class Said(Message):
        """Posted to show the user a one-line message."""

        line: str

    def __init__(
        self,
        history: History,
        completion: Completion,
        search: SearchLine,
        offer: Callable[[str], Offer],
        *,
        offer_files: Callable[[str], Offer],
        price: Callable[[str], int],
        id: str | None = None,
    ) -> None:
        super().__init__(price, placeholder="Ask anything, or / for commands", id=id)
        self._past = history
        self._completion = completion
        self._search = search
        self._offer = offer
        self._offer_files = offer_files
        self._shift_enter_works = False
        self.takes_back = False
        self.is_busy = False  # a turn runs: alt+enter sends the draft after it
        self._taken_back = ""
        self.painted_at = math.inf
        self._declined = ""
        self._offered = ""
        self._begins_chord = False

    @property
    def searching(self) -> bool:
        """Whether the history is being searched, so that the box may show a search result."""
        return self._search.shown

    @property
    def is_mentioning(self) -> bool:
        """Whether a file is being mentioned before the cursor."""
        return self._mention is not None

    @property
    def own_draft(self) -> Draft:
        """The user's draft, even while a history search shows something else."""
        return self._search.draft if self.searching else self.draft

    def offer(self, text: str) -> None:
        """Put `text` into the box as a suggestion, which is removed if the user types a slash first.

        Mentions in it must already be marked.
        """
        self.put(text)
        self._offered = self.text

    def offer_commands(self) -> None:
        """Show completions for the mention before the cursor or the text, unless the user dismissed them."""
        mention = self._mention
        if mention is not None:
            offer = Offer() if self.text == self._declined else self._offer_files(mention[1])
            self._completion.show(offer.choices, marks_first=offer.runs)
            return
        text = drawn(self.text if self.document.line_count == 1 and not self.searching else "")
        offer = self._offer("" if text == self._declined else text)
        self._completion.show(offer.choices, marks_first=offer.runs)

    def grow(self) -> None:
        """Fit the box's height to its text, up to six rows, or to a fifth of a small screen."""
        height = self.screen.size.height
        max_rows = _MAX_ROWS if height > _FEW_ROWS else max(1, height // _SCREEN_SHARE)
        rows = max(1, min(max_rows, self.wrapped_document.height))
        if self.styles.height is None or self.styles.height.value != rows:
            self.styles.height = rows

    def on_resize(self) -> None:
        """Fit the box's height to its text, which wraps differently at another width."""
        self.grow()

    def cancel_search(self) -> None:
        """End the history search and restore the draft from before it."""
        self.put(self._search.cancel())

    def allow_take_back(self) -> None:
        """Let another Up take back the next waiting message, as long as nothing is typed."""
        self._taken_back = self.text

    def end_search(self) -> None:
        """End the history search, if any, and keep what it found as the draft."""
        if self.searching:
            self._accept_found()

    async def _on_key(self, event: events.Key) -> None:
        """Handle the keys that work differently here than in a plain text area."""
        key = event.key
        if key == "ctrl+j" and event.time < self.painted_at:
            # before the terminal is in raw mode, Enter arrives as a line feed
            key = "enter"
        character = event.character if event.is_printable else None
        if (self.searching and self._seek(key, character)) or self._handle(key, character):
            event.stop()
            event.prevent_default()
        elif not event.is_printable and (bound := self._bindings.key_to_bindings.get(key)):
            # run it now: routed through the app, later keys would overtake it
            event.stop()
            event.prevent_default()
            self._restart_blink()
            await self.run_action(bound[0].action)

    async def _on_paste(self, event: events.Paste) -> None:
        """Insert pasted text into the box, or into the search words during a history search."""
        event.prevent_default()
        event.stop()
        if self.searching:
            self._show_found(self._search.seek(event.text))
        else:
            self.take_in(event.text)
            self.post_message(self.Pasted(event.text))

    def _drop_suggestion(self, key: str) -> None:
        """Remove an untouched suggestion when the key begins a command."""
        if key == "slash" and self._offered and self.text == self._offered:
            self.put("")
        self._offered = ""

    def _handle(self, key: str, character: str | None) -> bool:
        self._drop_suggestion(key)
        self.offer_commands()  # keys may arrive faster than the box's change messages
        is_taken = self._completion.shown and self._complete(key)
        return is_taken or self.take_vim_key(key, character) or self._handle_own(key)

    def _handle_own(self, key: str) -> bool:
        begins_chord, self._begins_chord = self._begins_chord, False
        match key:
            case "enter":
                self._submit(self.draft)
            case "at" if begins(drawn(self.before_cursor)):
                self._put_in(MARK)
            case "alt+enter" if self.is_busy:
                self._submit(self.draft, after_turn=True)
            case "shift+enter" | "ctrl+j" | "alt+enter":
                self._break_line(key)
            case "up" | "down" | "ctrl+p" | "ctrl+n":
                return self._walk(key)
            case "ctrl+r":
                self._show_found(self._search.begin(self._past, self.draft))
            case "tab" if self.is_next_to_paste:
                if not self.unfold():
                    self.post_message(self.Said(_TOO_LONG))
            case "ctrl+x" if self.selection.is_empty:
                self._begins_chord = True
            case "ctrl+e" if begins_chord:
                self.post_message(self.EditorWanted())
            case _:
                return False
        return True

    def _break_line(self, key: str) -> None:
        if key == "shift+enter" and not self._shift_enter_works:
            self._shift_enter_works = True
            self.post_message(self.NewlineKeySeen())
        self._put_in("\n")

    # -- completion

    def _complete(self, key: str) -> bool:
        first, taken = self._completion.first, self._completion.taken
        match key:
            case "up" | "down":
                self._completion.move(-1 if key == "up" else 1)
            case "tab" | "enter" if first is not None and self._mention is not None:
                if key == "enter" and taken is None:
                    return False
                self._mention_file(first.value, goes_on=key == "tab")
            case "tab" if first is not None:
                self.put(first.value if first.value.endswith((" ", "=")) else f"{first.value} ")
            case "enter" if taken is not None:
                self._submit(Draft(taken.value.rstrip()))
            case "escape":
                self._declined = self.text
                self.offer_commands()
            case _:
                return False
        return True

    @property
    def _mention(self) -> tuple[int, str] | None:
        """The start of the mention that ends at the cursor, and its path so far."""
        if MARK not in self.text or self.searching or not self.selection.is_empty:
            return None
        return being_typed(self.before_cursor)

    def _mention_file(self, path: str, *, goes_on: bool) -> None:
        """Complete the mention before the cursor; `goes_on` keeps a folder's mention open for its entries."""
        assert self._mention is not None
        start = self.location_of(self._mention[0])
        spelled = Mention(path).spelled
        text = spelled.removesuffix('"') if goes_on and path.endswith("/") else f"{spelled} "
        self.replace(MARK + text, start, self.cursor_location, maintain_selection_offset=False)

    def type_in(self, text: str) -> None:
        """Insert text that was typed while another widget had the focus."""
        if text == "@" and begins(drawn(self.before_cursor)):
            self._put_in(MARK)
        else:
            self.take_in(text)

    def mention(self, path: str) -> None:
        """Insert a mention of a file, as if it were typed."""
        gap = "" if not self.before_cursor or self.before_cursor[-1].isspace() else " "
        self._put_in(f"{gap}{MARK}{Mention(path).spelled} ")

    def _submit(self, draft: Draft, *, after_turn: bool = False) -> None:
        self.post_message(self.Submitted(draft, after_turn))
        self.return_to_insert()
        if self.text:
            self.put("")

    # -- the history

    def _walk(self, key: str) -> bool:
        """Move a row up or down, or through the history from the first and last row."""
        match key:
            case "up" | "ctrl+p" if self._on_first_row:
                self.older()
            case "down" | "ctrl+n" if self._on_last_row:
                self.newer()
            case "ctrl+p":
                self.action_cursor_up()
            case "ctrl+n":
                self.action_cursor_down()
            case _:
                return False
        return True

    def older(self) -> None:
        """Take back the newest waiting message, or else show the previous message sent."""
        if self.takes_back and self.text in ("", self._taken_back):
            self.post_message(self.TakeBack())
            return
        older = self._past.older(self.draft)
        if older is not None:
            self.put(older)

    def newer(self) -> None:
        """Show the next message sent, or after the last one the user's own draft."""
        newer = self._past.newer()
        if newer is not None:
            self.put(newer)

    def _seek(self, key: str, character: str | None) -> bool:
        """Handle a key during a history search; return False if the key is not part of the search."""
        search = self._search
        match key:
            case "ctrl+r":
                self._show_found(search.older())
            case "backspace":
                self._show_found(search.shorten())
            case "escape":
                self.cancel_search()
            case "enter" | "tab":
                self._accept_found()
            case _ if character is not None:
                self._show_found(search.seek(character))
            case _:
                self._accept_found()
                return False
        return True

    def _accept_found(self) -> None:
        """Keep the search result as the draft, or restore the draft if there is none."""
        found, before = self._search.found, self._search.cancel()
        if not found:
            self.put(before)
        self.post_message(self.Changed(self))

    def _show_found(self, draft: Draft) -> None:
        self.put(draft)
        at = self.text.lower().find(self._search.words.lower()) if self._search.words else -1
        if at >= 0:
            row, begin = self.text.count("\n", 0, at), self.text.rfind("\n", 0, at) + 1
            start = (row, at - begin)
            self.move_cursor(start)
            self.move_cursor((row, at - begin + len(self._search.words)), select=True)

    @property
    def _on_first_row(self) -> bool:
        return bool(self._row == 0)

    @property
    def _on_last_row(self) -> bool:
        return bool(self._row >= self.wrapped_document.height - 1)

    @property
    def _row(self) -> int:
        return self.wrapped_document.location_to_offset(self.cursor_location).y
