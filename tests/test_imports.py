"""No module imports one that imports it, wherever in the file that is and whatever it is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

import rolling_chat

PACKAGE = Path(rolling_chat.__file__).parent


def test_there_is_no_import_circle() -> None:
    imports = {name: frozenset(_imports(path, name)) for name, path in _modules().items()}
    assert not _circles(imports)


def test_a_circle_is_found() -> None:
    assert _circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]
    assert _circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


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
