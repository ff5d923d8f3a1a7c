"""Replay units of the input in parallel processes, with the results in the order of the input."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Any, Self

from rolling_chat.gc_tuning import tune_for_one_run
from rolling_chat.replay.inputs import AnyUnit
from rolling_chat.replay.interrupts import deferred_interrupts
from rolling_chat.replay.work import START, Chunk, Problem, Progress, Work

# The limit on results that are kept in memory until those of an earlier unit are complete.
_MAX_WAITING_BYTES = 64 * 1024 * 1024
_MAX_BLIND_DEATHS = 2
_MAX_FAILED_STARTS = 3


class WorkersError(Exception):
    """Raised when no process can be started; `str()` is one line for the user."""


def run_units(
    work: Work, units: Iterator[AnyUnit], jobs: int, since: Progress = START
) -> Generator[tuple[AnyUnit, Chunk], None, None]:
    """Replay units in `jobs` processes, or in this one if that is 1; results come in the order of the units.

    The first unit is replayed from `since` on. Raises WorkersError, and the errors of reading the units.
    """
    if jobs > 1:
        with Workers(work, jobs) as workers:
            yield from workers.run(units, since)
        return
    for unit in units:
        for chunk in work.run(unit, since):
            yield unit, chunk
        since = START


@dataclass(slots=True)
class _Task:
    """A unit assigned to a process, and its waiting results.

    After a process died while working on it, the next one reports each conversation before it starts
    (`next`), so that the one that kills processes is identified: `died_at`. `blind` counts processes that
    died before reporting any.
    """

    unit: AnyUnit
    done: Progress = START
    waiting: deque[Chunk] = field(default_factory=deque)
    is_over: bool = False
    is_careful: bool = False
    next: str = ""
    died_at: int = -1
    blind: int = 0

    def fail(self, how: str) -> Chunk:
        """Handle the death of a process: repeat the rest, but leave out what kills repeatedly."""
        index = self.done.conversations
        where = self.next or self.unit.where
        if self.is_careful and not self.next:
            self.blind += 1
            if self.blind >= _MAX_BLIND_DEATHS:
                self.is_over = True
                line = f"the rest of {where} was left out: every process that replayed it was {how}"
                return Chunk(self.done, problems=[Problem(line)], is_last=True)
        elif self.is_careful and self.died_at == index:
            self.done, self.died_at = Progress(index + 1), -1
            line = f"{where} was left out: every process that replayed it was {how}"
            return Chunk(self.done, problems=[Problem(line)])
        elif self.is_careful:
            self.died_at = index
        self.is_careful, self.next = True, ""
        return Chunk(self.done, notes=[f"a process was {how} while replaying {where}: it is replayed again"])


class _Worker:
    """A process and its current task."""

    def __init__(self, work: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.task: _Task | None = None
        self.is_ready = False
        self.process: SpawnProcess = context.Process(target=_serve, args=(theirs, work), daemon=True)
        with _ignoring_interrupts():
            self.process.start()
        theirs.close()

    def give(self, task: _Task) -> None:
        """Assign a task to the process, to continue from its progress."""
        self.task = task
        # a dead process is detected when its results are read
        with contextlib.suppress(OSError):
            self.connection.send((task.unit, task.done, task.is_careful))

    def end(self) -> None:
        """Kill the process: it has nothing to lose."""
        self.process.kill()
        self.process.join()
        self.connection.close()


class Workers:
    """A pool of processes that replay units; a context manager that ends them all."""

    def __init__(self, work: Work, jobs: int) -> None:
        self._work = pickle.dumps(work)
        self._jobs = jobs
        self._workers: list[_Worker] = []
        self._tasks: deque[_Task] = deque()  # assigned and not yet complete, in the order of the input
        self._repeated: deque[_Task] = deque()  # tasks whose process died
        self._waiting = 0  # bytes of waiting results
        self._failed_starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.end()

    def run(self, units: Iterator[AnyUnit], since: Progress = START) -> Iterator[tuple[AnyUnit, Chunk]]:
        """Replay all units, the first from `since` on."""
        tasks = (_Task(unit, since if index == 0 else START) for index, unit in enumerate(units))
        upcoming = deque(islice(tasks, self._jobs))
        while upcoming or self._tasks:
            self._start(len(upcoming) + len(self._tasks))
            while (self._repeated or upcoming) and (idle := self._idle()):
                if self._repeated:
                    idle.give(self._repeated.popleft())
                    continue
                task = upcoming.popleft()
                self._tasks.append(task)
                idle.give(task)
                upcoming.extend(islice(tasks, 1))
            self._receive()
            yield from self._in_order()

    def _start(self, tasks: int) -> None:
        """Start all processes that are needed at once, because each takes half a second to become ready."""
        while len(self._workers) < min(self._jobs, tasks):
            self._workers.append(_Worker(self._work))

    def _idle(self) -> _Worker | None:
        """Return a process that can take a task; None if all are busy or too many results are waiting."""
        if self._waiting > _MAX_WAITING_BYTES and not self._repeated:
            return None
        return next((worker for worker in self._workers if worker.is_ready and not worker.task), None)

    def _receive(self) -> None:
        """Wait for results and collect them; if too many are waiting, only those that are needed next."""
        is_full = self._waiting > _MAX_WAITING_BYTES
        head = self._tasks[0] if self._tasks else None
        by_connection = {
            worker.connection: worker
            for worker in self._workers
            if not is_full or worker.task is None or worker.task is head
        }
        for connection in wait(list(by_connection)):
            worker = by_connection[connection]  # type: ignore[index]
            try:
                self._collect(worker, worker.connection.recv())
            except (EOFError, OSError):
                self._handle_death(worker)

    def _collect(self, worker: _Worker, chunk: Chunk | None) -> None:
        if chunk is None:
            worker.is_ready = True
            self._failed_starts = 0
            return
        task = worker.task
        assert task is not None
        task.done, task.is_over, task.next = chunk.done, chunk.is_last, chunk.next or task.next
        task.waiting.append(chunk)
        self._waiting += len(chunk.payload)
        if chunk.is_last:
            worker.task = None

    def _in_order(self) -> Iterator[tuple[AnyUnit, Chunk]]:
        """Yield the results of the first unit, then those of following units as they complete."""
        while self._tasks:
            task = self._tasks[0]
            while task.waiting:
                chunk = task.waiting.popleft()
                self._waiting -= len(chunk.payload)
                yield task.unit, chunk
            if not task.is_over:
                return
            self._tasks.popleft()

    def _handle_death(self, worker: _Worker) -> None:
        """Handle the death of a process: repeat its unfinished work, and leave out what kills repeatedly."""
        self._workers.remove(worker)
        worker.process.join()
        worker.connection.close()
        how = _exit_description(worker.process.exitcode)
        if worker.task is not None:
            task = worker.task
            task.waiting.append(task.fail(how))
            if not task.is_over:
                self._repeated.append(task)
        elif not worker.is_ready:
            self._failed_starts += 1
            if self._failed_starts >= _MAX_FAILED_STARTS:
                raise WorkersError(f"the processes for --jobs cannot be started: each was {how}")


def _exit_description(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    return f"ended with code {code}"


@contextlib.contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Make a process that the block starts ignore Ctrl+C, which the terminal sends to all processes."""
    if sys.platform == "win32":
        yield
        return
    # another thread could receive the signal instead, and leave a half-started process behind
    with deferred_interrupts():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection[Any, Any], work: bytes) -> None:
    """Replay units received through the connection until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    tune_for_one_run()
    logging.getLogger().addHandler(logging.NullHandler())
    todo: Work = pickle.loads(work)  # noqa: S301 - pickled by the parent
    with contextlib.suppress(EOFError, OSError):
        connection.send(None)
        while True:
            unit, since, by_conversation = connection.recv()
            for chunk in todo.run(unit, since, by_conversation=by_conversation):
                connection.send(chunk)
    os._exit(0)


def _end_with_parent() -> None:
    """End this process when its parent ends, for whatever reason."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
    os._exit(1)
