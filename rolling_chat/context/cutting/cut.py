"""Cut any text to a number of tokens: detect its kind, keep the lines that matter, describe the rest."""

from __future__ import annotations

from rolling_chat.context.count_memo import CountText
from rolling_chat.context.cutting.json_values import JsonBody, find_json
from rolling_chat.context.cutting.line_cut import LineCut
from rolling_chat.context.cutting.notices import Describe
from rolling_chat.context.cutting.pieces import fill

_MIN_CAP = 150  # tokens; less leaves no room for lines and a notice


def cut_by_kind(text: str, chars: int, cap: int, count: CountText, describe: Describe) -> str:
    """Return the important lines of `text` in at most `cap` tokens; "" if too few would fit.

    `chars` is the approximate number of characters in `cap` tokens. JSON stays JSON. Marks between the lines
    show which ones were left out, and a notice from `describe` follows at the end.
    """
    found: JsonBody | LineCut | None = find_json(text)
    if found is None:
        if cap < _MIN_CAP or not text.strip():
            return ""
        found = LineCut.of(text, chars)
    return fill(lambda size: found.render(size, describe), cap, chars, count)
