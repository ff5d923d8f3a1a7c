"""Choose what to keep of search results, file lists and tables: text with many entries of one form."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from rolling_chat.context.cutting.lines import Lines, TextKind
from rolling_chat.context.cutting.pieces import Layer, edges

PATH = re.compile(r"^(?:[-dlrwxst.+@]{10,11}\s+.*\s)?[^\s:*?\"<>|,;=]{1,300}$")
_NUMBER = re.compile(r"^[-+]?[$€£]?(?:\d[\d,]*)(?:\.\d+)?(?:[eE][-+]?\d+)?%?$")
_NOT_IN_NUMBERS = re.compile(r"[^\d.eE+-]")
_MIN_SHARE = 0.6  # of a column's cells must be numbers
_MAX_FOLDERS = 12
_MIN_ROWS = 8
_SAME_CELLS = 0.8  # of the rows


def search_layers(lines: Lines) -> list[Layer]:
    """Keep the best line of every file, rare lines, then more lines of each file."""
    files: defaultdict[str, list[int]] = defaultdict(list)
    for index, path in enumerate(lines.paths):
        if path:
            files[path].append(index)
    rarity = lines.rows.rarity
    best = [max(found, key=lambda index: (rarity[index], -index)) for found in files.values()]
    best.sort(key=lambda index: -rarity[index])
    return [
        Layer(edges(lines.count), 0.05),
        Layer(lines.rare, 0.3),
        Layer(best, 0.4),
        Layer(_interleave([found[:6] for found in files.values()]), 0.15),
        Layer(edges(lines.count), 1),
    ]


def path_layers(lines: Lines) -> list[Layer]:
    """Keep rare names, then some names from every folder."""
    folders: defaultdict[str, list[int]] = defaultdict(list)
    for index, folder in enumerate(lines.folders):
        folders[folder].append(index)
    return [
        Layer(edges(lines.count), 0.1),
        Layer(lines.rare, 0.45),
        Layer(_interleave(folders.values()), 0.35),
        Layer(edges(lines.count), 1),
    ]


def _interleave(groups: Iterable[Sequence[int]]) -> list[int]:
    """Return the first of each group, then the second of each, and so on."""
    order = [(rank, number, index) for number, group in enumerate(groups) for rank, index in enumerate(group)]
    return [index for *_, index in sorted(order)]


def note_folders(lines: Lines, chosen: Sequence[int]) -> str:
    """Return a note on how many lines were left out of each folder."""
    omitted = Counter(lines.folders) - Counter(lines.folders[index] for index in chosen)
    entries = [f"{name[-60:] or '.'}/ {count:,}" for name, count in omitted.most_common(_MAX_FOLDERS)]
    more = len(omitted) - len(entries)
    rest = f", and {more:,} more folders" if more > 0 else ""
    return f"left out, by folder: {', '.join(entries)}{rest}" if entries else ""


def table_layers(lines: Lines) -> list[Layer]:
    """Keep the header, both ends, the extremes of each numeric column, and rare rows."""
    return [
        Layer(range(min(3, lines.count)), 0.1),
        Layer(edges(lines.count), 0.1),
        Layer(lines.rare, 0.35),
        Layer(_extremes(lines), 0.15),
        Layer(edges(lines.count), 1),
    ]


def delimiter_of(lines: Sequence[str]) -> str | None:
    """Return the delimiter that splits most of `lines` into the same number of cells; None if there is none.

    White space counts only if a column is numeric; otherwise every sentence would be a row. It is returned as
    "".
    """
    filled = [line for line in lines if line.strip() and not set(line) <= set("|-+=: ")]
    if len(filled) < _MIN_ROWS:
        return None
    for delimiter in ("\t", "|", ";", ","):
        sizes = Counter(line.count(delimiter) for line in filled)
        cuts, count = sizes.most_common(1)[0]
        if cuts >= 1 and count >= len(filled) * _SAME_CELLS and (cuts > 1 or delimiter == "\t"):
            return delimiter
    sizes = Counter(len(line.split()) for line in filled)
    size, count = sizes.most_common(1)[0]
    if size < 3 or count < len(filled) * _SAME_CELLS:
        return None
    rows = [line.split() for line in filled if len(line.split()) == size]
    columns = zip(*rows, strict=True)
    return "" if any(_is_numeric(column) for column in columns) else None


def _is_numeric(column: Sequence[str]) -> bool:
    return (
        sum(map(bool, map(_NUMBER.match, (cell.strip(' "') for cell in column)))) >= len(column) * _MIN_SHARE
    )


def _extremes(lines: Lines) -> list[int]:
    """Return the rows with the largest and the smallest number of each numeric column."""
    texts = lines.pieces.texts
    delimiter = delimiter_of(texts[:400])
    if delimiter is None:
        return []
    rows = [text.split(delimiter or None) for text in texts]
    size = Counter(map(len, rows)).most_common(1)[0][0]
    # skip the header
    even = [index for index, row in enumerate(rows) if index and len(row) == size]
    found: list[int] = []
    for column in zip(*[rows[index] for index in even], strict=True):
        found += (even[index] for index in _ends_of(column))
    return list(dict.fromkeys(found))


def _ends_of(column: Sequence[str]) -> tuple[int, ...]:
    """Return the indexes of the largest and the smallest number; empty if the column is not numeric."""
    if not _is_numeric(column[:: 1 + len(column) // 200]):
        return ()
    try:
        numbers, places = list(map(float, column)), None
    except ValueError:  # some cells have units or separators, or are missing
        places = [index for index, cell in enumerate(column) if _NUMBER.match(cell.strip(' "'))]
        numbers = [float(_NOT_IN_NUMBERS.sub("", column[index])) for index in places]
    ends = numbers.index(max(numbers)), numbers.index(min(numbers))
    return ends if places is None else tuple(places[index] for index in ends)


SEARCH = TextKind("search results", search_layers, note_folders)
PATHS = TextKind("list of files", path_layers, note_folders, are_paths=True)
TABLE = TextKind("table", table_layers)
