"""An MCP server of the official SDK to test with: over stdio, or with a port as its argument over HTTP."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import struct
import sys
import zlib
from pathlib import Path

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("test server", version="1.0", log_level="ERROR")


def png(width: int = 4, height: int = 4) -> bytes:
    """Return a small picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\xff\0\0" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


class Weather(BaseModel):
    """Structured content."""

    place: str
    degrees: int


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool()
def weather(place: str) -> Weather:
    """The weather at a place."""
    return Weather(place=place, degrees=21)


@server.tool()
def picture() -> Image:
    """A red picture."""
    return Image(data=png(), format="png")


@server.tool()
def environment(name: str) -> str:
    """The value of a variable of the server's."""
    return os.environ.get(name, "(not set)")


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("the printer is on fire")


@server.tool()
def huge(lines: int) -> str:
    """A long text."""
    return "\n".join(f"line {number} of many" for number in range(lines))


@server.tool()
async def slow(context: Context, marker: str) -> str:
    """Begin, say so by a file, and go on for a minute."""
    await context.report_progress(1, 2, "half of it")
    await asyncio.to_thread(Path(marker).touch)
    await asyncio.sleep(60)
    return "done"


@server.tool()
def die() -> str:
    """Kill the server in the middle of a call."""
    print("out of memory", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@server.tool()
async def grow(context: Context, name: str) -> str:
    """Add a tool, and say that the list has changed."""
    server.add_tool(lambda: "grown", name=name, description="A tool that came later.")
    await context.notify_tools_changed()
    return "added"


@server.prompt()
def review(file: str, focus: str = "bugs") -> str:
    """Review a file."""
    return f"Review {file} for {focus}."


@server.resource("notes://today", name="today's notes")
def notes() -> str:
    """Notes."""
    return "Buy milk."


@server.resource("notes://{day}")
def notes_of(day: str) -> str:
    """Notes of a day."""
    return f"Notes of {day}."


@server.resource("picture://red", mime_type="image/png")
def red() -> bytes:
    """A picture."""
    return base64.b64decode(base64.b64encode(png()))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()
