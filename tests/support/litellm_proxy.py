"""A real LiteLLM proxy in a virtual environment of its own, and a real Redis, both on loopback."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.patience import PATIENCE_SECONDS, wait_for

ROOT = Path(__file__).parents[2]
MASTER_KEY = f"sk-{secrets.token_hex(24)}"
_STARTS_WITHIN = 10 * PATIENCE_SECONDS  # LiteLLM is large, and each worker imports it
# Within 5 seconds, the default, a worker has not imported LiteLLM where others want the processors, too. No
# longer than that takes: for so long uvicorn waits for the answer of a worker that dies while it is asked.
_ANSWERS_WITHIN = 2 * PATIENCE_SECONDS
_REQUIREMENTS = ("litellm[proxy]>=1.105.3,<1.106", "prometheus-client<1")


def proxy_folder(cache: pytest.Cache) -> Path:
    """Return the folder with the proxy's programs, made once; skip where it cannot be had.

    `ROLLING_CHAT_PROXY_VENV` names a virtual environment that has the proxy already.
    """
    given = os.environ.get("ROLLING_CHAT_PROXY_VENV")
    return proxy_programs(Path(given) if given else Path(cache.mkdir("litellm-proxy")))


def proxy_programs(venv: Path) -> Path:
    """Return the folder of the proxy's programs in a virtual environment, which is made if there is none."""
    programs = venv / "bin"
    if (programs / "litellm").exists():
        return programs
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    install = [str(programs / "pip"), "install", "-q", *_REQUIREMENTS]
    made = subprocess.run(install, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"litellm[proxy] cannot be installed: {made.stderr.strip().splitlines()[-1]}")
    return programs


@contextlib.contextmanager
def redis_server(folder: Path, port: int = 0) -> Iterator[int]:
    """Run a Redis that keeps nothing, and yield its port; skip where there is none."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server (Debian: apt-get install redis-server)")
    port = port or free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with _running(command, folder / "redis.log") as process:
        _wait(lambda: _is_open(port), process, "Redis")
        yield port


class LiteLLMProxy:
    """A proxy with one worker or more; whichever worker dies, the proxy starts it again."""

    def __init__(self, programs: Path, config: dict[str, Any], folder: Path, *, workers: int = 1) -> None:
        self._programs = programs
        self._workers = workers
        self.port = free_port()
        self.log = folder / f"proxy-{self.port}.log"
        self._config = folder / f"config-{self.port}.yaml"
        general = {**config.get("general_settings", {}), "master_key": MASTER_KEY}
        self._config.write_text(yaml.safe_dump({**config, "general_settings": general}))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> LiteLLMProxy:
        command = [str(self._programs / "litellm"), "--config", str(self._config)]
        command += ["--host", "127.0.0.1", "--port", str(self.port), "--num_workers", str(self._workers)]
        command += ["--timeout_worker_healthcheck", str(int(_ANSWERS_WITHIN))]
        with contextlib.ExitStack() as stack:
            self._main = stack.enter_context(_running(command, self.log))
            _wait(lambda: self._is_live() and self._are_ready(0), self._main, f"the proxy ({self.log})")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def workers(self) -> list[int]:
        """Return the ids of the worker processes; not of a lone one, which is the proxy itself."""
        tasks = Path(f"/proc/{self._main.pid}/task").glob("*/children")
        children = [int(child) for task in tasks for child in task.read_text().split()]
        return [child for child in children if _serves(child)]

    def kill_worker(self) -> None:
        """Kill one worker, as a crash would, and return when another one is in its place."""
        os.kill(self.workers()[0], signal.SIGKILL)
        _wait(lambda: self._are_ready(1), self._main, f"a worker in the place of one that died ({self.log})")

    def _are_ready(self, died: int) -> bool:
        ready = self.log.read_text(errors="replace").count("Application startup complete")
        return ready >= self._workers + died

    def _is_live(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/health/liveliness", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "LITELLM_LOG": "INFO",  # not what this process has: its log says when a worker is ready
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    }
    with log.open("ab") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, env=environment, start_new_session=True, cwd=log.parent
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _serves(process: int) -> bool:
    """Whether a child of the proxy's is a worker: others only watch, or clean up."""
    with contextlib.suppress(OSError):
        return "spawn_main" in Path(f"/proc/{process}/cmdline").read_text()
    return False


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait(is_ready: Callable[[], bool], process: subprocess.Popen[bytes], what: str) -> None:
    wait_for(lambda: process.poll() is not None or is_ready(), f"{what} did not start", _STARTS_WITHIN)
    assert process.poll() is None, f"{what} ended"
