"""A text area with optional vim keys."""

from __future__ import annotations

from textual.widgets.text_area import Selection

from rolling_chat.tui.drafts.vim import Ask, Mode, Step, VimKeys
from rolling_chat.tui.widgets.folding import FoldingArea


class VimArea(FoldingArea):
    """A text area with vim keys if `vim` is set; it begins in insert mode."""

    vim: VimKeys | None = None

    @property
    def vim_mode(self) -> str:
        """The mode of the vim keys; empty if they are off or the box has no focus."""
        return self.vim.mode.value if self.vim is not None and self.has_focus else ""

    def return_to_insert(self) -> None:
        """Return to insert mode, after the box was emptied."""
        if self.vim is not None:
            self.vim.return_to_insert()

    def take_vim_key(self, key: str, character: str | None) -> bool:
        """Handle a key as vim would; return False for keys that vim does not handle."""
        vim = self.vim
        if vim is None:
            return False
        if key == "escape":
            step = vim.escape(self.text, self._index)
        elif vim.mode is Mode.INSERT or key in {"enter", "tab"} or (character == "/" and not self.text):
            if character == "/" and not self.text:
                vim.return_to_insert()  # type a slash command in insert mode
            return False
        else:
            step = vim.press(character or key, self.text, self._index)
        if step is not None:
            self._apply(step)
            self.post_message(self.SelectionChanged(self.selection, self))  # the mode may have changed
        return step is not None

    @property
    def _index(self) -> int:
        """The index of the character that the cursor is on."""
        start, end = self.selection
        is_behind = self.vim is not None and self.vim.mode is Mode.VISUAL and end > start
        return len(self.document.get_text_range((0, 0), end)) - is_behind

    def _apply(self, step: Step) -> None:
        if step.edit is not None:
            start, end, text = step.edit
            if text and self._cuts_token(start, end):
                return
            self.history.checkpoint()
            self.replace(
                text, self.location_of(start), self.location_of(end), maintain_selection_offset=False
            )
            self.history.checkpoint()
        if step.selected is None:
            self.move_cursor(self._location(step.cursor))
        else:
            first, last = step.selected, step.cursor
            ends = (first, last + 1) if last >= first else (first + 1, last)
            self.selection = Selection(self._location(ends[0]), self._location(ends[1]))
        for ask in step.asks:
            self._do(ask)

    def _do(self, ask: Ask) -> None:
        match ask:
            case Ask.UNDO:
                self.undo()
            case Ask.REDO:
                self.redo()
            case Ask.OLDER:
                self.older()
            case Ask.NEWER:
                self.newer()

    def older(self) -> None:
        """Show the previous message sent; a no-op without a history."""

    def newer(self) -> None:
        """Show the next message sent; a no-op without a history."""

    def _cuts_token(self, start: int, end: int) -> bool:
        """Return whether `start` or `end` is inside a folded paste."""
        places = (self.location_of(start), self.location_of(end))
        return any(self._edges(place) != (place, place) for place in places)

    def _location(self, index: int) -> tuple[int, int]:
        return self.location_of(min(index, len(self.text)))
