"""What every test shares: how many cases a property is tried with, and how many run at a time.

The fast tier tries twenty-five, the same in every run, so that main is not red for what a change has not
touched. `HYPOTHESIS_PROFILE=full` tries tens of thousands, others in every run, and then a property is one
of the slow tests: `HYPOTHESIS_PROFILE=full pytest -m slow` runs them all, with a path only those there.
"""

from __future__ import annotations

import gc
import itertools
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.assertion import rewrite
from hypothesis import HealthCheck, is_hypothesis_test, settings

from rolling_chat.sessions.sqlite import database
from tests.support.empty_stores import copy_empty_stores
from tests.support.orphans import no_orphans

settings.register_profile(
    "fast",
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("full", settings.get_profile("fast"), max_examples=20_000, derandomize=False)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fast")
_numbers = itertools.count()
_LONG = 200  # characters, of the name of a test
settings.load_profile(_PROFILE)


def pytest_configure(config: pytest.Config) -> None:
    """Let every worker rewrite the assertions of its share of the files: all did so with all of them."""
    gc.disable()  # until everything is collected: of that nothing is garbage, and looking took a third
    share = getattr(config, "workerinput", None)
    if share is not None:
        _rewrite(config, int(share["workerid"].removeprefix("gw")), share["workercount"])


def _rewrite(config: pytest.Config, number: int, count: int) -> None:
    """Rewrite every file whose turn it is and that is not yet, as pytest does when it imports them."""
    state = config.stash[rewrite.assertstate_key]
    asked_for = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    for source in sorted(Path(__file__).parent.rglob("test_*.py"))[number::count]:
        if not any(map(source.is_relative_to, asked_for)):
            continue
        folder = rewrite.get_cache_dir(source)
        kept = folder / f"{source.stem}{rewrite.PYC_TAIL}"
        if rewrite.try_makedirs(folder) and rewrite._read_pyc(source, kept) is None:
            stat, code = rewrite._rewrite_test(source, config)
            rewrite._write_pyc(state, code, stat, kept)


def pytest_collection_finish() -> None:
    """Look for garbage from here on, seldom, and not among the tests themselves and what they import."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long text by its length: each name goes from every worker to the main process, and back."""
    return f"{argname} of {len(val)}" if isinstance(val, str | bytes) and len(val) > _LONG else None


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the test's own; pytest looks for a free number in the names of all that it made before."""
    folder = tmp_path_factory.getbasetemp() / f"test_{next(_numbers)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(autouse=True, scope="session")
def _quick_stores() -> Iterator[None]:
    """Wait for no disk in this process, and make the tables of a store once.

    A third of the time of whatever saves a session went into the disk. What is committed survives the death
    of a process all the same; no test can make a power cut.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_SYNC_ALWAYS", "OFF")
        patch.setattr(database, "_SYNC_SELDOM", "OFF")
        copy_empty_stores(patch)
        yield


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
