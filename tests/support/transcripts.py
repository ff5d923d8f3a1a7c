"""The transcript drawn naively: every item afresh, one below the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rolling_chat.tui.state.fates import Fates
from rolling_chat.tui.state.items import Item
from rolling_chat.tui.transcript.colors import Look
from rolling_chat.tui.transcript.layout import Decorations, ItemLayout, LineCache, Position
from rolling_chat.tui.transcript.lines import Line
from rolling_chat.tui.transcript.render import gap_before


@dataclass(frozen=True, slots=True)
class NaiveRow:
    """A row of the naive drawing, and which line of which piece of which item it is."""

    position: Position
    line: Line


def drawn_item(
    item: Item, look: Look, *, is_open: bool = False, gap: int = 0, rule: str = "", note: str | None = None
) -> list[list[Line]]:
    """The lines of every piece of an item, drawn with nothing kept from before."""
    decorations = Decorations(gap, rule, item.note if note is None else note)
    layout = ItemLayout(item, look, LineCache(), lambda: 0.0, is_open=is_open, decorations=decorations)
    while layout.advance(60):
        pass
    return [list(layout.lines(at)) for at in range(len(layout.pieces))]


def drawn_text(item: Item, look: Look, *, is_open: bool = False) -> str:
    """An item as a person reads it."""
    lines = [line for piece in drawn_item(item, look, is_open=is_open) for line in piece]
    return "\n".join(line.drawn.rstrip() for line in lines)


def naive_rows(
    items: Sequence[Item],
    look: Look,
    *,
    first: int = 0,
    is_open: Callable[[Item], bool] = lambda _: False,
    fates: Fates | None = None,
) -> list[NaiveRow]:
    """Every row of a conversation; `first` is the ordinal of its first item."""
    rows: list[NaiveRow] = []
    for at, item in enumerate(items):
        fate = fates.items.get(item.id) if fates is not None else None
        rule = fates.rule if fates is not None and fates.boundary == item.id else ""
        gap = gap_before(item, items[at - 1] if at else None)
        pieces = drawn_item(
            item,
            look,
            is_open=is_open(item),
            gap=gap,
            rule=rule,
            note=(fate.note if fate is not None else "") or item.note,
        )
        rows += [
            NaiveRow(Position(first + at, piece, n), line)
            for piece, lines in enumerate(pieces)
            for n, line in enumerate(lines)
        ]
    return rows
