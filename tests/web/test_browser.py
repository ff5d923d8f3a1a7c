"""The chat in a real headless browser: typed, answered, resized, reloaded, ended and gone on with."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.browser import CHROMIUM, browser_tab
from tests.support.patience import PATIENCE_SECONDS
from tests.support.processes import has_ended
from tests.support.program import program_environment

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@asynccontextmanager
async def served(home: Path) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """The address that `rolling-chat serve` prints, and its process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "rolling_chat", "serve", "--port", "0", "--", "--model", "demo/offline",
        cwd=home, env=program_environment(home), stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), PATIENCE_SECONDS)
        yield line.decode().removeprefix("Open ").strip(), process
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)


async def test_a_reload_goes_on_with_the_same_chat_and_its_draft(tmp_path: Path) -> None:
    async with served(tmp_path) as (address, _), browser_tab(tmp_path / "profile") as tab:
        await tab.resize(900, 500)
        await tab.open(address)
        await tab.reads("rolling: off", "commands")
        assert "token" not in await tab.evaluate("window.location.href")
        await tab.type("hello there\n")
        await tab.reads("hello there", "done in")
        await tab.resize(1200, 700)
        await tab.type("a draft that stays")
        await tab.reads("a draft that stays")
        await tab.call("Page.reload")
        await tab.until(lambda screen: "done in" in screen and "a draft that stays" in screen)
        assert "hello there" in await tab.screen()
        fetched = await tab.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
        assert all(name.startswith(("http://127.0.0.1:", "data:")) for name in fetched), fetched


@pytest.mark.slow
async def test_a_chat_that_was_quit_is_gone_on_with_and_another_tab_has_its_own(tmp_path: Path) -> None:
    async with served(tmp_path) as (address, _), browser_tab(tmp_path / "profile") as tab:
        await tab.open(address)
        await tab.reads("rolling: off")
        await tab.type("remember the heron\n")
        await tab.reads("done in")
        await tab.type("/quit\n")
        await ends(lambda: tab.evaluate("document.body.classList.contains('-closed')"))
        await tab.evaluate("document.getElementById('again').click()")
        await tab.reads("remember the heron", "rolling: off")
        await tab.evaluate("sessionStorage.clear(); window.location.reload()")
        screen = await tab.reads("rolling: off", "commands")
        assert "heron" not in screen


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
async def test_no_chat_outlives_a_server_that_was_killed(tmp_path: Path) -> None:
    async with served(tmp_path) as (address, server), browser_tab(tmp_path / "profile") as tab:
        await tab.open(address)
        await tab.reads("rolling: off")
        chats = children(server.pid)
        assert chats
        server.send_signal(signal.SIGKILL)
        for chat in chats:
            await has_ended(chat)


async def ends(is_so: object) -> None:
    """Wait until a coroutine function returns something true."""
    assert callable(is_so)
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while not await is_so():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.05)


def children(pid: int) -> list[int]:
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                stat = Path(entry.path, "stat").read_text()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry.name))
    return found
