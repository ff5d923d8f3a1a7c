"""Search the whole conversation without blocking keys, and go from hit to hit."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from functools import partial
from itertools import accumulate
from re import Pattern
from typing import TYPE_CHECKING, Protocol

from rolling_chat.tui.controllers.background import Workplace
from rolling_chat.tui.state.items import FOLDED_KINDS
from rolling_chat.tui.transcript.finding import (
    Found,
    Hits,
    body_begins,
    drawn_length,
    hit_point,
    is_laid_out,
    needle,
    offsets_in,
    searched,
    windows,
)
from rolling_chat.tui.widgets.find import FindBar
from rolling_chat.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from rolling_chat.agent import Chat
    from rolling_chat.tui.state.screen_state import ScreenState

_TYPING_PAUSE = 0.06  # seconds without a key before the search begins
_LOOK_AGAIN = 0.3  # seconds between searches of streaming text
_SLICE = 0.004  # seconds of searching at a time, so that keys are handled in between
_BREATH = 0.002
_MAX_BEFORE = 5_000  # hits that one piece of an item may contain
_STILL_READING = "older messages are still being read"


class FindStage(Workplace, Protocol):
    """The part of the screen that finding uses."""

    chat: Chat
    state: ScreenState

    @property
    def transcript(self) -> Transcript:
        """The transcript, which is searched."""
        ...

    @property
    def find_bar(self) -> FindBar:
        """The row in which the search words are typed."""
        ...

    @property
    def is_mounted(self) -> bool:
        """Whether the screen is mounted."""
        ...

    def take_focus(self) -> None:
        """Focus the widget that should have the keys now."""
        ...


class FindController:
    """Searches the transcript for the find bar's words; caches an item's hits until the item changes."""

    def __init__(self, stage: FindStage) -> None:
        self._stage = stage
        self._pattern: Pattern[str] | None = None
        self._known: dict[int, Hits] = {}
        self._ordinals: list[int] = []  # of items with hits, ascending
        self._sums: list[int] = []  # running totals of hits, one per entry of `_ordinals`
        self._current: tuple[str, int] | None = None  # the current hit: item id and index in the item
        self._origin = 0
        self._search = 0  # the number of the newest search
        self._walk = 0
        self._seen = -1  # the revision of the items that was searched, or is being searched
        self._is_done = True
        self._began = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the find bar is shown."""
        return self._bar.shown

    @property
    def has_keys(self) -> bool:
        """Whether the find bar has the focus."""
        return self._bar.has_keys

    @property
    def _bar(self) -> FindBar:
        return self._stage.find_bar

    @property
    def _view(self) -> Transcript:
        return self._stage.transcript

    def open(self) -> None:
        """Show the find bar and focus it; start searching if it was hidden."""
        if not self.is_open:
            rows = self._view.viewport.rows
            self._origin = rows[0].position.ordinal if rows else 0
            self._bar.open()
            self._view.post_message(Transcript.OlderWanted(whole=True))
            self.search_for(self._bar.words)
        else:
            self._bar.open()
        self._stage.state.changed()

    def close(self) -> None:
        """Hide the find bar and the highlights, without scrolling the transcript."""
        self._bar.close()
        self._forget()
        self._view.mark_found(Found())
        self._view.release()
        self._stage.take_focus()
        self._stage.state.changed()

    def search_for(self, words: str) -> None:
        """Search for `words`, from the top row that was visible when the find bar was opened."""
        self._forget()
        self._pattern = needle(words)
        self._view.mark_found(Found(self._pattern))
        self._start_search(_TYPING_PAUSE)

    def search_again(self) -> None:
        """Search again if the conversation has changed since the last search ended."""
        if self.is_open and self._is_done and self._seen != self._stage.state.items.revision:
            self._start_search(_LOOK_AGAIN)

    def step(self, step: int) -> None:
        """Go to the next hit, or the previous one if `step` is negative, wrapping around at the ends."""
        if not self._ordinals:
            return
        at = self._at()
        at = (at + step) % self._sums[-1] if at is not None else 0
        index = bisect_right(self._sums, at)
        before = self._sums[index - 1] if index else 0
        self._go_to_hit(self._ordinals[index], at - before)

    # -- looking

    def _forget(self) -> None:
        self._search += 1
        self._walk += 1
        self._known, self._ordinals, self._sums = {}, [], []
        self._current, self._is_done, self._seen = None, True, -1

    def _start_search(self, pause: float) -> None:
        self._search += 1
        self._is_done = self._pattern is None
        if self._pattern is not None:
            self._stage.work(partial(self._search_items, self._search, self._pattern, pause))
        self._show_state()

    async def _search_items(self, search: int, pattern: Pattern[str], pause: float) -> None:
        await asyncio.sleep(pause)
        items = self._stage.state.items
        self._seen = items.revision
        self._began = time.perf_counter()
        known: dict[int, Hits] = {}
        for ordinal in items.ordinals:
            if search != self._search or ordinal not in items.ordinals:
                break
            hits = self._known.get(ordinal)
            item = items.at(ordinal)
            if hits is None or hits.item is not item:
                hits = Hits(item)
                text = searched(item)
                for begin, end in windows(text):
                    hits.offsets.extend(offsets_in(text, pattern, begin, end))
                    await self._breathe()
            known[ordinal] = hits
            await self._breathe()
        if search != self._search or not self._stage.is_mounted:
            return
        self._known, self._is_done = known, True
        self._ordinals = [ordinal for ordinal, hits in known.items() if hits]
        self._sums = list(accumulate(len(known[ordinal]) for ordinal in self._ordinals))
        if self._current is None and self._ordinals:
            self._go_to_first()
        self._show_state()
        self.search_again()

    async def _breathe(self) -> None:
        """Pause once the time slice is used up, so that keys are handled."""
        if time.perf_counter() - self._began > _SLICE:
            await asyncio.sleep(_BREATH)
            self._began = time.perf_counter()

    # -- going

    def _go_to_first(self) -> None:
        """Go to the first hit from where the search began, or the last one above that."""
        index = bisect_right(self._ordinals, self._origin - 1)
        if index < len(self._ordinals):
            self._go_to_hit(self._ordinals[index], 0)
        else:
            self._go_to_hit(self._ordinals[-1], len(self._known[self._ordinals[-1]]) - 1)

    def _go_to_hit(self, ordinal: int, nth: int) -> None:
        self._current = (self._known[ordinal].item.id, nth)
        self._walk += 1
        self._show_state()
        if self._pattern is not None:
            self._stage.work(partial(self._show, self._walk, ordinal, nth, self._pattern))

    async def _show(self, walk: int, ordinal: int, nth: int, pattern: Pattern[str]) -> None:
        """Unfold and lay out the item as far as needed, and scroll to the hit."""
        hits, view = self._known.get(ordinal), self._view
        if hits is None or walk != self._walk or ordinal not in view.document.ordinals:
            return  # the search words changed meanwhile
        item, offset = hits.item, hits.offsets[nth]
        body, begins = None, body_begins(item)
        if offset >= begins:
            if item.kind in FOLDED_KINDS and not view.document.is_open(item):
                view.turn(ordinal)
            body = await self._drawn_offset(searched(item), begins, offset)
            while (
                walk == self._walk
                and ordinal in view.document.ordinals
                and not is_laid_out(view.document, ordinal, body)
            ):
                view.document.advance(ordinal, _SLICE)
                await asyncio.sleep(_BREATH)
        if walk != self._walk or ordinal not in view.document.ordinals:
            return
        before = [offset - other for other in hits.offsets[max(0, nth - _MAX_BEFORE) : nth]]
        point = hit_point(view.document, ordinal, pattern, body, before)
        view.mark_found(Found(pattern, current=point))
        view.show_position(point.position)
        view.hold()
        if view.cursor is not None:
            view.cursor.to_point(point)
            view.cursor_moved()

    async def _drawn_offset(self, text: str, begin: int, end: int) -> int:
        """Return the drawn length, in characters, of a part of a text."""
        drawn = 0
        self._began = time.perf_counter()
        for first, last in windows(text[begin:end]):
            drawn += drawn_length(text[begin + first : begin + last])
            await self._breathe()
        return drawn

    # -- saying

    def _at(self) -> int | None:
        """Return the number of hits before the current one; None without a current hit."""
        if self._current is None:
            return None
        item_id, nth = self._current
        ordinal = self._stage.state.items.by_id.get(item_id)
        if ordinal is None or ordinal not in self._known:
            return None
        index = bisect_right(self._ordinals, ordinal) - 1
        if index < 0 or self._ordinals[index] != ordinal:
            return None
        before = self._sums[index - 1] if index else 0
        return before + min(nth, len(self._known[ordinal]) - 1)

    def _show_state(self) -> None:
        parts = []
        if self._pattern is not None:
            at = self._at()
            if self._sums:
                parts.append(f"{1 if at is None else at + 1:,} of {self._sums[-1]:,}")
            else:
                parts.append("not found" if self._is_done else "…")
            if not self._stage.chat.session.conversation.is_whole:
                parts.append(_STILL_READING)
        self._bar.say(" · ".join(parts))
