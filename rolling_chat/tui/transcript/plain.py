"""A growing text that is no Markdown, in pieces of bounded size; the counterpart of `splitter`."""

from __future__ import annotations

from dataclasses import dataclass, field

from rolling_chat.tui.transcript.blocks import Block, BlockKind, Links
from rolling_chat.tui.transcript.cuts import code_cut

_WINDOW = 4096


@dataclass
class PlainSplitter:
    """Takes a text as it comes; `settled` are the pieces that no more text can change."""

    settled: list[Block] = field(default_factory=list)
    links: Links = field(default_factory=dict)
    _text: str = ""
    _at: int = 0
    _dropped: int = 0
    _ended: bool = False

    def feed(self, text: str) -> None:
        """More text; it must be fit for a terminal already."""
        self._text, self._at, self._dropped = self._text[self._at :] + text, 0, self._dropped + self._at

    def end(self) -> None:
        """No more text will come."""
        self._ended = True

    def step(self) -> bool:
        """Settle one piece; False when nothing can be for now."""
        window = self._text[self._at : self._at + _WINDOW]
        at = code_cut(window)
        if at is None:
            if not self._ended or not window:
                return False
            at = len(window)
        self.settled.append(_piece(window[:at], self._dropped + self._at, goes_on=at < len(window)))
        self._at += at
        return True

    def tail(self) -> list[Block]:
        """The piece of what is not settled."""
        rest = self._text[self._at :]
        return [_piece(rest, self._dropped + self._at, goes_on=False)] if rest else []


def _piece(text: str, start: int, *, goes_on: bool) -> Block:
    joint = "" if goes_on and not text.endswith("\n") else None
    return Block(BlockKind.PLAIN, text.removesuffix("\n") if goes_on else text, start, joint=joint)
