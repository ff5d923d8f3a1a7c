"""`rolling-chat replay`: what the pipeline would have made of a transcript."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from rolling_chat.agent.request.counting import SessionCounts
from rolling_chat.agent.request.model_limits import Knowledge, context_config, knowledge_of
from rolling_chat.agent.request.rebuild import newest_inputs
from rolling_chat.cli.configured import settings_of
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.cli.picture_file import picture_file, write_picture
from rolling_chat.cli.stored import open_saved
from rolling_chat.context import ContextConfig, ContextPlan, CountMemo
from rolling_chat.context.budget import history_cap
from rolling_chat.figures import plural
from rolling_chat.messages import JsonObject, Message
from rolling_chat.replay import (
    Replayed,
    Sample,
    Tally,
    Transcript,
    TranscriptError,
    as_row,
    draw_picture,
    draw_table,
    read_transcripts,
    refusals_line,
    repairs_line,
    replay,
    session_transcript,
)
from rolling_chat.sessions.records import SessionAmbiguous, SessionInfo, SessionNotFound, StoreError
from rolling_chat.settings.catalog import ModelCatalog, load_catalog
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import Settings
from rolling_chat.text import one_line, without_controls

_SESSION_ID = re.compile(r"[\w-]+")
# A table that goes to a file or a pipe is as wide as it needs to be.
_FILE_WIDTH = 200

# Called with the share of the work done, 0 to 1.
Show = Callable[[float], None]


def run_replay(options: Options, paths: Paths) -> int:
    """Replay transcripts and print a table, or one JSON object per request.

    Raises Failure for what cannot be read, and for bad usage.
    """
    as_json = _wants_json(options)
    picture = picture_file(options)
    settings = settings_of(options, paths)
    counts = SessionCounts()
    opened = _open(options, paths, settings, counts)
    model, known = opened.model, opened.known
    catalog = load_catalog(paths.catalog_file if known is not None else None)
    replaying = Replaying(
        model, _as_asked(settings, model, options), catalog, counts.memo, known,
        keeps_samples=picture is not None, plan=opened.plan,
    )  # fmt: skip
    try:
        with _progress(rows_on_screen=as_json and sys.stdout.isatty()) as show:
            for transcript, replayed in replaying.run(opened.transcripts, show):
                if as_json:
                    row = as_row(replayed, prompt_of=transcript if options.emit_prompts else None)
                    # ASCII escapes keep every control sequence out of stdout
                    print(json.dumps(row, ensure_ascii=True))
    except TranscriptError as error:
        sys.stdout.flush()
        raise Failure(str(error), Exit.USAGE) from error
    if not as_json:
        _print_table(replaying)
    if not any(tally.requests for tally in replaying.tallies):
        print(f"rolling-chat: no model was called in {one_line(options.file)}", file=sys.stderr)
    if line := repairs_line(replaying.tallies):
        print(f"rolling-chat: {without_controls(line)}", file=sys.stderr)
    if picture is not None:
        _write_picture(picture, replaying, options.file)
    return Exit.DONE


@dataclass(slots=True)
class Replaying:
    """A replay of every conversation in a file under the same settings, with totals.

    `known` is what the chat has learned of the model, for a saved session, and `plan` has the sizes that the
    model reported of it; a file is replayed by what settings and catalog say, so that it comes out the same
    on every machine.
    """

    model: str
    settings: Settings
    catalog: ModelCatalog
    memo: CountMemo
    known: Knowledge | None = None
    keeps_samples: bool = False
    plan: ContextPlan | None = None
    tallies: list[Tally] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def run(self, transcripts: Iterable[Transcript], show: Show) -> Iterator[tuple[Transcript, Replayed]]:
        """Replay one conversation after the other."""
        done = 0.0
        for transcript in transcripts:
            tally = Tally(transcript.id)
            config = self._config_for(transcript)
            for replayed in replay(
                transcript,
                config,
                model=self.model,
                memo=self.memo,
                plan=self.plan,
            ):
                tally.add(replayed)
                if self.keeps_samples:
                    self.samples.append(Sample.of(replayed))
                show(done + (transcript.read - done) * replayed.at_message / len(transcript.messages))
                yield transcript, replayed
            tally.add_repaired(transcript.repaired)
            self.tallies.append(tally)
            done = transcript.read
            show(done)

    def _config_for(self, transcript: Transcript) -> ContextConfig:
        first = transcript.messages[0] if transcript.messages else None
        system = first.text if first is not None and first.role == "system" else ""
        return self.config(system, transcript.tools)

    def config(self, system: str = "", tools: Iterable[JsonObject] = ()) -> ContextConfig:
        """Return the pipeline's configuration, as the chat has it for this system prompt and these tools."""
        known = self.known or Knowledge()
        return context_config(
            self.model,
            self.settings,
            self.catalog,
            rolling=self.settings.context.enabled,
            system=system,
            tools=list(tools),
            learned=known.learned,
            calibration=known.measurements.calibration,
        )

    def describe(self) -> str:
        """Return one line with the settings of the replay."""
        config = self.config()
        cap = history_cap(config, config.max_context_tokens)
        history = f"{cap:,}" if cap else "none"
        return (
            f"model {one_line(self.model, 60) or 'unknown (name one with --model)'} "
            f"· window {config.max_context_tokens:,} · rolling {'on' if config.enabled else 'off'} "
            f"· history cap {history}{self._whence}"
        )

    @property
    def _whence(self) -> str:
        if self.known is None:
            return " · by settings and catalog, nothing learned"
        return " · with what was learned of it" if self.known != Knowledge() else ""


@dataclass(frozen=True, slots=True)
class _Opened:
    """What is replayed: conversations, and for a saved session what the model has revealed."""

    model: str
    transcripts: Iterable[Transcript]
    known: Knowledge | None = None
    plan: ContextPlan | None = None


def _wants_json(options: Options) -> bool:
    if options.json and options.format == "table":
        raise Failure("--json and --format table ask for two things at once", Exit.USAGE)
    if options.emit_prompts and options.format == "table":
        raise Failure("--emit-prompts needs --format json: a table has no room for prompts", Exit.USAGE)
    if options.json or options.emit_prompts:
        return True
    if options.format is not None:
        return options.format == "json"
    return not (sys.stdout and sys.stdout.isatty())


def _open(options: Options, paths: Paths, settings: Settings, counts: SessionCounts) -> _Opened:
    """Open the conversations of a file, or a saved session, whose stored counts go to `counts`."""
    model = options.model or settings.model
    file = Path("/dev/stdin" if options.file == "-" else options.file)
    if file.exists():
        if file.is_dir():
            raise Failure(f"{one_line(options.file)} is a folder: give a file or a session's id", Exit.USAGE)
        return _Opened(model, read_transcripts(file))
    if not _SESSION_ID.fullmatch(options.file) or not paths.database.exists():
        raise Failure(f"there is no file {one_line(options.file)}", Exit.USAGE)
    store = open_saved(paths)
    try:
        info = store.session(options.file)
        model = model or info.model
        known = knowledge_of(model, _address(info, model, settings), store)
        inputs = newest_inputs(store, info.id)
        system, tools = (inputs.system, inputs.tools) if inputs else ("", ())
        branch = store.stretch(info.id, None)
        counts.load(branch.messages, branch.counts)
        transcript = session_transcript(info, branch.messages, model, system=system, tools=tools)
        plan = _counted(counts, transcript, branch.messages, model) if system else None
        return _Opened(model, [transcript], known, plan)
    except (SessionNotFound, SessionAmbiguous) as error:
        raise Failure(f"there is no file {options.file}, and {error}", Exit.USAGE) from error
    except StoreError as error:
        raise Failure(str(error)) from error
    finally:
        store.close()


def _counted(
    counts: SessionCounts, transcript: Transcript, branch: Sequence[Message], model: str
) -> ContextPlan:
    """Return a plan without decisions, with what the model reported of a session that it was sent."""
    measured = counts.measured_sizes(transcript.messages, branch, model)
    return ContextPlan(measured=measured, confirmed=counts.confirmed(branch, measured))


def _address(info: SessionInfo, model: str, settings: Settings) -> str:
    own = info.api_base if model == info.model else None
    return own if own is not None else settings.for_model(model).api_base


def _as_asked(settings: Settings, model: str, options: Options) -> Settings:
    """Return the settings with this command's own options; rolling is on unless this very run says no."""
    context = settings.context
    if settings.origins.get("context.enabled") != "command line":
        context = replace(context, enabled=True)
    if options.reserved_output_tokens is not None:
        context = replace(context, reserved_output_tokens=options.reserved_output_tokens)
    models = dict(settings.models)
    if options.max_input_tokens is not None:
        models[model] = replace(settings.for_model(model), max_input_tokens=options.max_input_tokens)
    return replace(settings, context=context, models=MappingProxyType(models))


@contextmanager
def _progress(*, rows_on_screen: bool) -> Iterator[Show]:
    """A bar on stderr while it is a terminal that shows nothing else; it leaves no line behind."""
    if rows_on_screen or not (sys.stderr and sys.stderr.isatty()):
        yield lambda _share: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("replaying", total=1.0)
        yield lambda share: progress.update(task, completed=share)


def _print_table(replaying: Replaying) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else _FILE_WIDTH)
    console.print(draw_table(replaying.tallies))
    if refused := refusals_line(replaying.tallies):
        console.print(Text(f"\n{refused}"))
    console.print(Text(f"\n{replaying.describe()}", style="dim"))


def _write_picture(file: Path, replaying: Replaying, source: str) -> None:
    requests, conversations = len(replaying.samples), len(replaying.tallies)
    called = f" of {conversations:,} conversations" if conversations != 1 else ""
    picture = draw_picture(
        replaying.samples,
        title=f"{Path(source).name}: {plural(requests, 'request')}{called}",
        subtitle=replaying.describe(),
    )
    write_picture(file, picture)
