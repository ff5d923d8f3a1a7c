"""The arithmetic of SCALING.md: every figure in it that follows from its units and assumptions.

A table whose first columns are `name` and `value` gives values. In one whose last column is `from`, each row
says `name = expression` there, and has a figure for each number of users. They are filled in by
`python -m tests.benchmarks.scaling_page`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

PAGE = Path(__file__).parents[2] / "SCALING.md"

_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def given(page: str) -> dict[str, float]:
    """Return the units and assumptions of a page."""
    return {
        cells[0].strip("`"): number(cells[1])
        for heading, cells in _rows(page.split("\n"))
        if heading[:2] == ["name", "value"] and cells
    }


def recalculated(page: str) -> str:
    """Return the page with every figure calculated anew."""
    known, derived = given(page), dict[str, dict[str, float]]()
    lines = page.split("\n")
    for at, (heading, cells) in enumerate(_rows(lines)):
        if cells and heading[-1] == "from":
            figures = _figures(heading[1:-1], cells[-1].strip("`"), known, derived)
            lines[at] = f"| {' | '.join([cells[0], *figures, cells[-1]])} |"
    return "\n".join(lines)


def _rows(lines: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield for each line the heading of its table, and its cells; both empty where it is no row."""
    heading: list[str] = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        is_row = bool(heading and cells) and not set(line) <= set("|-: ")
        yield heading, cells if is_row else []
        heading = (heading or cells) if cells else []


def _figures(
    columns: list[str], equation: str, known: Mapping[str, float], derived: dict[str, dict[str, float]]
) -> Iterator[str]:
    """Yield the figure of each column, and note it for the rows that follow."""
    name, expression = equation.split(" = ")
    for column in columns:
        so_far = derived.setdefault(column, {"users": number(column.split()[0])})
        so_far[name] = _value(ast.parse(expression, mode="eval").body, {**known, **so_far})
        yield in_short(so_far[name])


def in_short(value: float) -> str:
    """Return a figure with three digits, or all that are before the point; two below 1."""
    if value == int(value):
        return f"{value:,.0f}"
    if value < 1:
        return f"{value:.2g}"
    digits = next((digits for least, digits in ((100, 0), (10, 1)) if value >= least), 2)
    return f"{value:,.{digits}f}"


def number(text: str) -> float:
    """Return a figure as a number."""
    return float(text.replace(",", ""))


def _value(node: ast.expr, known: Mapping[str, float]) -> float:
    match node:
        case ast.BinOp(left, sign, right):
            return _OPERATORS[type(sign)](_value(left, known), _value(right, known))
        case ast.Name(name):
            return known[name]
        case ast.Constant(int() | float() as value):
            return value
    raise ValueError(f"{ast.unparse(node)!r} is no arithmetic")


if __name__ == "__main__":
    PAGE.write_text(recalculated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
