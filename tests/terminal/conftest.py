"""The real program in a real pseudo-terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.paths import find_paths
from tests.support.forking import fork_in_terminal
from tests.support.program import program_environment
from tests.support.terminal import Terminal, start_program

_RUN = 'import runpy; runpy.run_module("rolling_chat", run_name="__main__", alter_sys=True)'

# Milliseconds a token: an answer of twenty lines takes half a minute, so that everything that is done
# in the middle of it comes in its middle, however busy the machine is.
SLOW = "70"


class Desk:
    """A person's desk: one folder, one home, as many terminals as they open."""

    def __init__(self, folder: Path, home: Path, stack: ExitStack) -> None:
        self.folder, self.home = folder, home
        self._stack = stack

    def open(
        self,
        *argv: str,
        columns: int = 100,
        rows: int = 30,
        first: str = "",
        anew: bool = False,
        **environ: str,
    ) -> Terminal:
        """Start the program in a terminal of its own; `first` is Python that its process runs before it.

        With `anew` Python is started and imports all of it, as for a person, which takes a second.
        """
        python = ["-c", f"{first}\n{_RUN}"] if first else ["-m", "rolling_chat"]
        is_forked = not anew and sys.platform == "linux"
        terminal = Terminal(
            argv if is_forked else [sys.executable, *python, *argv],
            environ=program_environment(self.home, **environ),
            folder=self.folder,
            columns=columns,
            rows=rows,
            start=partial(fork_in_terminal, first=first) if is_forked else start_program,
        )
        return self._stack.enter_context(terminal)

    @property
    def store(self) -> SessionStore:
        """The saved sessions; whoever takes it closes it."""
        return open_store(find_paths(program_environment(self.home)).database)

    def remember(self, *said: Message) -> None:
        """A session that was had before, for `--continue`: no model is waited for."""
        with closing(self.store) as store:
            made = store.create_session(
                folder=str(self.folder.resolve()), model="demo/offline", rolling=False
            )
            store.append_all(made.id, said)

    def write_facts(self, name: str = "facts.txt") -> None:
        """A file of which the offline model shows twenty lines, some 400 tokens: the first come soon."""
        rest = "and it says so at some length, which takes its time."
        lines = (f"fact{number} is {number}, {'yes.' if number < 6 else rest}" for number in range(200))
        (self.folder / name).write_text("\n".join(lines))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """An empty folder and a fresh home."""
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    with ExitStack() as stack:
        yield Desk(folder, home, stack)
