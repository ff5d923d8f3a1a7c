"""Servers that send without end: memory stays small, and `-p` ends by itself or by SIGTERM."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, repeat
from pathlib import Path

import pytest

from tests.support.program import program_environment

pytestmark = pytest.mark.slow

_PATIENCE = 120.0  # seconds
_MOST_MEMORY = 500_000  # kilobytes
_GIGABYTE = 1 << 30
_GZIP = zlib.MAX_WBITS | 16


def _event(delta: object, finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


def _call(index: int, arguments: str) -> dict[str, list[object]]:
    function = {"name": "list_files", "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": f"c{index}", "type": "function", "function": function}]}


def _joined(events: Iterator[bytes], number: int = 20) -> Iterator[bytes]:
    while True:
        yield b"".join(next(events) for _ in range(number))


def _bomb(content: bytes, kind: int) -> Iterator[bytes]:
    """`content` without end, compressed a thousandfold; compressed once, as each block stands alone."""
    compressor = zlib.compressobj(wbits=kind)
    yield compressor.compress(content) + compressor.flush(zlib.Z_FULL_FLUSH)
    yield from repeat(compressor.compress(content) + compressor.flush(zlib.Z_FULL_FLUSH))


def _many(delta: dict[str, list[object]]) -> bytes:
    """One event of 3 MB that repeats the item of `delta`."""
    times = 3_000_000 // len(json.dumps(delta))
    return _event({key: items * times for key, items in delta.items()})


Body = Callable[[], Iterator[bytes]]
STREAM, JSON = "text/event-stream", "application/json"
ANSWERS: dict[str, tuple[int, str, str, Body]] = {
    "text": (200, STREAM, "", lambda: _joined(repeat(_event({"content": "word " * 400})))),
    "thinking": (200, STREAM, "", lambda: _joined(repeat(_event({"reasoning_content": "hm " * 400})))),
    "one call's arguments": (200, STREAM, "", lambda: _joined(repeat(_event(_call(0, "1, " * 400))))),
    "calls in one reply": (200, STREAM, "", lambda: _joined(_event(_call(n, "{}")) for n in count())),
    "empty events": (200, STREAM, "", lambda: repeat(b"data: {}\n\n" * 5_000)),
    "pings": (200, STREAM, "", lambda: repeat(b": ping\n\n" * 5_000)),
    "one event": (200, STREAM, "", lambda: repeat(b"data: x\n" * 8_000)),
    "one line": (200, STREAM, "", lambda: iter([b"data: ", *repeat(b"x" * 64_000, 100_000)])),
    "one JSON text": (200, JSON, "", lambda: repeat(b"[" * 64_000)),
    "calls in one event": (
        200,
        STREAM,
        "",
        lambda: iter([_many(_call(0, "{}"))]),
    ),
    "an error": (400, JSON, "", lambda: repeat(b"no, no, no. " * 5_000)),
    "a compressed stream": (200, STREAM, "gzip", lambda: _bomb(b"data: {}\n\n" * 100_000, _GZIP)),
    "a compressed answer": (200, JSON, "gzip", lambda: _bomb(b"[],\n" * 300_000, _GZIP)),
    "a compressed error": (429, JSON, "deflate", lambda: _bomb(b"\0" * 1_000_000, zlib.MAX_WBITS)),
}


@contextmanager
def _server(answer: tuple[int, str, str, Body]) -> Iterator[str]:
    status, kind, encoding, body = answer

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-type", kind)
            if encoding:
                self.send_header("content-encoding", encoding)
            self.end_headers()
            with suppress(OSError):
                for piece in body():
                    self.wfile.write(piece)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _start(folder: Path, api_base: str) -> subprocess.Popen[bytes]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 * _GIGABYTE, 4 * _GIGABYTE))  # spare the machine

    environ = program_environment(folder / "home", OPENAI_API_KEY="sk-any")
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        return subprocess.Popen(
            [sys.executable, "-m", "rolling_chat", "-p", "go", "--model", "openai/gpt-4o",
             "--api-base", api_base, "-c", "agent.retry_minutes=0"],
            cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            preexec_fn=limit,  # noqa: PLW1509
        )  # fmt: skip


def _wait(child: subprocess.Popen[bytes]) -> tuple[int, int]:
    """The exit code, and the most memory that the process had, in kilobytes."""
    timer = threading.Timer(_PATIENCE, child.kill)
    timer.start()
    try:
        _pid, status, usage = os.wait4(child.pid, 0)
    finally:
        timer.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_maxrss


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_without_an_end_is_refused_in_little_memory(tmp_path: Path, name: str) -> None:
    with _server(ANSWERS[name]) as api_base:
        code, memory = _wait(_start(tmp_path, api_base))
    said = (tmp_path / "err").read_text()
    assert code == 1, said
    assert memory < _MOST_MEMORY
    lines = [line for line in said.splitlines() if ": model: " not in line]
    assert len(lines) == 1, said


@pytest.mark.parametrize(
    "event",
    [
        _event({"content": "a"}),
        _event({"reasoning_content": "a"}),
        _event(_call(0, "1")),
        b"data: {}\n\n" * 1_000,
    ],
    ids=["text", "thinking", "arguments", "nothing"],
)
def test_sigterm_ends_it_whatever_comes(tmp_path: Path, event: bytes) -> None:
    began = threading.Event()

    def body() -> Iterator[bytes]:
        for number, piece in enumerate(_joined(repeat(_event({"content": "a"}) + event), 20)):
            if number == 3:
                began.set()
            yield piece

    with _server((200, STREAM, "", body)) as api_base:
        child = _start(tmp_path, api_base)
        assert began.wait(_PATIENCE)
        child.send_signal(signal.SIGTERM)
        code, _memory = _wait(child)
    assert code == 130, (tmp_path / "err").read_text()
