"""The pages for contributors name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md")
_PARTS = ("*.md", "rolling_chat/**/*.py", "tests/**/*.py", "examples/*", ".ci/*")
_TRACKED = [path for part in _PARTS for path in ROOT.glob(part)]


@pytest.mark.parametrize("page", PAGES)
def test_every_file_named_is_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"`[^`]*NAME[^`]*`", "", text)  # stands for a name of the reader's own
    named = set(re.findall(r"`([\w./]+\.(?:py|md)|[\w/]+/)`", text))
    assert len(named) > 5
    files = [path.relative_to(ROOT).as_posix() for path in _TRACKED]
    assert [name for name in sorted(named) if not any(f"/{name}" in f"/{file}" for file in files)] == []


def test_the_glossary_is_short() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = text[text.index("| word | meaning |") :].splitlines()[2:]
    assert 10 < len(rows) <= 30
