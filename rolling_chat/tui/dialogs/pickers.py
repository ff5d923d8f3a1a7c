"""A list to choose from, filtered by typing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

from rich.cells import cell_len
from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.fuzzy import Matcher
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from rolling_chat.text import one_line
from rolling_chat.tui.dialogs.framed import FramedScreen
from rolling_chat.tui.widgets.header import cut

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from rolling_chat.commands import Choice

_SHOWN = 200
_HEIGHT = 0.8  # of the screen, at most
_AROUND = 4  # rows: the frame, the filter and the gap below it
_MAX_QUERY = 200  # characters
# Scoring one label takes some 30 microseconds, more for a long query, and keys must not wait.
_MAX_FUZZY, _MAX_FUZZY_QUERY = 1_000, 40


Result = TypeVar("Result")


class PickerScreen(FramedScreen[Result]):
    """A list that typing filters; `result` converts the chosen value, or None, to the screen's result."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "dismiss_none", "close", show=False),
        Binding("up,ctrl+p", "move('cursor_up')", show=False),
        Binding("down,ctrl+n", "move('cursor_down')", show=False),
        Binding("pageup", "move('page_up')", show=False),
        Binding("pagedown", "move('page_down')", show=False),
    ]
    DEFAULT_CSS = """
    PickerScreen > Vertical { width: 90%; max-width: 90; height: auto; }
    PickerScreen Input { border: none; height: 1; padding: 0; background: $surface; }
    PickerScreen Input:focus { border: none; }
    PickerScreen OptionList {
        height: auto; border: none; padding: 0; margin-top: 1;
        background: $surface; scrollbar-size-vertical: 1;
    }
    PickerScreen OptionList:focus { border: none; }
    PickerScreen OptionList:nocolor > .option-list--option-highlighted { text-style: reverse; }
    """

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice],
        *,
        result: Callable[[str | None], Result],
        current: str = "",
    ) -> None:
        super().__init__()
        self._result = result
        self._title = title
        self._choices = tuple(choices)
        self._current = current
        self._shown: tuple[Choice, ...] = ()

    def compose(self) -> ComposeResult:
        """Lay out the filter above the list."""
        with Vertical() as box:
            box.border_title = self._title
            yield from self.parts()

    def parts(self) -> ComposeResult:
        """Create the widgets inside the frame."""
        yield Input(placeholder="type to narrow the list", compact=True, max_length=_MAX_QUERY)
        options = OptionList(markup=False, compact=True)
        options.can_focus = False
        yield options

    async def on_mount(self) -> None:
        """List the choices unfiltered, the current one highlighted."""
        await self.prepare()
        self.narrow("")

    async def prepare(self) -> None:
        """Get what the list needs besides its choices."""

    @property
    def highlighted(self) -> Choice | None:
        """The highlighted entry; None in an empty list."""
        at = self.query_one(OptionList).highlighted
        return None if at is None else self._shown[at]

    def on_resize(self) -> None:
        """Fit the notes to the width and the list to the height, keeping the highlighted entry."""
        options = self.query_one(OptionList)
        options.styles.max_height = max(1, int(self.size.height * _HEIGHT) - self.rows_around)
        self.narrow(self.query_one(Input).value, at=options.highlighted)

    @property
    def rows_around(self) -> int:
        """The number of rows that the list cannot use."""
        return _AROUND

    @on(Input.Changed)
    def _filtered(self, event: Input.Changed) -> None:
        self.narrow(event.value)

    @on(Input.Submitted)
    def _entered(self) -> None:
        choice = self.highlighted
        if choice is not None:
            self.take(choice)

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self.take(self._shown[event.option_index])

    def take(self, choice: Choice) -> None:
        """Close the list with an entry chosen."""
        self.dismiss(self._result(choice.value))

    def action_move(self, how: str) -> None:
        """Move the highlight in the list while the filter keeps the focus."""
        options = self.query_one(OptionList)
        if how.startswith("page") and not options.scrollable_content_region:
            return  # before the first layout, Textual cannot page
        getattr(options, f"action_{how}")()

    def action_dismiss_none(self) -> None:
        """Close the list without a choice."""
        self.dismiss(self._result(None))

    def narrow(self, query: str, *, at: int | None = None) -> None:
        """List the choices that match, and highlight the one at index `at`, or else the current one."""
        found = matching(self._choices, query)
        self._shown = found[:_SHOWN]
        options = self.query_one(OptionList)
        options.clear_options()
        width = max(20, min(90, self.size.width * 9 // 10) - 6)
        options.add_options(
            Option(_line(choice, width, choice.value == self._current)) for choice in self._shown
        )
        if self._shown:
            values = [choice.value for choice in self._shown]
            is_whole = not query.strip()
            first = values.index(self._current) if is_whole and self._current in values else 0
            options.highlighted = first if at is None else min(at, len(values) - 1)
        more = len(found) - len(self._shown)
        count = f"{more} more, type to narrow · " if more else "" if found else "no match · "
        self.query_one(Vertical).border_subtitle = self.subtitle(count)

    def subtitle(self, count: str) -> str:
        """Return the line below the list: `count`, which says how many are not listed, and the keys."""
        return f"{count}enter choose · esc close"


class Picker(PickerScreen[str | None]):
    """A list to choose from, which returns the value of the chosen entry, or None."""

    def __init__(self, title: str, choices: Sequence[Choice], *, current: str = "") -> None:
        super().__init__(title, choices, result=lambda value: value, current=current)


def matching(choices: Sequence[Choice], query: str) -> tuple[Choice, ...]:
    """Return the choices that match `query`: an equal label, then those containing it, then similar ones."""
    wanted = query.strip().lower()
    if not wanted:
        return tuple(choices)
    plain: list[Choice] = []
    others: list[Choice] = []
    for choice in choices:
        is_plain = wanted in f"{choice.label} {choice.note}".lower()
        (plain if is_plain else others).append(choice)
    plain.sort(key=lambda choice: choice.label.lower() != wanted)
    if len(wanted) > _MAX_FUZZY_QUERY:
        return tuple(plain)
    matcher = Matcher(wanted)
    scored = [(matcher.match(choice.label), choice) for choice in others[:_MAX_FUZZY]]
    alike = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: -pair[0])
    return (*plain, *(choice for _, choice in alike))


def _line(choice: Choice, width: int, current: bool) -> Text:
    mark = "● " if current else "  "
    note = cut(one_line(choice.note), width * 2 // 3)
    label = cut(one_line(choice.label), max(8, width - cell_len(note) - 4))
    gap = " " * max(2, width - cell_len(mark) - cell_len(label) - cell_len(note))
    return Text.assemble(mark, label, (f"{gap}{note}" if note else ""), no_wrap=True)
