"""A row that fails hides no other."""

from __future__ import annotations

import pytest

from tests.support.cases import Cases


def test_every_row_that_fails_is_named_and_the_others_run() -> None:
    cases, ran = Cases(), []
    for name in ("first", "second", "last"):
        with cases.case(name):
            ran.append(name)
            assert len(name) > 5
    with pytest.raises(AssertionError) as caught:
        cases.finish()
    assert ran == ["first", "second", "last"]
    assert "'first'" in str(caught.value)
    assert "'last'" in str(caught.value)
    assert "'second'" not in str(caught.value)


def test_rows_that_all_hold_are_no_failure() -> None:
    cases = Cases()
    with cases.case("only"):
        assert cases
    cases.finish()
