from __future__ import annotations

import random

from textual._compositor import ChopsUpdate, Compositor
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from rolling_chat.tui.screens.composing import CroppedCompositor


class Told(Widget):
    """Says which of its rows were drawn."""

    DEFAULT_CSS = "Told { height: 4; padding: 0 1; }"
    letter = "a"

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[int] = []

    def render_line(self, y: int) -> Strip:
        self.rows.append(y)
        return super().render_line(y)

    def render_lines(self, crop: Region) -> list[Strip]:
        self.rows += crop.line_range
        return super().render_lines(crop)

    def render(self) -> str:
        return "\n".join(f"{self.letter}{row}" * 9 for row in range(4))


class CroppedScreen(Screen[None]):
    """Two widgets, and one below that scrolls and is cut off."""

    def __init__(self) -> None:
        super().__init__()
        self._compositor = CroppedCompositor()

    def compose(self) -> ComposeResult:
        yield Told()
        yield Told()
        with VerticalScroll():
            yield Static("\n".join(f"line {number} " * 3 for number in range(60)))

    @property
    def compositor(self) -> Compositor:
        return self._compositor


async def test_what_did_not_change_is_not_drawn_again() -> None:
    app = App[None]()
    async with app.run_test(size=(40, 20)) as pilot:
        screen = CroppedScreen()
        await app.push_screen(screen)
        await pilot.pause()
        first, second = screen.query(Told)
        first.rows.clear()
        second.rows.clear()
        second.refresh(Region(0, 2, 40, 1))
        await pilot.pause(0.1)
        assert first.rows == []
        assert set(second.rows) == {2}


async def test_a_part_is_drawn_as_it_is_in_the_whole() -> None:
    rng = random.Random(1)
    app = App[None]()
    async with app.run_test(size=(40, 20)) as pilot:
        screen = CroppedScreen()
        await app.push_screen(screen)
        await pilot.pause()
        screen.query_one(VerticalScroll).scroll_to(y=7, animate=False)
        await pilot.pause()
        whole = [strip.text for strip in screen.compositor.render_strips()]
        for _ in range(200):
            x, y = rng.randrange(40), rng.randrange(20)
            part = Region(x, y, rng.randint(1, 40 - x), rng.randint(1, 20 - y))
            screen.compositor._dirty_regions = {part}
            update = screen.compositor.render_partial_update()
            assert isinstance(update, ChopsUpdate)
            for row in part.line_range:
                line = "".join(" " if strip is None else strip.text for strip in update.chops[row].values())
                assert line[part.x : part.right] == whole[row][part.x : part.right]
