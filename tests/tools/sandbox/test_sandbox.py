"""Which sandbox is found, and one that does not work counts as none."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.tools.sandbox import sandbox
from rolling_chat.tools.sandbox.sandbox import SandboxProgram


@pytest.mark.parametrize(
    ("script", "missing"),
    [
        ("echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "No permissions to create"),
        ('for word; do [ "$word" != --perms ] || { echo "no --perms" >&2; exit 1; }; done', "no --perms"),
        ("exit 3", "exit code 3"),
    ],
)
def test_a_program_that_does_not_work_here_counts_as_none(tmp_path: Path, script: str, missing: str) -> None:
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    found = sandbox._tried(SandboxProgram("bubblewrap", str(program)))
    assert found.kind == ""
    assert found.missing.startswith("bubblewrap does not work here: ")
    assert missing in found.missing


def test_one_that_is_not_installed_is_named() -> None:
    found = sandbox._tried(SandboxProgram("bubblewrap", "", "bubblewrap is not installed"))
    assert str(found) == "none: bubblewrap is not installed"
