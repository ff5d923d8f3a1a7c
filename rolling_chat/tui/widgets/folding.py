"""A text area in which a long paste or a mentioned file is one token: drawn, skipped and deleted whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.document._document import EditResult, Location, Selection
from textual.document._edit import Edit
from textual.widgets import TextArea

from rolling_chat.mentions import MARK, NOT_TYPED, find, remarked
from rolling_chat.tui.drafts.pastes import (
    Draft,
    FoldedFile,
    clean,
    drawn,
    file_token,
    fits_unfolded,
    folded,
    is_long,
    spans,
    token,
)

_KNOWN = 8  # pastes remembered from earlier drafts; if one returns as plain text, it is folded again


class FoldingArea(TextArea):
    """A text area that folds long pastes; `price` counts a text's tokens, 0 if unknown."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"folding-area--token"}
    DEFAULT_CSS = """
    FoldingArea .folding-area--token { color: $primary; text-style: bold; }
    """

    def __init__(self, price: Callable[[str], int], *, placeholder: str = "", id: str | None = None) -> None:
        super().__init__(
            id=id,
            compact=True,
            show_line_numbers=False,
            highlight_cursor_line=False,
            placeholder=placeholder,
        )
        self._price = price
        self._pastes: dict[int, str] = {}
        self._files: dict[int, FoldedFile] = {}
        self._known: list[str] = []

    @property
    def draft(self) -> Draft:
        """The text in the box with its folded pastes and files."""
        return Draft(self.text, self._pastes.copy(), self._files.copy())

    def put(self, draft: Draft | str) -> None:
        """Replace the text in the box and move the cursor to the end."""
        self._remember(self.draft.used.values())
        if isinstance(draft, str):
            draft = folded(draft, self._known, self._price)
        self._pastes, self._files = dict(draft.pastes), dict(draft.files)
        self.text = draft.text
        self.move_cursor(self.document.end)

    def rewrite(self, text: str) -> None:
        """Replace the box's text with an external editor's, as an edit that can be undone.

        Mentions that were in the box stay mentions.
        """
        self._remember(self.draft.used.values())
        before = (place.readings[0][0].spelled for place in find(self.draft.said))
        draft = folded(remarked(text, list(before)), self._known, self._price, first=self._next_number)
        self._pastes |= draft.pastes
        self.replace(draft.text, (0, 0), self.document.end, maintain_selection_offset=False)

    def refolded(self, text: str) -> Draft:
        """Return plain text as a draft, folding pastes that this box knows."""
        return folded(text, [*self._known, *self.draft.used.values()], self._price)

    def wipe(self) -> None:
        """Empty the box; undo restores its text."""
        self.history.checkpoint()  # an undo step of its own, even right after another deletion
        self.clear()

    def undo(self) -> None:
        """Undo the last edit, and keep the next edit from being merged with earlier ones."""
        super().undo()
        self.history.checkpoint()

    def take_in(self, text: str) -> None:
        """Insert pasted text: fold a long one, or unfold it if it is pasted twice in a row."""
        text = clean(text)
        if not is_long(text):
            if text.lstrip().startswith("!") and self.selection.start == (0, 0) == self.selection.end:
                text = text.replace("!", NOT_TYPED, 1)
            self._put_in(text)
        elif not (
            self.selection.is_empty and self._pastes.get(self._number_before) == text and self.unfold()
        ):
            number = self._next_number
            self._pastes[number] = text
            self._put_in(token(number, text, self._price(text)))

    def take_output(self, text: str) -> None:
        """Insert a command's output, folded however short it is."""
        text, number = clean(text), self._next_number
        self._pastes[number] = text
        self._put_in(token(number, text, self._price(text), "output"))

    def unfold(self) -> bool:
        """Unfold the paste or file name next to the cursor; return False if it is too long for the box."""
        row, column = self.cursor_location
        for number, start, end in spans(self.document.get_line(row)):
            if column in (start, end):
                file = self._files.get(number)
                text = MARK + file.spelled if file is not None else self._pastes[number]
                fits = fits_unfolded(text) and fits_unfolded(self.text)
                if fits:
                    self.replace(text, (row, start), (row, end), maintain_selection_offset=False)
                return fits
        return False

    def fold_file(self, start: int, end: int, file: FoldedFile) -> None:
        """Replace a part of the text, such as a mention, with the token of a file."""
        number = self._next_number
        self._files[number] = file
        self.replace(file_token(number, file), self.location_of(start), self.location_of(end))

    def location_of(self, index: int) -> Location:
        """Return the location of a character of the text."""
        above = self.text[:index]
        return above.count("\n"), index - (above.rfind("\n") + 1)

    @property
    def before_cursor(self) -> str:
        """The text before the cursor."""
        return self.document.get_text_range((0, 0), self.cursor_location)

    @property
    def is_next_to_paste(self) -> bool:
        """Whether the cursor is next to a folded paste or file."""
        row, column = self.cursor_location
        return any(column in (start, end) for _, start, end in spans(self.document.get_line(row)))

    @property
    def selected_text(self) -> str:
        """The selected text, with every folded paste in full."""
        return Draft(super().selected_text, self._pastes, self._files).whole

    @property
    def _next_number(self) -> int:
        # never reuse a number: undo may restore its token
        return max((*self._pastes, *self._files), default=0) + 1

    @property
    def _number_before(self) -> int:
        row, column = self.cursor_location
        return next((number for number, _, end in spans(self.document.get_line(row)) if end == column), 0)

    def _put_in(self, text: str) -> None:
        start, end = self.selection
        self.replace(text, start, end, maintain_selection_offset=False)

    def _remember(self, pastes: Iterable[str]) -> None:
        new = list(pastes)
        self._known = [*(paste for paste in self._known if paste not in new), *new][-_KNOWN:]

    # -- a token is one

    def edit(self, edit: Edit) -> EditResult:
        """Apply an edit, extended so that it never replaces only a part of a folded paste."""
        top, bottom = self._edges(edit.top)[0], self._edges(edit.bottom)[1]
        return super().edit(replace(edit, from_location=top, to_location=bottom))

    def _validate_selection(self, selection: Selection) -> Selection:
        selection = super()._validate_selection(selection)
        before = self.selection
        return Selection(
            self._outside(selection.start, before.start), self._outside(selection.end, before.end)
        )

    def _outside(self, location: Location, before: Location) -> Location:
        """Move a location out of a folded paste, in the direction of the move from `before`."""
        first, last = self._edges(location)
        return first if location < before else last

    def _edges(self, location: Location) -> tuple[Location, Location]:
        """Return the ends of the folded paste around a location, or the location itself twice."""
        row, column = location
        if row < self.document.line_count:
            for _, start, end in spans(self.document.get_line(row)):
                if start < column < end:
                    return (row, start), (row, end)
        return location, location

    def get_line(self, line_index: int) -> Text:
        """Return a line as it is drawn, with its folded pastes highlighted."""
        line = super().get_line(line_index)
        found = list(spans(line.plain))
        if found or MARK in line.plain:
            line.plain = drawn(line.plain)
            style = self.get_component_rich_style("folding-area--token", partial=True)
            for _, start, end in found:
                line.stylize(style, start, end)
        return line

    def find_matching_bracket(self, bracket: str, search_from: Location) -> None:  # noqa: ARG002
        """Return None: a search would read the whole text at every key."""
        return

    def _recompute_cursor_offset(self) -> None:
        # during an undo that removes lines, the cursor may still be below the last line
        place = self.clamp_visitable(self.cursor_location)
        self._cursor_offset = self.wrapped_document.location_to_offset(place)

    # -- what comes in and goes out

    async def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self.take_in(event.text)

    def action_paste(self) -> None:
        """Paste from the application's own clipboard."""
        self.take_in(self.app.clipboard)

    def action_cut(self) -> None:
        """Cut the selection to the clipboard, with every folded paste in full."""
        selected = self.selected_text
        if selected:
            self.app.copy_to_clipboard(selected)
            self._delete_via_keyboard(*self.selection)
