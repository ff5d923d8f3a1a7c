"""A loopback server that answers each path with a fixed JSON, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class JsonServer:
    """A running server: its address, and the paths and bodies that came."""

    address: str
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)


@contextlib.contextmanager
def json_server(answers: Mapping[str, Any]) -> Iterator[JsonServer]:
    """Serve `answers` by path: a value as JSON, bytes as they are, an integer as that status."""
    running = JsonServer("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("content-length", 0))))

        def _answer(self, body: bytes) -> None:
            running.asked.append((self.path, self.headers.get("authorization", ""), body))
            answer = answers.get(self.path, 404)
            status = answer if isinstance(answer, int) else 200
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
