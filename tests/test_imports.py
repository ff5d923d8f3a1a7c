"""No module imports one that imports it, and no command what only another needs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import rolling_chat
from rolling_chat import agent, context
from tests.support.program import program_environment

PACKAGE = Path(rolling_chat.__file__).parent


def test_there_is_no_import_circle() -> None:
    imports = {name: frozenset(_imports(path, name)) for name, path in _modules().items()}
    assert not _circles(imports)


def test_a_circle_is_found() -> None:
    assert _circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]
    assert _circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


# no command here needs one of these
_NEVER = {
    "aiohttp",
    "httpx",
    "litellm",
    "markdown_it",
    "openai",
    "pydantic",
    "pygments",
    "rolling_chat.tui",
    "textual",
}
# what only some need
_SOMETIMES = {
    "asyncio",
    "http.client",
    "logging",
    "logging.handlers",
    "rich",
    "rolling_chat.agent",
    "rolling_chat.agent.chat",
    "rolling_chat.context.prompt",
    "rolling_chat.context.tokens",
    "rolling_chat.providers",
    "rolling_chat.settings",
    "rolling_chat.settings.schema",
    "rolling_chat.tools.registry",
    "sqlite3",
    "tiktoken",
}
# the settings say where the store is
_STORE = {"logging", "rolling_chat.settings", "rolling_chat.settings.schema", "sqlite3"}
_MODELS = _STORE | {
    "rolling_chat.agent",
    "rolling_chat.context.tokens",
    "rolling_chat.providers",
}
_PIPELINE = _MODELS | {"rolling_chat.context.prompt"}
_SCRIPT = """
import sys
from rolling_chat.cli import run
try:
    code = run(sys.argv[1:])
except SystemExit as end:  # --help
    code = end.code
print("", *sys.modules)
sys.exit(code)
"""


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_imports_nothing_but_the_parser(option: str, tmp_path: Path) -> None:
    assert not _imported(tmp_path, option) & (_NEVER | _SOMETIMES)


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("sessions list", _STORE),
        ("sessions search word", _STORE),
        ("usage", _STORE),
        ("models", _MODELS | {"http.client"}),
        ("doctor", _MODELS | {"asyncio", "http.client"}),
        ("doctor --tokens", _PIPELINE | {"rich"}),
        ("replay transcript.json --model openai/gpt-4o", _PIPELINE | {"tiktoken"}),
        ("replay transcript.json --model openai/gpt-4o --format table", _PIPELINE | {"rich", "tiktoken"}),
        ("-p hi --model demo/offline", _SOMETIMES - {"rich"}),
    ],
)
def test_a_command_imports_nothing_that_only_another_needs(
    line: str, needed: Set[str], tmp_path: Path
) -> None:
    messages = [{"role": role, "content": "Some words."} for role in ("user", "assistant", "user")]
    (tmp_path / "transcript.json").write_text(json.dumps(messages))
    assert not _imported(tmp_path, *line.split()) & (_NEVER | _SOMETIMES) - needed


def test_a_request_is_shown_without_what_only_sending_needs(tmp_path: Path) -> None:
    _imported(tmp_path, "-p", "hi", "--model", "demo/offline")
    assert not _imported(tmp_path, "inspect", "q") & (_NEVER | _SOMETIMES) - _PIPELINE - {"rich", "tiktoken"}
    listed = _imported(tmp_path, "inspect", "q", "--json")
    assert not listed & (_NEVER | _SOMETIMES) - _PIPELINE - {"tiktoken"}


@pytest.mark.parametrize("package", [agent, context])
def test_a_packages_public_names_are_found_and_no_others(package: ModuleType) -> None:
    assert all(hasattr(package, name) for name in package.__all__)
    assert not hasattr(package, "Chats")


def _imported(folder: Path, *argv: str) -> set[str]:
    """The modules that a run of the program has imported by its end."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *argv],
        cwd=folder,
        env=program_environment(folder / "home"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


@cache
def _modules() -> dict[str, Path]:
    """Every module of the package by its name; a package's name is its `__init__`'s."""
    names = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        names[".".join(parts).removesuffix(".__init__")] = path
    return names


def _imports(path: Path, name: str) -> Iterator[str]:
    """The modules of the package that a module imports: also within functions and under TYPE_CHECKING.

    What is imported from a package is its submodule of that name, if any; a package that imports its own
    submodules is no circle by that.
    """
    known = _modules()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            wanted = [module if module in known else node.module for module in submodules]
        else:
            continue
        yield from (module for module in wanted if module in known and module != name)


def _circles(imports: Mapping[str, Set[str]]) -> list[list[str]]:
    """The groups of modules each of which leads to all others of its group (Tarjan, 1972)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    circles: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        path.append(module)
        for other in sorted(imports.get(module, ())):
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in path:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            group = path[path.index(module) :]
            del path[path.index(module) :]
            if len(group) > 1:
                circles.append(sorted(group))

    for module in sorted(imports):
        if module not in order:
            visit(module)
    return circles
