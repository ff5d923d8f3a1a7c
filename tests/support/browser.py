"""A real headless Chromium, driven by its DevTools protocol; what the page's terminal shows, by pyte."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pyte

from tests.support.patience import PATIENCE_SECONDS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# what comes over the page's websockets is kept, in order, as base64
_SPY = """
window.received = [];
const Plain = window.WebSocket;
window.WebSocket = class extends Plain {
  constructor(...rest) {
    super(...rest);
    this.addEventListener("message", async (event) => {
      if (typeof event.data === "string") return;
      const at = window.received.push(null) - 1;
      const bytes = new Uint8Array(event.data instanceof Blob ? await event.data.arrayBuffer() : event.data);
      window.received[at] = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
    });
  }
};
"""


class Tab:
    """One tab of the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol; return its result."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            answer = await self._socket.receive_json(timeout=PATIENCE_SECONDS)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    async def open(self, address: str) -> None:
        """Go to an address."""
        await self.call("Page.enable")
        await self.call("Page.addScriptToEvaluateOnNewDocument", source=_SPY)
        await self.call("Page.navigate", url=address)

    async def evaluate(self, script: str) -> Any:
        """Return the value of a script."""
        result = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return result["result"].get("value")

    async def type(self, text: str) -> None:
        """Type a text, a key a character; a line feed is Enter."""
        for character in text:
            if character == "\n":
                enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
                await self.call("Input.dispatchKeyEvent", type="keyDown", **enter)
                await self.call("Input.dispatchKeyEvent", type="keyUp", **enter)
            else:
                await self.call("Input.dispatchKeyEvent", type="char", text=character)

    async def resize(self, width: int, height: int) -> None:
        """Give the page so many pixels."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    async def screen(self) -> str:
        """Return the text that the page's terminal shows."""
        chunks = await self.evaluate("window.received || []")
        screen = pyte.Screen(200, 60)
        stream = pyte.ByteStream(screen)
        for chunk in chunks or ():
            stream.feed(base64.b64decode(chunk or ""))
        return "\n".join(line.rstrip() for line in screen.display)

    async def reads(self, *words: str) -> str:
        """Wait until the terminal shows all of these words; return what it shows."""

        def is_there(screen: str) -> bool:
            return all(word in screen for word in words)

        return await self.until(is_there)

    async def until(self, is_so: Callable[[str], bool]) -> str:
        """Wait until something is so of what the terminal shows."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while not is_so(screen := await self.screen()):
            assert asyncio.get_running_loop().time() < deadline, f"never came true; the screen:\n{screen}"
            await asyncio.sleep(0.05)
        return screen

    async def picture(self) -> bytes:
        """Return what the page looks like as PNG."""
        result = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(result["data"])


def _read_port(profile: Path) -> str:
    """Return the port that the browser wrote into its profile; empty while it is not whole."""
    file = profile / "DevToolsActivePort"
    words = file.read_text().split() if file.exists() else []
    return words[0] if len(words) == 2 else ""


@asynccontextmanager
async def browser_tab(folder: Path) -> AsyncIterator[Tab]:
    """Start a browser with a profile in `folder`, and close it at the end."""
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0",
        f"--user-data-dir={folder}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip
    try:
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while not (port := _read_port(folder)):
            assert process.returncode is None, "Chromium did not start"
            assert asyncio.get_running_loop().time() < deadline, "Chromium opened no port"
            await asyncio.sleep(0.05)
        async with aiohttp.ClientSession() as client:
            async with client.get(f"http://127.0.0.1:{port}/json") as answer:
                pages = json.loads(await answer.text())
            address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
            async with client.ws_connect(address, max_msg_size=0) as socket:
                yield Tab(socket)
    finally:
        process.kill()
        await process.wait()
