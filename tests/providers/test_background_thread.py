"""Work in a daemon thread that does not delay the end of the program."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from rolling_chat.providers.background_thread import in_background
from tests.support.patience import PATIENCE_SECONDS


async def test_the_result_comes_back_from_another_thread() -> None:
    assert await in_background(threading.current_thread) is not threading.current_thread()


async def test_an_exception_is_raised_where_the_work_is_awaited() -> None:
    def broken() -> None:
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        await in_background(broken)


async def test_a_cancelled_wait_does_not_stop_the_work() -> None:
    release, finished = threading.Event(), threading.Event()

    def work() -> None:
        release.wait()
        finished.set()

    task = asyncio.create_task(in_background(work))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    assert finished.wait(PATIENCE_SECONDS)


def test_the_program_ends_even_if_the_work_never_does() -> None:
    script = (
        "import asyncio, threading\n"
        "from rolling_chat.providers.background_thread import in_background\n"
        "async def main():\n"
        "    asyncio.create_task(in_background(threading.Event().wait))\n"
        "    await asyncio.sleep(0)\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
