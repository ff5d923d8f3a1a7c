"""One walk: an episode of some actions, or a long session, with all that must hold meanwhile."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.actions import ANTHROPIC, OPENAI, choose
from tests.soak.invariants import broken_store
from tests.soak.journal import Journal
from tests.soak.pane import SCALE, Pane, PromiseError, end_processes, processes_with
from tests.soak.replies import SECRET
from tests.soak.servers import KEY, MARK, Elsewhere, Strict, StrictAnthropic, StrictOpenAI
from tests.support.program import program_environment

_SIZE = (100, 30)
_PROBES = 0.35  # how often it is asked whether the program answers, an action
_WINDOWS = (8_192, 12_000, 32_768)
_QUOTED = re.compile(r'names\s+"mark\d+x"')
_LONG = 500  # turns from which memory is compared
MAX_GROWTH = 1.5  # of memory over a long session, beside its first tenth


@dataclass(frozen=True)
class Result:
    """How a walk went; `failure` is empty where every promise held."""

    seed: int
    seconds: float
    failure: str
    journal: Path
    counts: Mapping[str, int] = field(default_factory=dict)
    peak: int = 0

    @property
    def report(self) -> str:
        """The failure, and how to have it again."""
        return (
            f"seed {self.seed}: {self.failure}\n"
            f"again: python -m tests.soak --seed {self.seed}\njournal: {self.journal}"
        )


@dataclass(frozen=True)
class Plan:
    """What a walk is to do: `actions` steps, or as many as it takes to send `turns` messages.

    `without` names actions and faults to leave out. An answer is waited for `patience` seconds, or
    without that as long as chance will have it. With `tell` every action is printed. `direct` is the
    setting of that name; empty: "auto" for even seeds.
    """

    actions: int = 60
    turns: int = 0
    without: frozenset[str] = frozenset()
    patience: float = 0.0
    tell: bool = False
    direct: str = ""


def run_walk(seed: int, root: Path, plan: Plan) -> Result:
    """Walk once; `root` is made, and holds the journal, the home and the folder worked in."""
    root.mkdir(parents=True)
    began = time.monotonic()
    journal = Journal(root / "journal.jsonl")
    failure = ""
    walk = None
    try:
        with ExitStack() as stack:
            walk = Walk(seed, root, journal, stack, plan)
            walk.go()
    except (AssertionError, OSError) as error:
        failure = str(error) or repr(error)
        journal.write("failure", what=failure)
    if journal.violations:
        failure = "\n".join([*journal.violations[:5], failure]).strip()
    journal.close()
    seconds, peak = time.monotonic() - began, walk.peak if walk else 0
    return Result(seed, seconds, failure, journal.file, dict(journal.counts), peak)


class Walk:
    """The state of a walk: its servers, its panes, what has been said."""

    def __init__(self, seed: int, root: Path, journal: Journal, stack: ExitStack, plan: Plan) -> None:
        self.seed, self.journal = seed, journal
        self.folder, self._home = root / "work", root / "home"
        self._stack, self._plan = stack, plan
        self._rng = random.Random(f"{seed}:start")
        self._mark = 0
        self._marks: set[str] = set()
        self._panes: list[Pane] = []
        self._at = 0
        self._peaks: list[int] = []
        self._make_folder()
        self._servers = self._start_servers()
        self.environ = self._environment()
        self._stack.callback(self._clean_up)

    # -- what actions use

    @property
    def pane(self) -> Pane:
        """The terminal that is typed into."""
        return self._panes[self._at]

    @property
    def server(self) -> Strict:
        """The server of the model that is shown."""
        anthropic = ANTHROPIC.partition("/")[2] in self.pane.terminal.lines[0]
        return self._servers[ANTHROPIC if anthropic else OPENAI]

    @property
    def steady(self) -> bool:
        """Is this one long session, which is not left?"""
        return self._plan.turns > 0

    @property
    def patience(self) -> float:
        """How many seconds an answer is waited for; 0 where chance decides."""
        return self._plan.patience

    @property
    def is_shared(self) -> bool:
        """Is there more than one terminal?"""
        return len(self._panes) > 1

    @property
    def peak(self) -> int:
        """The most memory that any process took, in bytes."""
        return max([0, *self._peaks, *(pane.peak for pane in self._panes)])

    def next_mark(self) -> int:
        """A number that no message had before."""
        self._mark += 1
        return self._mark

    def press(self, keys: str | bytes) -> None:
        """Type into the terminal."""
        if keys and not self.pane.has_ended:
            self.pane.press(keys)

    def pump(self, seconds: float) -> None:
        """Let time pass."""
        self.pane.pump(seconds)

    def pane_killed(self, screen: str) -> None:
        """Note what the screen showed when its program was killed; end what the program cannot end now."""
        # a summary that is not used is quoted in a line, and kept nowhere
        told = _QUOTED.sub("", screen)
        self._marks |= {mark for mark in MARK.findall(told) if mark.startswith("mark")}
        others = {pane.pid for pane in self._panes if pane is not self.pane}
        end_processes([pid for pid in processes_with(str(self._home)) if pid not in others])

    def reopen(self, *argv: str) -> None:
        """Start the program anew where it has ended."""
        self._peaks.append(self.pane.peak)
        self._panes.pop(self._at).close()
        self._panes.insert(self._at, self._open(*argv))

    def second(self, what: str) -> None:
        """Open another terminal, go to the other one, or close it."""
        if what == "open" and not self.is_shared:
            self._panes.append(self._open("--continue"))
        elif what == "other" and self.is_shared:
            self._at = 1 - self._at
        elif what == "close" and self.is_shared:
            self.pane.quit()
            self._peaks.append(self.pane.peak)
            self._panes.pop(self._at).close()
            self._at = 0

    # -- the walk

    def go(self) -> None:
        """Do it all; raises AssertionError for the first promise that is broken."""
        actions, turns = self._plan.actions, self._plan.turns
        self._panes.append(self._open())
        step = 0
        while step < actions if not turns else self.journal.counts["messages"] < turns:
            self._step(step)
            step += 1
            if turns and self.journal.counts["messages"] <= turns // 10:
                self._peaks[:] = [self.peak]
        warm = self._peaks[0] if turns >= _LONG else 0
        self._end()
        if warm and self.peak > MAX_GROWTH * warm:
            raise PromiseError(f"memory grew from {warm / 1e6:.0f} to {self.peak / 1e6:.0f} MB")

    def _step(self, step: int) -> None:
        rng = random.Random(f"{self.seed}:{step}")  # its own: what one step draws changes no other
        action = choose(rng, steady=self.steady, without=self._plan.without)
        self.journal.write("action", step=step, name=action.name, pane=self._at)
        self.journal.count("actions")
        if self._plan.tell:
            print(f"{step:4} {action.name}", flush=True)
        action.run(self, rng)
        for at, pane in reversed(list(enumerate(self._panes))):
            if pane.has_ended:  # by a key that quits
                self._at = at
                pane.finish()
                self.reopen("--continue")
        if rng.random() < _PROBES:
            self.journal.count("probes")
            self.pane.probe()
        self._check()

    def _check(self) -> None:
        for pane in self._panes:
            pane.drain()
            pane.check(self._stored)
        if self.journal.violations:
            raise PromiseError(f"after {self.journal.counts['actions']} actions")

    @property
    def _stored(self) -> int:
        """The size of what a long session has said so far, in bytes; an episode has no excuse."""
        database = self._home / "rolling-chat" / "sessions.db"
        return database.stat().st_size if self.steady and database.exists() else 0

    def _end(self) -> None:
        for server in self._servers.values():
            server.calm = True
        for pane in self._panes:
            if not pane.has_ended:
                pane.probe()
                pane.press("\x1b")
                pane.probe()
                pane.quit()
            else:
                pane.finish()
        self._check_processes()
        if (self._home / "secret.txt").read_text() != f"{SECRET}\n" or (self._home / "stolen.txt").exists():
            raise PromiseError("a file outside the folder was changed")
        for server in self._servers.values():
            self._marks |= server.marks
        database = self._home / "rolling-chat" / "sessions.db"
        if problems := broken_store(database, self._marks, random.Random(self.seed)):
            raise PromiseError("; ".join(problems[:10]))

    def _check_processes(self) -> None:
        until = time.monotonic() + 2 * SCALE
        while left := processes_with(str(self._home)):
            if time.monotonic() > until:
                raise PromiseError(f"processes are left: {left}")
            time.sleep(0.05)

    def _drain(self) -> None:
        for pane in self._panes:
            pane.drain()

    # -- beginning

    def _open(self, *argv: str) -> Pane:
        pane = Pane(
            [*argv, *self._options],
            environ=self.environ,
            folder=self.folder,
            size=_SIZE,
            journal=self.journal,
            meanwhile=self._drain,
        )
        self._stack.callback(pane.close)
        if pane.wait_ready():
            return pane
        pane.finish(2)
        if not argv:
            raise PromiseError("it does not start")
        return self._open()  # there was no session to continue

    def _make_folder(self) -> None:
        for folder in (self.folder, self._home):
            folder.mkdir()
        (self._home / "secret.txt").write_text(f"{SECRET}\n")
        (self.folder / "link-to-secret").symlink_to(self._home / "secret.txt")
        (self.folder / "notes.txt").write_text("The lexer drops trailing tabs.\n" * 20)
        lines = (
            f"{number} the lexer said something about aaaaaaaaaaaaaaaaaaaaaaaaaaa!" for number in range(4_000)
        )
        (self.folder / "big.log").write_text("\n".join(lines))

    def _start_servers(self) -> dict[str, Strict]:
        # a client that goes away in mid-answer is what an episode is about
        logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
        window = self._rng.choice(_WINDOWS)
        elsewhere = self._stack.enter_context(Elsewhere(self.journal).in_thread())
        servers: dict[str, Strict] = {
            OPENAI: StrictOpenAI(window=window, key=KEY),
            ANTHROPIC: StrictAnthropic(window=window, key=KEY),
        }
        for model, server in servers.items():
            server.watch(self.journal, self.seed, f"{elsewhere.address}/v1{server.path}", self._plan.without)
            self._stack.enter_context(server.in_thread())
            self.journal.write("server", model=model, window=window)
        return servers

    def _environment(self) -> dict[str, str]:
        rng = self._rng
        config = [
            f'model = "{rng.choice((OPENAI, ANTHROPIC))}"',
            "[context]",
            f"enabled = {rng.choice(('true', 'false'))}",
            f'summarize = "{rng.choice(("model", "extract", "off"))}"',
            "[agent]",
            f'approvals = "{rng.choice(("ask", "ask", "all", "read-only"))}"',
        ]
        for model, server in self._servers.items():
            config += [
                f'[models."{model}"]',
                f"max_input_tokens = {server.window}",
                "max_output_tokens = 2000",
                f'api_base = "{server.api_base}"',
            ]
        way = self._plan.direct or ("auto", "off")[self.seed % 2]
        config += ["[providers]", f'direct = "{way}"']
        home = self._home / "rolling-chat"
        home.mkdir()
        (home / "config.toml").write_text("\n".join(config))
        self._options: tuple[str, ...] = ()
        return program_environment(
            self._home,
            OPENAI_API_KEY=KEY,
            ANTHROPIC_API_KEY=KEY,
            EDITOR="true",
            VISUAL="true",
            PAGER="true",
        )

    def _clean_up(self) -> None:
        end_processes(list(processes_with(str(self._home))))
