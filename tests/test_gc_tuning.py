"""The full look for garbage waits until it is worth it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from rolling_chat import gc_tuning

# a full look finds what tests before it in this process left open, too
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Ring:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


def test_what_came_together_goes_and_for_little_nobody_looks() -> None:
    gc.collect()
    gc.set_threshold(100_000, 100_000, 100_000)
    ring = Ring()
    watched = weakref.ref(ring)
    del ring
    gc_tuning.collect_when_idle()
    assert watched() is not None
    for _ in range(40):
        gc.collect(1)  # the ring is old by then, and past these
    old = Ring()
    gc.collect(1)
    watched = weakref.ref(old)
    del old
    gc_tuning.collect_when_idle()
    assert watched() is None


def test_at_the_start_it_is_looked_for_seldom_and_later_in_short_looks() -> None:
    gc_tuning.tune_for_one_run()
    once = gc.get_threshold()[0]
    gc_tuning.tune_for_startup()
    assert once > gc.get_threshold()[0] > 10_000
    gc_tuning.freeze_loaded_objects()
    gc.unfreeze()
    assert gc.get_threshold()[0] < 10_000


def test_while_the_user_waits_for_the_model_it_takes_more_to_look() -> None:
    gc.collect()
    gc.set_threshold(100_000, 100_000, 100_000)
    old = Ring()
    for _ in range(40):
        gc.collect(1)
    watched = weakref.ref(old)
    del old
    gc_tuning.collect_when_idle(is_waiting=True)
    assert watched() is not None
    for _ in range(80):
        gc.collect(1)
    gc_tuning.collect_when_idle(is_waiting=True)
    assert watched() is None
