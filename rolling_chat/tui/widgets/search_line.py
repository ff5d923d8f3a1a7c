"""The line above the prompt box that searches the prompt history and shows the state of the search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget

from rolling_chat.text import one_line, typed
from rolling_chat.tui.drafts.pastes import Draft
from rolling_chat.tui.widgets.header import cut

if TYPE_CHECKING:
    from rolling_chat.tui.drafts.prompt_history import History

_MAX_WORDS = 200  # characters
_KEYS = "ctrl+r older · enter take · esc back"


class SearchLine(Widget):
    """A backward search of the prompt history; each step returns the draft to show."""

    DEFAULT_CSS = """
    SearchLine { height: 1; padding: 0 1; display: none; background: $panel; color: $foreground; }
    SearchLine.-open { display: block; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._past: History | None = None
        self._draft = Draft()
        self._at: int | None = None
        self._match: Draft | None = None
        self._at_end = False
        self.words = ""

    @property
    def shown(self) -> bool:
        """Whether the history is being searched."""
        return self._past is not None

    @property
    def found(self) -> bool:
        """Whether an entry of the history matches the words."""
        return self._match is not None

    @property
    def draft(self) -> Draft:
        """The user's draft from before the search."""
        return self._draft

    def begin(self, past: History, draft: Draft) -> Draft:
        """Start a search of `past` and return the draft to show; `draft` is restored on cancel."""
        self._past, self._draft, self.words = past, draft, ""
        self.add_class("-open")
        return self._look(None)

    def cancel(self) -> Draft:
        """End the search and return the draft from before it."""
        self._past, self._match = None, None
        self.remove_class("-open")
        return self._draft

    def seek(self, more: str) -> Draft:
        """Add to the words and return the draft to show; the current match stays while it matches."""
        self.words = (self.words + " ".join(typed(more[:_MAX_WORDS]).split("\n")))[:_MAX_WORDS]
        return self._look(None if self._at is None else self._at + 1)

    def shorten(self) -> Draft:
        """Remove the last character of the words and search again; return the draft to show."""
        self.words = self.words[:-1]
        return self._look(None)

    def older(self) -> Draft:
        """Go to the next older match and return the draft to show; stay at the oldest."""
        return self._look(self._at, stays=True)

    def _look(self, below: int | None, *, stays: bool = False) -> Draft:
        sought = self._past if self.words or stays else None
        found = sought.search(self.words, below) if sought is not None else None
        self._at_end = found is None
        if found is not None:
            self._at, self._match = found
        elif not stays:
            self._match = None
            if below is None:
                self._at = None
        self.refresh()
        return self._match or self._draft

    def render(self) -> Text:
        """Draw the words, the state of the search, and the keys."""
        state = "" if not self.words else " · no older one" if self._match else " · not found"
        left = f"history: {one_line(self.words)}▏{state if self._at_end else ''}"
        width = self.size.width
        room = width - Text(left).cell_len - 2
        keys = _KEYS if room >= len(_KEYS) else ""
        gap = " " * max(1, width - Text(left).cell_len - len(keys))
        return Text(cut(f"{left}{gap}{keys}", width), no_wrap=True, end="")
