"""Cut a text of any kind to some tokens: see its kind, keep its lines by that, say what was left out."""

from __future__ import annotations

from rolling_chat.context.count_memo import CountText
from rolling_chat.context.cutting.json_values import JsonBody, find_json
from rolling_chat.context.cutting.line_cut import LineCut
from rolling_chat.context.cutting.notices import Describe
from rolling_chat.context.cutting.pieces import fill

_MIN_CAP = 150  # tokens; less has no room for lines and for what is said of the rest


def cut_by_kind(text: str, chars: int, cap: int, count: CountText, describe: Describe) -> str:
    """Return the lines of `text` that matter, in at most `cap` tokens; "" where too few would fit.

    `chars` is about as many characters. JSON stays JSON. Between the lines, marks say which ones are left
    out; at the end stands what `describe` says of them.
    """
    found: JsonBody | LineCut | None = find_json(text)
    if found is None:
        if cap < _MIN_CAP or not text.strip():
            return ""
        found = LineCut.of(text, chars)
    return fill(lambda size: found.render(size, describe), cap, chars, count)
