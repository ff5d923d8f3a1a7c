"""Windows for what is measured: the program, the program with a scripted model, and the bare apps."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tests
from tests.benchmarks.screen.figures import cpu_seconds
from tests.benchmarks.screen.pace import SCRIPT_VARIABLE
from tests.support.program import program_environment
from tests.support.terminal import Terminal

COLUMNS, ROWS = 120, 40
READY = "rolling:"
_PATIENCE = 60.0  # seconds
_A_WHILE, _STILL = 1.0, 0.05  # seconds; seconds of processor in them when there is nothing to do
_NO_ENVIRONMENT: Mapping[str, str] = {}
_ROOT = Path(tests.__file__).parents[1]
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Desk:
    """A folder and a home, used again and again so that nothing is measured cold."""

    folder: Path
    home: Path

    def program(self, *argv: str, key: str = "") -> Terminal:
        """The program, with the offline model unless `argv` names another; `key` is OpenAI's."""
        return self._open(["-m", "rolling_chat", *argv], environ={"OPENAI_API_KEY": key} if key else {})

    def bare_prompt(self) -> Terminal:
        """The floor: a text area and a footer."""
        return self._open([str(_HERE / "bare_prompt.py")])

    def paced_chat(self, script: Path, *argv: str, model: str = "openai/gpt-4o-mini") -> Terminal:
        """The program over a scripted model; by default its window is as large as any."""
        module = ["-m", "tests.benchmarks.screen.paced_chat", "--model", model]
        return self._open([*module, *argv], script)

    def bare_stream(self, script: Path) -> Terminal:
        """Textual's own stream of Markdown."""
        return self._open(["-m", "tests.benchmarks.screen.bare_stream"], script)

    def _open(
        self, argv: list[str], script: Path | None = None, environ: Mapping[str, str] = _NO_ENVIRONMENT
    ) -> Terminal:
        for kept in self.home.rglob("drafts"):  # a draft that comes back would be taken for what is typed
            shutil.rmtree(kept)
        scripted = {} if script is None else {
            SCRIPT_VARIABLE: str(script), "PYTHONPATH": str(_ROOT), "OPENAI_API_KEY": "sk-none"
        }  # fmt: skip
        return Terminal(
            [sys.executable, *argv],
            environ=program_environment(self.home, **scripted, **environ),
            folder=self.folder,
            columns=COLUMNS,
            rows=ROWS,
            echo=False,
        )


def settle(terminal: Terminal) -> None:
    """Read on until the program has nothing to do, what it loads late included; a minute at most."""
    began = time.perf_counter()
    before, now = -1.0, cpu_seconds(terminal.pid)
    while now - before > _STILL and time.perf_counter() - began < _PATIENCE:
        until = time.perf_counter() + _A_WHILE
        while (left := until - time.perf_counter()) > 0:
            terminal.gather(left)
        before, now = now, cpu_seconds(terminal.pid)
    for _ in terminal.drawn():
        pass


@contextmanager
def desk() -> Iterator[Desk]:
    """A desk that is cleared in the end."""
    with tempfile.TemporaryDirectory() as place:
        made = Desk(Path(place, "work"), Path(place, "home"))
        made.folder.mkdir()
        made.home.mkdir()
        yield made
