"""Run the README's first command as a newcomer would: fresh home, no key, a real pseudo-terminal.

Waits until the gauge is on the screen, asks one question, waits for the answer, and leaves.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.terminal import Terminal

INSTALL_SECONDS = 900.0


def main(command: str) -> int:
    """Drive `command`; returns its exit code once everything that must be seen was seen."""
    keep = {
        key: value for key, value in os.environ.items() if key in {"PATH", "LANG"} or key.startswith("PIP_")
    }
    environ = {**keep, "HOME": tempfile.mkdtemp(), "LANG": "C.UTF-8"}
    with Terminal(["bash", "-c", command], environ=environ, folder=Path.cwd()) as terminal:
        terminal.see("rolling: off", seconds=INSTALL_SECONDS)
        terminal.type("Are you a language model?")
        terminal.see("❯ Are you a language model?")
        terminal.type("\r")
        print(terminal.see("not a language model"))
        terminal.type("/quit\r")
        code = terminal.leave()
        print(terminal.text.strip())
        return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
