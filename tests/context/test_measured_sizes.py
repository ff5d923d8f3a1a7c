"""Tables of sizes grow without being copied."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context.measured_sizes import SizeTable

_SIZES = st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 3)), st.integers(1, 99), max_size=6)


@given(st.lists(_SIZES))
def test_a_table_holds_what_was_added_last_and_none_changes(added: list[dict[tuple[int, int], int]]) -> None:
    table, expected = SizeTable(), dict[tuple[int, int], int]()
    kept = [(table, expected)]
    for sizes in added:
        table, expected = table.with_sizes(sizes), {**expected, **sizes}
        kept.append((table, expected))
    for one, known in kept:
        assert dict(one) == known
        assert len(one) == len(known)
        assert one == known
        assert (10, 0) not in one
