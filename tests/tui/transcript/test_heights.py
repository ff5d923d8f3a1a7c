"""Heights: the same as counting, whatever was put where."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.tui.transcript.heights import Heights

STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "prepend", "pop", "set"]), st.integers(0, 9), st.integers(0, 99))
)


@given(STEPS)
def test_rows_and_ordinals_are_found_as_by_counting(steps: list[tuple[str, int, int]]) -> None:
    heights, known, first = Heights(), list[int](), 0
    for step, height, where in steps:
        match step:
            case "append":
                heights.below.append(height)
                known.append(height)
            case "prepend":
                heights.above.append(height)
                known.insert(0, height)
                first -= 1
            case "pop" if first + len(known) > 0:
                heights.cut(heights.end - 1)
                known.pop()
            case "set" if known:
                at = where % len(known)
                heights.set(first + at, height)
                known[at] = height
    assert (heights.start, heights.end, heights.total) == (first, first + len(known), sum(known))
    rows = [(first + at, row) for at, height in enumerate(known) for row in range(height)]
    assert [heights.find(row) for row in range(len(rows))] == rows
    assert [heights.before(first + at) for at in range(len(known))] == [
        sum(known[:at]) for at in range(len(known))
    ]
    assert heights.find(len(rows) + 3)[0] == heights.end
