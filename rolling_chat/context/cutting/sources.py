"""Choose what to keep of code and diffs: the beginning, and an outline of the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rolling_chat.context.cutting.lines import Lines, TextKind
from rolling_chat.context.cutting.pieces import Layer, edges

SIGNATURE = re.compile(
    r"^\s*(?:\d+[\t:|] ?)?\s*(?:@\w|#\s*(?:include|define)\b|#{1,6} \w"
    r"|(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\(\w+\))?|unsafe"
    r"|virtual|override|inline|extern|const|sealed|open|data|partial)\s+)*"
    r"(?:def|class|function\*?|func|fn|struct|enum|trait|impl|interface|type|module|namespace|package|import|from"
    r"|use|using|mod|macro_rules!|record|object|protocol|extension|CREATE|ALTER)\s+[\w*\"'`<{(.]"
    r"|(?:export\s+)?(?:const|let|var)\s+\w+\s*=\s*(?:async\s*)?(?:\(|function|\w+\s*=>)"
    r"|(?:public|private|protected|static|virtual)\s+[\w<>\[\],\s]+\([^;]*$)"
)
# the first words of signatures; lines that begin with another word are not matched at all
_OPENERS = frozenset(
    b"export default public private protected internal static final abstract async pub unsafe virtual "
    b"override inline extern const sealed open data partial def class function function* func fn struct "
    b"enum trait impl interface type module namespace package import from use using mod macro_rules record "
    b"object protocol extension CREATE ALTER let var".split()
)
_MARKS = (b"@", b"#")
_FILE_HEAD = re.compile(
    r"diff |Index: |--- |\+\+\+ |(?:new|deleted|old) (?:file )?mode |rename |similarity |Binary "
)


def code_layers(lines: Lines) -> list[Layer]:
    """Keep the beginning of the code, rare lines, and the signatures of the rest."""
    texts = lines.pieces.texts
    signatures = [
        index
        for index, words in enumerate(lines.rows.words)
        if words and (words[0] in _OPENERS or words[0][:1] in _MARKS) and SIGNATURE.match(texts[index])
    ]
    return [
        Layer(edges(lines.count, first=0.8), 0.2),
        Layer(lines.rare, 0.35),
        Layer(_outermost_first(lines, signatures), 0.35),
        Layer(edges(lines.count, first=0.8), 1),
    ]


def _outermost_first(lines: Lines, signatures: Sequence[int]) -> list[int]:
    def depth(index: int) -> int:
        text = lines.pieces.texts[index]
        return len(text) - len(text.lstrip())

    return sorted(signatures, key=lambda index: (depth(index), index))


def diff_layers(lines: Lines) -> list[Layer]:
    """Keep file and hunk headers, rare changes, then changes before context."""
    files, hunks, changes = [], [], set()
    for index, text in enumerate(lines.pieces.texts):
        if text.startswith("@@"):
            hunks.append(index)
        elif _FILE_HEAD.match(text):
            files.append(index)
        elif text.startswith(("+", "-")):
            changes.add(index)
    return [
        Layer(edges(lines.count, first=0.8), 0.05),
        Layer(files, 0.25),
        Layer(hunks, 0.2),
        Layer((index for index in lines.rare if index in changes), 0.25),
        Layer(lines.rare, 0.05),
        Layer(_by_hunk(hunks, changes, lines.count), 0.15),
        Layer(edges(lines.count, first=0.8), 1),
    ]


def _by_hunk(hunks: Sequence[int], changes: set[int], count: int) -> Iterator[int]:
    """Yield the first changes of every hunk, then the next ones of every hunk, and so on."""
    ends = [*hunks[1:], count]
    parts = [
        [index for index in range(start + 1, end) if index in changes]
        for start, end in zip(hunks, ends, strict=False)
    ]
    size = 4
    for start in range(0, max(map(len, parts), default=0), size):
        for part in parts:
            yield from part[start : start + size]


CODE = TextKind("code", code_layers)
DIFF = TextKind("diff", diff_layers)
