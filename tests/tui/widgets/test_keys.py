"""Which keys the last row names, and in which order."""

from __future__ import annotations

import pytest

from rolling_chat.tui.widgets.keys import Moment, key_hints


@pytest.mark.parametrize("moment", [Moment(), Moment(busy=True), Moment(escapes="no")])
def test_a_wide_row_names_the_key_that_shows_the_next_request(moment: Moment) -> None:
    assert ("ctrl+g", "context") in key_hints(moment)


def test_a_row_of_78_cells_says_how_to_leave() -> None:
    row = "  ".join(" ".join(hint) for hint in key_hints(Moment()))
    assert "ctrl+q quit" in row[:78]
