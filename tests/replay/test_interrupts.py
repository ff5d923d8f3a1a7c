"""Ctrl+C during a block that must not be interrupted."""

from __future__ import annotations

import signal

import pytest

from rolling_chat.replay import deferred_interrupts


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
