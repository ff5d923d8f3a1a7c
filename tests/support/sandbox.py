"""A real sandbox for tests, where this machine has one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rolling_chat.tools import ToolContext
from rolling_chat.tools.run_command import RunCommand
from rolling_chat.tools.sandbox.sandbox import Sandbox, find_sandbox


def real_sandbox(*own: Path, has_network: bool = False) -> Sandbox:
    """The sandbox of this machine; skips the test where there is none."""
    program = find_sandbox()
    if not program.kind:
        pytest.skip(f"no sandbox here: {program.missing}")
    return Sandbox(program, own, has_network)


class Confined:
    """Runs commands in a folder, in a real sandbox, with a home folder of its own."""

    def __init__(self, folder: Path, home: Path, *own: Path, has_network: bool = False) -> None:
        self.folder = folder
        self.context = ToolContext(
            folder,
            {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_GLOBAL": os.devnull},
            sandbox=real_sandbox(*own, has_network=has_network),
        )

    async def run(self, command: str, **more: object) -> str:
        """The result of a command."""
        return (await RunCommand().run({"command": command, **more}, self.context)).text
