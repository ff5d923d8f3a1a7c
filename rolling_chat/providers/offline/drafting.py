"""Draft an AGENTS.md as the offline model, from the names of the files in the folder."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rolling_chat.providers.offline.orders import Order

_ORDER = re.compile(r"\W*(?:please )?(?:write|draft|create|improve) (?:an?|the) AGENTS\.md\b", re.IGNORECASE)
_FILE = "AGENTS.md"
_COMMANDS = {
    "pyproject.toml": "`python -m pytest` runs the tests.",
    "package.json": "`npm test` runs the tests.",
    "Cargo.toml": "`cargo test` runs the tests.",
    "go.mod": "`go test ./...` runs the tests.",
    "Makefile": "`make` builds.",
}


def orders_a_draft(text: str) -> bool:
    """Return whether a user's message asks for an AGENTS.md."""
    return _ORDER.match(text) is not None


def next_step(results: Sequence[str]) -> Order | None:
    """Return the next step after these results: list the folder, read files, write; None when done."""
    if not results:
        return Order("list", path=".")
    names = results[0].splitlines()
    steps = [Order("read", name) for name in ("README.md", _FILE) if name in names]
    steps.append(Order("write", path=_FILE, new=_draft(names)))
    return steps[len(results) - 1] if len(results) <= len(steps) else None


def _draft(names: Sequence[str]) -> str:
    listed = [f"- `{name}`" for name in names if not name.startswith((".", "[")) and name != _FILE]
    commands = [f"- {words}" for name, words in _COMMANDS.items() if name in names]
    parts = ["# Instructions", "", "## Files", "", *(listed or ["- none yet"])]
    parts += ["", "## Commands", "", *commands] if commands else []
    return "\n".join(parts) + "\n"
