"""Five small tasks, from the question to the files, by the real program and a real model at an address.

`REAL_TASKS_ADDRESS` names the server, such as `http://127.0.0.1:8091/v1`; the only model there is asked, or
the one of `REAL_TASKS_MODEL`. `REAL_TASKS_TOOL_CALLS` is the model's setting `tool_calls` ("text" unless
set), `REAL_TASKS_WINDOW` its window (8,192), `REAL_TASKS_ONLY` the names of the tasks to run. Each
task runs with rolling on in a folder of its own; one that is not done after an answer is continued twice at
most, with what is wrong. The sessions stay in the folder that the first line names.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.messages import Ending, Message
from rolling_chat.providers.served import served_model
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.paths import find_paths

_ADDRESS, _WINDOW = "REAL_TASKS_ADDRESS", 8_192
_CONTINUED = 2
_SECONDS = 1_800
_TOOLS = "read_file,list_files,search_files,edit_file,write_file,run_command,recall"
_ALLOWED = [
    *("read_file", "list_files", "search_files", "edit_file", "write_file"),
    *(f"run_command({program} *)" for program in ("python", "python3", "ls", "cat", "grep")),
]
_LOOKS_LIKE_A_CALL = re.compile(r'"arguments"|<tool_call>|<function=|"parameters"')


@dataclass(frozen=True)
class Task:
    """A task in words; `check` returns what is wrong with the folder and the answer, empty for nothing."""

    name: str
    asked: str
    files: Mapping[str, str]
    check: Callable[[Path, str], str]


@dataclass(frozen=True)
class Asked:
    """The model that is asked, its address, its window in tokens, and the form of its calls."""

    model: str
    address: str
    window: int
    form: str


@dataclass(frozen=True)
class Tried:
    """How a task went: what was wrong at the end, the answers needed, and what the session holds."""

    task: Task
    fault: str
    rounds: int
    seconds: float
    messages: Sequence[Message]
    exits: Sequence[str]


def run() -> Iterator[str]:
    """Yield a line for each task, one for what became of its calls, and the share that was solved."""
    address = os.environ.get(_ADDRESS, "")
    if not address:
        yield f"not run: set {_ADDRESS} to the address of a server with a model"
        return
    model = served_model(address, os.environ.get("REAL_TASKS_MODEL", ""), os.environ)
    window = int(os.environ.get("REAL_TASKS_WINDOW", _WINDOW))
    asked = Asked(model, address, window, os.environ.get("REAL_TASKS_TOOL_CALLS", "text"))
    only = [name for name in os.environ.get("REAL_TASKS_ONLY", "").split(",") if name]
    base = Path(tempfile.mkdtemp(prefix="real-tasks-"))
    yield f"{model}, window {window:,}, tool calls {asked.form}; sessions in {base}"
    tried = []
    for task in TASKS:
        if only and task.name not in only:
            continue
        tried.append(_try(task, base / task.name, asked))
        yield from _lines(tried[-1])
    solved = [one for one in tried if not one.fault]
    at_once = sum(one.rounds == 1 for one in solved)
    yield f"solved {len(solved)} of {len(tried)}, {at_once} at the first answer"


def _try(task: Task, base: Path, model: Asked) -> Tried:
    folder, home = base / "work", base / "home"
    home.mkdir(parents=True)
    for name, text in task.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (home / "config.toml").write_text(_settings(model))
    began, asked, fault, exits = time.monotonic(), task.asked, "", list[str]()
    for tries in range(1, _CONTINUED + 2):
        answer, ended = _ask(asked, folder, home, is_first=tries == 1)
        exits.append(ended)
        fault = task.check(folder, answer)
        if not fault:
            break
        asked = f"It is not done yet: {fault}. Do it now, with the tools."
    messages = _messages(home)
    return Tried(task, fault, tries, time.monotonic() - began, messages, exits)


def _settings(model: Asked) -> str:
    return "\n".join(
        [
            f"model = {json.dumps(model.model)}",
            "[context]",
            "enabled = true",
            "[agent]",
            "retry_minutes = 1",
            "[agent.permissions]",
            f"allow = {json.dumps(_ALLOWED)}",
            f"[models.{json.dumps(model.model)}]",
            f"api_base = {json.dumps(model.address)}",
            f"max_input_tokens = {model.window}",
            "max_output_tokens = 1024",
            f"tool_calls = {json.dumps(model.form)}",
        ]
    )


def _ask(asked: str, folder: Path, home: Path, *, is_first: bool) -> tuple[str, str]:
    """Return the answer of the program, and how it ended."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "ROLLING_CHAT_HOME": str(home)}
    environ |= {"OPENAI_API_KEY": "none"}
    argv = [sys.executable, "-m", "rolling_chat", "-p", asked, "--tools", _TOOLS]
    try:
        ran = subprocess.run(
            argv if is_first else [*argv, "--continue"],
            cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "", f"no answer within {_SECONDS:,} s"
    said = ran.stderr.strip().splitlines()
    return ran.stdout, f"exit {ran.returncode}{': ' + said[-1] if said and ran.returncode else ''}"


def _messages(home: Path) -> Sequence[Message]:
    store = open_store(find_paths({"ROLLING_CHAT_HOME": str(home)}).database)
    try:
        return [message for info in store.sessions() for message in store.branch(info.id)]
    finally:
        store.close()


def _lines(tried: Tried) -> Iterator[str]:
    verdict = f"NOT SOLVED: {tried.fault}" if tried.fault else f"solved in {tried.rounds}"
    yield f"{tried.task.name:<12} {verdict} ({tried.seconds:.0f} s; {', '.join(tried.exits)})"
    calls = Counter(
        f"{call.name} {'as text' if message.writes_calls else 'native'}"
        for message in tried.messages
        for call in message.tool_calls
    )
    results = [message for message in tried.messages if message.role == "tool"]
    bad = Counter(result.ending.value for result in results if result.ending is not Ending.COMPLETE)
    yield f"{'':<12} calls: {_counted(calls)}; of them {_counted(bad)}"
    for result in results:
        if result.ending is not Ending.COMPLETE:
            yield f"{'':<12} {result.ending.value}: {result.text.splitlines()[0][:160]}"
    for message in tried.messages:
        missed = message.role == "assistant" and not message.tool_calls
        if missed and _LOOKS_LIKE_A_CALL.search(message.text):
            yield f"{'':<12} looks like a call that was not taken: {message.text[-160:]!r}"


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "none"


def _python(folder: Path, *argv: str) -> str:
    """Return the last line of what a program of the folder says if it fails, else an empty text."""
    ran = subprocess.run(
        [sys.executable, "-B", *argv], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    return "" if ran.returncode == 0 else (ran.stderr.strip().splitlines() or ["it failed"])[-1]


def _check_rename(folder: Path, _answer: str) -> str:
    left = [path.name for path in sorted(folder.rglob("*.py")) if "fetch_data" in path.read_text()]
    if left:
        return f"fetch_data is still in {', '.join(left)}"
    return _python(folder, "main.py") and "main.py fails now: " + _python(folder, "main.py")


def _check_fix(folder: Path, _answer: str) -> str:
    if (folder / "test_stats.py").read_text() != _FIX["test_stats.py"]:
        return "test_stats.py was changed; only stats.py may be"
    fault = _python(folder, "test_stats.py")
    return fault and f"python test_stats.py fails: {fault}"


def _check_add(folder: Path, _answer: str) -> str:
    probe = "from text_tools import slugify; assert slugify('Hello World') == 'hello-world'"
    if fault := _python(folder, "-c", probe):
        return f"slugify('Hello World') in text_tools.py does not return 'hello-world': {fault}"
    if "slugify" not in (folder / "test_text_tools.py").read_text():
        return "test_text_tools.py has no test of slugify"
    fault = _python(folder, "test_text_tools.py")
    return fault and f"python test_text_tools.py fails: {fault}"


def _check_find(_folder: Path, answer: str) -> str:
    return "" if "4711" in answer else "the answer does not name the port of the heron service"


def _check_readme(folder: Path, _answer: str) -> str:
    readme = folder / "README.md"
    if not readme.is_file():
        return "there is no README.md"
    missing = [word for word in ("add", "list", "done") if word not in readme.read_text().lower()]
    return f"README.md does not name the commands {', '.join(missing)}" if missing else ""


_FIX = {
    "stats.py": "def mean(values):\n    return sum(values) / (len(values) - 1)\n",
    "test_stats.py": "from stats import mean\n\nassert mean([2, 4, 6]) == 4\nassert mean([5]) == 5\n",
}
_RENAME = {
    "api.py": "def fetch_data(key):\n    return {'key': key}\n",
    "report.py": "from api import fetch_data\n\n\ndef report():\n    return fetch_data('report')\n",
    "main.py": "from api import fetch_data\nfrom report import report\n\nprint(fetch_data(1), report())\n",
}
_ADD = {
    "text_tools.py": "def shout(text):\n    return text.upper() + '!'\n",
    "test_text_tools.py": "from text_tools import shout\n\nassert shout('hi') == 'HI!'\nprint('ok')\n",
}
_TODO = '''\
"""Keep a list of tasks in tasks.json."""
import json
import sys
from pathlib import Path

FILE = Path("tasks.json")
tasks = json.loads(FILE.read_text()) if FILE.exists() else []
match sys.argv[1:]:
    case ["add", *words]:
        tasks.append({"text": " ".join(words), "done": False})
    case ["list"]:
        for number, task in enumerate(tasks, 1):
            print(number, "x" if task["done"] else " ", task["text"])
    case ["done", number]:
        tasks[int(number) - 1]["done"] = True
FILE.write_text(json.dumps(tasks))
'''


def _notes() -> dict[str, str]:
    notes = {
        f"notes/service_{number:03}.md": f"# Service {number}\n\n"
        + "\n".join(f"Step {step}: nothing to see for service {number}." for step in range(1, 30))
        + "\n"
        for number in range(200)
    }
    notes["notes/service_137.md"] += "The heron service listens on port 4711.\n"
    return notes


TASKS = (
    Task(
        "rename",
        "Rename the function fetch_data to load_record in all three files: api.py, report.py and main.py. "
        "Edit each file.",
        _RENAME,
        _check_rename,
    ),
    Task(
        "fix",
        "Running `python test_stats.py` fails. Find the bug in stats.py and fix it there. "
        "Do not change the test.",
        _FIX,
        _check_fix,
    ),
    Task(
        "add",
        "Add a function slugify(text) to text_tools.py: lower case, with spaces replaced by hyphens. "
        "Then add an assertion for it to test_text_tools.py.",
        _ADD,
        _check_add,
    ),
    Task(
        "find",
        "The folder notes has 200 files. On which port does the heron service listen? Search for it.",
        _notes(),
        _check_find,
    ),
    Task(
        "readme",
        "Read todo.py and write a README.md that explains what the program does and its three commands.",
        {"todo.py": _TODO},
        _check_readme,
    ),
)
