"""Wall and processor time of every command that runs once, from exec to exit, and when `-p` asks its server.

Beside them: a bare interpreter, `import httpx`, and `llm`, the script tool that starts fastest of those in
Python, from a virtual environment of its own. Runs are interleaved, so that a busy machine is busy for all.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.peers import CannotBeHadError, install
from tests.benchmarks.screen.sessions import build_session
from tests.benchmarks.screen.windows import Desk, desk
from tests.support.json_server import json_server
from tests.support.program import program_environment
from tests.support.servers import OpenAIServer, Reply

_ROUNDS = 7
_SESSIONS, _MESSAGES = 20, 30
_QUESTION = "What is a context window?"
_ANSWER = "The tokens that a model takes in one request. " * 20
FRESH = "FRESH"
_CODES = {"logout": 2}  # no key is stored
_BARE, _HTTPX, _LLM = "python -c pass", "import httpx", "llm, OpenAI wire"


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, and what its environment has beside the usual; `FRESH` is a session made for it.

    `code` is the exit code that it ends with.
    """

    argv: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    code: int = 0


@dataclass(slots=True)
class Runs:
    """What the runs of one command took, in milliseconds; `sent` until its server had the request."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)


def run() -> Iterator[str]:
    """A line a command: medians, and wall time beside the bare interpreter and `import httpx`."""
    arrived: list[float] = []

    def answer(_body: object) -> Reply:
        arrived.append(time.perf_counter())
        return Reply(_ANSWER)

    catalog = json.loads(_litellms_table().read_text(encoding="utf-8"))
    with (
        desk() as place,
        json_server({"/table": catalog}) as tables,
        OpenAIServer(answer, models=("scripted",)).in_thread() as server,
    ):
        *_, session = (build_session(place, _MESSAGES) for _ in range(_SESSIONS))
        script = place.folder / "transcript.json"
        roles = ("user", "assistant") * 20
        script.write_text(json.dumps([{"role": role, "content": _ANSWER} for role in roles]))
        lines = command_lines(session, str(script), server.api_base)
        environ = {"OPENAI_API_KEY": "sk-none", "ROLLING_CHAT_CATALOG_ADDRESS": f"{tables.address}/table"}
        commands = {
            _BARE: Command([sys.executable, "-c", "pass"]),
            _HTTPX: Command([sys.executable, "-c", "import httpx"]),
            **{
                name: Command([sys.executable, "-m", "rolling_chat", *line], environ, _CODES.get(name, 0))
                for name, line in lines.items()
            },
        }
        why_not = _install_llm(place, server.api_base, commands)
        runs = {name: Runs() for name in commands}
        for command in commands.values():
            _time(place, command, Runs(), arrived)  # the first of each reads the disk
        for _ in range(_ROUNDS):
            for name, command in commands.items():
                _time(place, command, runs[name], arrived)
    yield from _table(runs)
    if why_not:
        yield f"{_LLM}: skipped, {why_not}"


def command_lines(session: str, transcript: str, api_base: str) -> dict[str, Sequence[str]]:
    """Command lines of every command by a name; the first request of all is that of the demo."""
    asking = ["-p", _QUESTION, "--model"]
    return {
        "-p, demo model": [*asking, "demo/offline"],
        "-p, OpenAI wire": [*asking, "openai/scripted", "--api-base", api_base],
        "--help": ["--help"],
        "--version": ["--version"],
        "sessions list": ["sessions", "list"],
        "sessions search": ["sessions", "search", "question"],
        "sessions show": ["sessions", "show", session],
        "sessions export": ["sessions", "export", session],
        "sessions import": ["sessions", "import", transcript],
        "sessions delete": ["sessions", "delete", FRESH, "--yes"],
        "usage": ["usage"],
        "settings": ["settings"],
        "login": ["login"],
        "logout": ["logout", "openai"],
        "completion": ["completion", "bash"],
        "mcp list": ["mcp", "list"],
        "mcp add": ["mcp", "add", "one", "--url", "http://127.0.0.1:9/mcp"],
        "mcp logout": ["mcp", "logout", "one"],
        "mcp remove": ["mcp", "remove", "one"],
        "models": ["models"],
        "models WORD": ["models", "gpt-4o"],
        "models --refresh": ["models", "--refresh"],
        "doctor": ["doctor"],
        "doctor --tokens": ["doctor", "--tokens"],
        "replay": ["replay", transcript, "--model", "openai/gpt-4o"],
        "replay, table": ["replay", transcript, "--model", "openai/gpt-4o", "--format", "table"],
        "inspect SESSION": ["inspect", session],
        "inspect": ["inspect", "q1"],
        "inspect --verify": ["inspect", "q1", "--verify"],
    }


def _litellms_table() -> Path:
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        raise RuntimeError("litellm is not installed")
    return Path(spec.origin).parent / "model_prices_and_context_window_backup.json"


def _install_llm(place: Desk, api_base: str, commands: dict[str, Command]) -> str:
    """Add `llm` to the commands, from a virtual environment; return why not, if so."""
    user = place.home / "llm"
    try:
        programs = install("llm", place.home / "peers")
    except CannotBeHadError as error:
        return str(error)
    user.mkdir()
    model = {"model_id": "scripted", "model_name": "scripted", "api_base": api_base}
    (user / "extra-openai-models.yaml").write_text(json.dumps([model]))  # JSON is YAML
    argv = [str(programs / "python"), "-m", "llm", "-m", "scripted", _QUESTION]
    commands[_LLM] = Command(argv, {"LLM_USER_PATH": str(user)})
    return ""


def _time(place: Desk, command: Command, into: Runs, arrived: list[float]) -> None:
    environ = program_environment(place.home, **command.environ)
    output = place.folder / "output"
    argv = [build_session(place, _MESSAGES) if word == FRESH else word for word in command.argv]
    arrived.clear()
    with output.open("wb") as out:
        began = time.perf_counter()
        child = subprocess.Popen(
            argv, cwd=place.folder, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
        _, status, used = os.wait4(child.pid, 0)
        ended = time.perf_counter()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != command.code or not _is_plausible(command, output):
        shown = output.read_text(errors="replace")[-500:]
        raise RuntimeError(f"{' '.join(command.argv)} exited with {child.returncode}: {shown}")
    into.wall.append(1_000 * (ended - began))
    into.cpu.append(1_000 * (used.ru_utime + used.ru_stime))
    if arrived:
        into.sent.append(1_000 * (arrived[0] - began))


def _is_plausible(command: Command, output: Path) -> bool:
    return command.argv[1] == "-c" or output.stat().st_size > 0


def _table(runs: Mapping[str, Runs]) -> Iterator[str]:
    bare, httpx = (statistics.median(runs[name].wall) for name in (_BARE, _HTTPX))
    head = f"median of {_ROUNDS}"
    yield f"{head:<18}{'wall':>9}{'CPU':>12}{'× bare':>9}{'× httpx':>9}{'asked at':>12}"
    for name, one in runs.items():
        wall, cpu = statistics.median(one.wall), statistics.median(one.cpu)
        sent = f"{statistics.median(one.sent):9.0f} ms" if one.sent else ""
        yield f"{name:<18}{wall:6.0f} ms{cpu:9.0f} ms{wall / bare:9.1f}{wall / httpx:9.2f}{sent:>12}".rstrip()
    if _LLM in runs:
        pairs = zip(runs["-p, OpenAI wire"].wall, runs[_LLM].wall, strict=True)
        paired = statistics.median(ours / theirs for ours, theirs in pairs)
        yield f"-p beside llm: median of the ratios {paired:.2f}   (goal 1.2)"
