"""Split growing Markdown into blocks of bounded size, each settled once and never parsed again.

The blocks do not depend on how the text was divided when it was fed: decisions use only whole known lines,
never the amount of text that follows. So drawing a stream equals drawing the whole text afresh, and no block
grows forever: a list is cut by item, a fence and a table by rows, a paragraph by its characters.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from rolling_chat.tui.transcript.blocks import (
    MAX_BLOCK_CHARS,
    MAX_BLOCK_LINES,
    PIECE_CHARS,
    TABLE_ROWS,
    Block,
    BlockKind,
    Frame,
    Links,
    code_cut,
    first_lines,
    is_long,
    paragraph_cut,
    some_rows,
    whole_character,
)
from rolling_chat.tui.transcript.markdown_syntax import (
    InFence,
    InIndented,
    InParagraph,
    InTable,
    ListState,
    Normal,
    Top,
    after,
    closing_of,
    dedented,
    find_tops,
    first_number,
    item_indent,
    unframed,
)

if TYPE_CHECKING:
    from markdown_it.token import Token

_MAX_FRAMES = 8  # deeper nesting is drawn as plain text
_LONG_LINE = 1024  # a line this long shows which block it begins, even unfinished
_WINDOW = 2 * MAX_BLOCK_CHARS + _LONG_LINE  # characters examined in one step
_WINDOW_LINES = 2 * MAX_BLOCK_LINES
_FORGET = 1 << 20  # settled characters; fewer are not worth dropping


@dataclass(frozen=True, slots=True)
class Inside:
    """The splitter's mode inside a long quote or list item, whose text goes to its own splitter."""

    inner: Splitter
    frame: Frame
    is_first_line: bool
    mid_line: bool


Mode: TypeAlias = Normal | InParagraph | InFence | InIndented | InTable | Inside


@dataclass
class Splitter:
    """A splitter of Markdown that arrives in parts; `settled` are the blocks that cannot change.

    `links` are the link definitions so far, on which the drawing of a block may depend. `lead` asks for
    an empty line above the first block.
    """

    frames: tuple[Frame, ...] = ()
    settled: list[Block] = field(default_factory=list)
    links: Links = field(default_factory=dict)
    lead: bool = False
    _text: str = ""
    _at: int = 0  # index in `_text` of the first unsettled character
    _dropped: int = 0  # characters before `_text`
    _ended: bool = False
    _mode: Mode = field(default_factory=Normal)
    _is_cut: bool = False  # the next block is a part of the previous one
    _list: ListState | None = None
    _unopened: int = 0  # number of innermost frames without a block so far
    _any: bool = False

    def feed(self, text: str) -> None:
        """Add text, which must already be safe for a terminal (`rolling_chat.text.visible`)."""
        if self._at > _FORGET:
            self._dropped += self._at
            self._text, self._at, self._list = self._text[self._at :], 0, self._moved_list(self._at)
        self._text += text

    def end(self) -> None:
        """Declare the text complete."""
        self._ended = True

    def step(self) -> bool:
        """Settle a few kilobytes at most; return False if nothing can be settled yet."""
        match self._mode:
            case Inside() as inside:
                return self._step_inside(inside)
            case _ if self._at >= len(self._text):
                return False
            case InFence() as fence:
                return self._step_fence(fence)
            case InIndented():
                return self._step_indented()
            case InTable() as table:
                return self._step_table(table)
            case InParagraph():
                return self._step_normal("x")  # text after an x always continues a paragraph
            case _:
                return self._step_normal("")

    def tail(self) -> list[Block]:
        """Return the blocks of the unsettled text, as if the text ended here."""
        return self.ended().settled

    def ended(self) -> Splitter:
        """Return a splitter that settled the unsettled text, as if the text ended here."""
        rest = self.clone()
        rest.end()
        while rest.step():
            pass
        return rest

    def clone(self) -> Splitter:
        """Return an independent splitter that continues from here, with nothing settled."""
        links, mode = dict(self.links), self._mode
        if isinstance(mode, Inside):
            inner = mode.inner.clone()
            inner.links = links
            mode = replace(mode, inner=inner)
        return replace(self, settled=[], links=links, _mode=mode)

    def _moved_list(self, by: int) -> ListState | None:
        return replace(self._list, at=self._list.at - by) if self._list is not None else None

    def _known(self) -> tuple[str, bool]:
        """Return the unsettled text that may be split now, and whether it reaches the end of the text."""
        window = self._text[self._at : self._at + _WINDOW]
        if self._ended and self._at + len(window) == len(self._text):
            return window, True
        whole = window.rfind("\n") + 1
        known = window if len(window) - whole > _LONG_LINE else window[:whole]
        return known, False

    def _known_lines(self) -> tuple[str, bool]:
        """Return what `_known` does, limited to a number of lines that parses fast."""
        known, is_all = self._known()
        return first_lines(known, _WINDOW_LINES, is_all=is_all)

    def _settle(
        self,
        kind: BlockKind,
        source: str,
        *,
        gap: bool = True,
        info: str = "",
        number: int | None = None,
        context: str = "",
        joint: str | None = None,
    ) -> None:
        above = (gap and not self._is_cut) if self._any else self.lead
        self.settled.append(
            Block(
                kind, source, self._dropped + self._at, above, info, number, context,
                self.frames, self._unopened, joint,
            )
        )  # fmt: skip
        self._any, self._is_cut, self._unopened = True, False, 0

    def _cut(self, length: int, mode: Mode) -> bool:
        """Advance by `length` characters into the rest of a block that was cut, and return False."""
        self._at += length
        self._mode, self._is_cut = mode, True
        return False

    # -- between blocks, or in a paragraph

    def _step_normal(self, prefix: str) -> bool:
        known, is_all = self._known_lines()
        if not known:
            return False
        environment: dict[str, Any] = {}
        tops = find_tops(prefix, known, environment)
        base, mode = self._at, self._mode
        reached = 0
        for place, top in enumerate(tops):
            if not self._define(known[reached : top.begin], base + reached, environment):
                return True
            self._at, self._mode = base + top.begin, Normal()
            source, may_grow = known[top.begin : top.end], not is_all and place == len(tops) - 1
            in_paragraph = bool(prefix) and not place
            if not self._split_block(top, source, may_grow, in_paragraph=in_paragraph):
                if self._at == base + top.begin and in_paragraph and isinstance(self._mode, Normal):
                    self._mode = mode
                return (self._at, self._mode) != (base, mode)
            reached = top.end
        rest = known[reached:]
        if (
            not is_all and rest.strip() and len(rest.lstrip("\n")) <= MAX_BLOCK_CHARS
        ):  # a link title may follow
            self._at, self._mode = base + reached, Normal() if tops else mode
            return bool(tops)
        if self._define(rest, base + reached, environment):
            self._at = base + len(known)
        self._mode = Normal()
        return True

    def _define(self, text: str, at: int, environment: dict[str, Any]) -> bool:
        """Register the link definitions between two blocks, and settle their text as plain text.

        Returns False if they were too long for one block, and were cut.
        """
        for label, link in environment.get("references", {}).items():
            self.links.setdefault(label, link)
        shown = text.lstrip("\n")
        self._at = at + len(text) - len(shown)
        if not shown.strip():
            return True
        if len(shown) <= MAX_BLOCK_CHARS:
            self._settle(BlockKind.PLAIN, shown.rstrip("\n"))
            return True
        cut = code_cut(shown) or len(shown)
        self._settle(BlockKind.PLAIN, shown[:cut].rstrip("\n"))
        self._cut(cut, Normal())
        return False

    def _split_block(self, top: Top, source: str, may_grow: bool, *, in_paragraph: bool) -> bool:
        """Settle a block; return False if it may be incomplete, or was cut."""
        match top.token.type:
            case "bullet_list_open" | "ordered_list_open":
                return self._split_list(top, source, may_grow)
            case "fence":
                return self._split_fence(top.token, source, may_grow)
            case "code_block":
                return self._split_indented(source, may_grow)
            case "table_open":
                return self._split_table(source, may_grow)
            case "blockquote_open" if is_long(source) and len(self.frames) < _MAX_FRAMES:
                return self._enter(Frame("", 2), gap=True)
            case _ if is_long(source):
                return self._cut_paragraph(source)
            case _:
                kind = BlockKind.INLINE if in_paragraph else BlockKind.MARKDOWN
                return not may_grow and self._whole(kind, source)

    def _whole(self, kind: BlockKind, source: str) -> bool:
        if source.strip():
            self._settle(kind, source.rstrip("\n"))
        self._is_cut = False
        return True

    def _cut_paragraph(self, source: str) -> bool:
        at, joint = paragraph_cut(source)
        self._settle(BlockKind.INLINE, source[:at].rstrip("\n"), joint=joint)
        return self._cut(at + len(joint or ""), InParagraph())

    # -- lists and quotes

    def _split_list(self, top: Top, source: str, may_grow: bool) -> bool:
        begun, base = self._list, self._at
        goes_on = begun is not None and begun.at == base
        number = first_number(top.token)
        loose = False
        if goes_on and begun is not None:
            number, loose = begun.number, begun.is_loose
        self._list = None
        for place, (begin, end) in enumerate(top.items):
            item = source[begin - top.begin : end - top.begin]
            gap = loose or not (goes_on or place)
            self._at = base + begin - top.begin
            is_last = place == len(top.items) - 1
            if is_long(item) and len(self.frames) < _MAX_FRAMES:
                marker = "•" if number is None else f"{number}."
                self._list = ListState(-1, after(number), False)
                return self._enter(Frame(marker, item_indent(item)), gap=gap)
            if is_long(item):
                self._is_cut = self._is_cut or not gap
                return self._cut_paragraph(item)
            if is_last and may_grow:
                self._list = ListState(self._at, number, loose) if place or goes_on else None
                return False
            self._settle(BlockKind.MARKDOWN, item.rstrip("\n"), gap=gap, number=number)
            number = after(number)
            loose = item.endswith("\n\n") or item.rstrip(" \t").endswith("\n\n")
        return True

    def _enter(self, frame: Frame, *, gap: bool) -> bool:
        """Begin splitting the inside of a long quote or list item, and return False."""
        inner = Splitter((*self.frames, frame), links=self.links)
        inner.lead = (gap and not self._is_cut) if self._any else self.lead
        inner._dropped = self._dropped + self._at
        inner._unopened = self._unopened + 1
        self._mode = Inside(inner, frame, True, False)
        self._any, self._is_cut, self._unopened = True, False, 0
        return False

    def _step_inside(self, inside: Inside) -> bool:
        known, is_all = self._known()
        if not known and not self._ended:
            return False
        inner, is_first, mid_line = inside.inner, inside.is_first_line, inside.mid_line
        left = is_all and not known
        for line in known.splitlines(keepends=True):
            text = line if mid_line else unframed(line, inside.frame, is_first=is_first)
            if text is None:
                left = True
                break
            inner.feed(text)
            is_first, mid_line = False, not line.endswith("\n")
            self._at += len(line)
        if left or is_all:
            inner.end()
        while inner.step():
            pass
        self.settled += inner.settled
        inner.settled.clear()
        self._mode = Normal() if left or is_all else Inside(inner, inside.frame, is_first, mid_line)
        if left and self._list is not None:
            self._list = replace(self._list, at=self._at)
        return True

    # -- code

    def _split_fence(self, token: Token, source: str, may_grow: bool) -> bool:
        opening, _, code = source.partition("\n")
        closing = closing_of(token.markup)
        found = next(closing.finditer(code), None)
        if found is not None:
            code = code[: found.start()]
        indent, info = len(opening) - len(opening.lstrip(" ")), token.info.strip()
        at = code_cut(code)
        if at is not None:
            mid_line = not code[:at].endswith("\n")
            self._code(code[:at], indent, info, "", "" if mid_line else None)
            return self._cut(len(opening) + 1 + at, InFence(closing, indent, info, code[:at], mid_line))
        if may_grow:
            return False
        self._code(code, indent, info, "", None)
        return True

    def _code(self, code: str, indent: int, info: str, above: str, joint: str | None) -> None:
        self._settle(BlockKind.CODE, dedented(code, indent), info=info, context=above, joint=joint)

    def _step_fence(self, fence: InFence) -> bool:
        known, is_all = self._known()
        first = known.find("\n") + 1 if fence.mid_line else 0
        found = next(fence.closing.finditer(known, first), None) if first or not fence.mid_line else None
        code = known if found is None else known[: found.start()]
        at = code_cut(code)
        if at is not None:
            mid_line = not code[:at].endswith("\n")
            self._code(code[:at], fence.indent, fence.info, fence.above, "" if mid_line else None)
            self._cut(at, replace(fence, above=code[:at], mid_line=mid_line))
            return True
        if found is None and not is_all:
            return False
        if code:
            self._code(code, fence.indent, fence.info, fence.above, None)
        end = len(known) if found is None else found.end()
        self._at += end + known.startswith("\n", end)
        self._mode, self._is_cut = Normal(), False
        return True

    def _split_indented(self, source: str, may_grow: bool) -> bool:
        at = code_cut(source)
        if at is not None:
            mid_line = not source[:at].endswith("\n")
            self._code(source[:at], 4, "", "", "" if mid_line else None)
            return self._cut(at, InIndented() if mid_line else Normal())
        if may_grow:
            return False
        self._code(source, 4, "", "", None)
        return True

    def _step_indented(self) -> bool:
        known, _ = self._known()
        if not known:
            return False
        end = known.find("\n", 0, PIECE_CHARS) + 1
        at = end or whole_character(known, PIECE_CHARS)
        self._code(known[:at], 0, "", "", None if end else "")
        self._cut(at, Normal() if end or at == len(known) else InIndented())
        return True

    # -- tables

    def _split_table(self, source: str, may_grow: bool) -> bool:
        lines = source.splitlines(keepends=True)
        if len(lines) - 2 <= TABLE_ROWS and not is_long(source):
            return not may_grow and self._whole(BlockKind.MARKDOWN, source)
        head = "".join(lines[:2])
        head += "".join(some_rows(lines[2:], PIECE_CHARS - len(head)))
        self._settle(BlockKind.MARKDOWN, head.rstrip("\n"))
        return self._cut(len(head), InTable(head) if len(head) > len("".join(lines[:2])) else Normal())

    def _step_table(self, table: InTable) -> bool:
        known, is_all = self._known()
        if not known:
            return False
        header = "".join(table.head.splitlines(keepends=True)[:2])
        known, is_all = first_lines(known, TABLE_ROWS + 1, is_all=is_all)
        top = next(iter(find_tops("", header + known, {})))
        rows = known[: max(0, top.end - len(header))]
        lines = rows.splitlines(keepends=True)
        if len(lines) > TABLE_ROWS or len(rows) > MAX_BLOCK_CHARS:
            lines = some_rows(lines, PIECE_CHARS)
        elif not is_all and len(rows) == len(known):
            return False
        if lines:
            taken = "".join(lines)
            self._settle(BlockKind.ROWS, taken.rstrip("\n"), context=table.head)
            self._cut(len(taken), table)
            return True
        self._mode, self._is_cut = Normal(), False
        return True
