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


def test_a_key_is_hinted_once_where_a_question_and_a_folded_paste_want_it() -> None:
    moment = Moment(busy=True, escapes="no", next_to_paste=True)
    assert [hint for hint in key_hints(moment) if hint[0] == "tab"] == [("tab", "unfold")]
    assert ("tab", "answer") in key_hints(Moment(busy=True, escapes="no"))
