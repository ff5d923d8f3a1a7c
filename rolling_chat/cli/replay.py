"""`rolling-chat replay`: run transcripts through the pipeline."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from rolling_chat import __version__
from rolling_chat.agent.replaying import Replayer
from rolling_chat.agent.request.model_limits import Knowledge
from rolling_chat.cli.configured import settings_of
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.cli.picture_file import picture_file, write_picture
from rolling_chat.cli.replay_inputs import Opened, open_inputs
from rolling_chat.context.budget import history_cap
from rolling_chat.figures import plural
from rolling_chat.replay import (
    START,
    AnyUnit,
    Chunk,
    OutputError,
    Recording,
    Sample,
    Source,
    Tally,
    Totals,
    TranscriptError,
    Work,
    WorkersError,
    check_name,
    deferred_interrupts,
    draw_picture,
    draw_table,
    refusals_line,
    repairs_line,
    run_units,
)
from rolling_chat.settings.paths import Paths
from rolling_chat.text import one_line, without_controls

log = logging.getLogger(__name__)

Share: TypeAlias = Callable[[AnyUnit, Chunk], None]
# The width of tables written to a file or pipe, which need not fit a screen.
_FILE_WIDTH = 200


def run_replay(options: Options, paths: Paths) -> int:
    """Replay transcripts and print a table or one JSON object per request, or write the rows into a file.

    Raises Failure for files that cannot be read or written, and for bad usage.
    """
    form = _form(options)
    picture = picture_file(options)
    opened = open_inputs(options, paths, settings_of(options, paths))
    run = _Run(opened, options, keeps_tallies=form == "table")
    try:
        if options.output is not None:
            return _record(run, Path(options.output))
        with _progress(opened.size, is_hidden=form == "json" and sys.stdout.isatty()) as share:
            _print_rows(run, share)
    except (TranscriptError, OutputError) as error:
        raise Failure(str(error), Exit.USAGE) from error
    except WorkersError as error:
        raise Failure(str(error)) from error
    if form == "table":
        _print_table(run)
    run.complain()
    if picture is not None:
        _write_picture(picture, run)
    return run.code


@dataclass(slots=True)
class _Run:
    """A replay, and its results so far."""

    opened: Opened
    options: Options
    keeps_tallies: bool = False
    totals: Totals = field(default_factory=Totals)
    tallies: list[Tally] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    @property
    def names(self) -> str:
        """The names of the inputs, in a few words."""
        first, more = self.options.files[0], len(self.options.files) - 1
        return f"{first} and {plural(more, 'other')}" if more else first

    @property
    def code(self) -> int:
        """The exit code."""
        return Exit.USAGE if self.totals.left_out else Exit.DONE

    def results(self, recording: Recording | None = None) -> Generator[tuple[AnyUnit, Chunk], None, None]:
        """Replay everything that `recording` does not have yet."""
        work = Work(
            self.opened.replayer,
            recording.encoding if recording else "none" if self.keeps_tallies else "lines",
            prompts=self.options.emit_prompts,
            samples=self.options.svg is not None,
        )
        since, done = (recording.reached.unit, recording.reached.done) if recording else ((0, 0), START)
        jobs = self.options.jobs if self.opened.unit is None else 1
        return run_units(work, self.opened.units(since), jobs, done)

    def take_in(self, chunk: Chunk) -> None:
        """Add the results of the next part."""
        for tally in chunk.tallies:
            self.totals.add(tally)
        if self.keeps_tallies:
            self.tallies += chunk.tallies
        self.samples += chunk.samples
        self.totals.left_out += len(chunk.problems)
        if chunk.problems or chunk.notes:
            sys.stdout.flush()
        for problem in chunk.problems:
            print(f"rolling-chat: {without_controls(problem.line)}", file=sys.stderr)
            if problem.details:
                log.error("%s", problem.details)
        for note in chunk.notes:
            print(f"rolling-chat: {without_controls(note)}", file=sys.stderr)

    def complain(self) -> None:
        """Print final warnings on stderr."""
        totals = self.totals
        if not totals.whole.requests and not totals.left_out:
            print(f"rolling-chat: no model was called in {one_line(self.names)}", file=sys.stderr)
        if line := repairs_line(totals):
            print(f"rolling-chat: {without_controls(line)}", file=sys.stderr)


def _print_rows(run: _Run, share: Share) -> None:
    with closing(run.results()) as results:
        for unit, chunk in results:
            run.take_in(chunk)
            share(unit, chunk)
            if chunk.payload:
                sys.stdout.write(chunk.payload.decode("ascii"))


def _record(run: _Run, path: Path) -> int:
    """Write the rows into a file, continuing one that was begun before."""
    check_name(path)
    opened = run.opened
    facts = {"program version": __version__, "--emit-prompts": run.options.emit_prompts}
    source = Source({**opened.replayer.facts(), **facts}, opened.fingerprint())
    shown = one_line(str(path))
    recording: Recording | None = None
    try:
        recording = Recording.open(path, source, prompts=run.options.emit_prompts)
        run.totals = recording.totals
        if recording.is_resumed:
            print(
                f"rolling-chat: going on with {plural(recording.reached.rows, 'row')} of {shown}",
                file=sys.stderr,
            )
        try:
            _fill(recording, run)
        except KeyboardInterrupt:
            recording.finish(is_complete=False)
            print(
                f"rolling-chat: interrupted; {_summary(run, recording)} are in {shown}, "
                "and the same command goes on",
                file=sys.stderr,
            )
            return Exit.INTERRUPTED
        recording.finish(is_complete=True)
    except OSError as error:
        why = error.strerror or error
        raise Failure(f"cannot write {shown}: {why}; once it can, the same command goes on") from error
    finally:
        if recording is not None:
            recording.close()
    print(f"{_summary(run, recording)} → {shown}")
    run.complain()
    return run.code


def _fill(recording: Recording, run: _Run) -> None:
    """Write the remaining rows; Ctrl+C is delayed until every received chunk is written."""
    with (
        _progress(run.opened.size, is_hidden=False) as share,
        closing(run.results(recording)) as results,
    ):
        for unit, chunk in results:
            with deferred_interrupts():
                run.take_in(chunk)
                recording.add(unit, chunk)
            share(unit, chunk)


def _summary(run: _Run, recording: Recording) -> str:
    totals = run.totals
    refused = f", {totals.whole.overflows:,} refused" if totals.whole.overflows else ""
    left_out = f", {totals.left_out:,} left out" if totals.left_out else ""
    rows = plural(recording.reached.rows, "row")
    return f"{rows} of {plural(totals.conversations, 'conversation')}{refused}{left_out}"


@contextmanager
def _progress(size: int, *, is_hidden: bool) -> Iterator[Share]:
    """Show a transient progress bar on stderr, unless hidden or no terminal.

    It measures the bytes of finished units, of `size` in all.
    """
    if is_hidden or not (sys.stderr and sys.stderr.isatty()):
        yield lambda _unit, _chunk: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("replaying", total=size or None)
        done = 0

        def show(unit: AnyUnit, chunk: Chunk) -> None:
            nonlocal done
            progress.update(task, completed=min(done + unit.size * chunk.share, size))
            done += unit.size if chunk.is_last else 0

        yield show


def _print_table(run: _Run) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else _FILE_WIDTH)
    console.print(draw_table(run.tallies))
    if refused := refusals_line(run.totals):
        console.print(Text(f"\n{refused}"))
    console.print(Text(f"\n{_describe(run.opened.replayer)}", style="dim"))


def _write_picture(file: Path, run: _Run) -> None:
    requests, conversations = len(run.samples), run.totals.conversations
    called = f" of {conversations:,} conversations" if conversations != 1 else ""
    picture = draw_picture(
        run.samples,
        title=f"{Path(run.names).name}: {plural(requests, 'request')}{called}",
        subtitle=_describe(run.opened.replayer),
    )
    write_picture(file, picture)


def _describe(replayer: Replayer) -> str:
    """Return one line with the settings of the replay."""
    config = replayer.config()
    cap = history_cap(config, config.max_context_tokens)
    return (
        f"model {one_line(replayer.model, 60) or 'unknown (name one with --model)'} "
        f"· window {config.max_context_tokens:,} · rolling {'on' if config.enabled else 'off'} "
        f"· history cap {f'{cap:,}' if cap else 'none'}{_whence(replayer.known)}"
    )


def _whence(known: Knowledge | None) -> str:
    if known is None:
        return " · by settings and catalog, nothing learned"
    return " · with what was learned of it" if known != Knowledge() else ""


def _form(options: Options) -> str:
    """Return the form of the output: a table, JSON, or nothing but a summary. Raises Failure."""
    if options.json and options.format == "table":
        raise Failure("--json and --format table ask for two things at once", Exit.USAGE)
    if options.emit_prompts and options.format == "table":
        raise Failure("--emit-prompts needs --format json: a table has no room for prompts", Exit.USAGE)
    if options.output is not None:
        if options.format == "table" or options.svg is not None:
            wanted = "--svg" if options.svg is not None else "--format table"
            raise Failure(f"--output and {wanted} ask for two things at once", Exit.USAGE)
        return "none"
    if options.json or options.emit_prompts:
        return "json"
    return options.format or ("json" if not (sys.stdout and sys.stdout.isatty()) else "table")
