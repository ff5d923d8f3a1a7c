"""Ctrl+C during a block that must not be interrupted."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from rolling_chat.replay import deferred_interrupts


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Make SIGINT raise, also where a shell that runs the tests in the background had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    done = []

    def work() -> None:
        with deferred_interrupts():
            signal.raise_signal(signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done


def test_after_the_block_it_comes_at_once() -> None:
    with deferred_interrupts():
        pass
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
