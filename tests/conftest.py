"""What every test shares: how many cases a property is tried with, and how many run at a time.

The fast tier tries some forty, the same in every run, so that main is not red for what a change has not
touched. `HYPOTHESIS_PROFILE=full` tries tens of thousands, others in every run, and then a property is one
of the slow tests: `HYPOTHESIS_PROFILE=full pytest -m slow` runs them all, with a path only those there.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.support.orphans import no_orphans

settings.register_profile(
    "fast",
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("full", settings.get_profile("fast"), max_examples=20_000, derandomize=False)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fast")
settings.load_profile(_PROFILE)


@pytest.fixture(autouse=True)
def _no_orphans() -> Iterator[None]:
    with no_orphans():
        yield


@pytest.fixture(autouse=True)
def _same_log() -> Iterator[None]:
    """A run of the program in this process takes the log to a file: the next test has it as it was."""
    loggers = [logging.getLogger(name) for name in ("rolling_chat", "asyncio", "py.warnings")]
    before = [(logger, logger.handlers[:], logger.propagate, logger.level) for logger in loggers]
    raises = logging.raiseExceptions
    yield
    logging.captureWarnings(False)
    logging.raiseExceptions = raises
    for logger, handlers, propagate, level in before:
        for handler in logger.handlers:
            if handler not in handlers:
                handler.close()
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With tens of thousands of cases a property takes minutes."""
    for item in items if _PROFILE == "full" else ():
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.slow)


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are processors: tests of terminals wait for paints half of their time."""
    return (os.cpu_count() or 1) + 1
