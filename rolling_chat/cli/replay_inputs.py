"""The inputs of `rolling-chat replay`: the named files, or a saved session."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from rolling_chat.agent.replaying import Replayer
from rolling_chat.agent.request.counting import SessionCounts
from rolling_chat.agent.request.model_limits import knowledge_of
from rolling_chat.agent.request.rebuild import newest_inputs
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.cli.stored import has_saved, open_saved
from rolling_chat.context import ContextPlan
from rolling_chat.messages import Message
from rolling_chat.replay import (
    AnyUnit,
    Fingerprint,
    GivenUnit,
    Inputs,
    Transcript,
    files_of,
    session_transcript,
)
from rolling_chat.sessions.records import SessionAmbiguous, SessionInfo, SessionNotFound, StoreError
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import Settings

_SESSION_ID = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Opened:
    """The opened inputs, and the replayer with model and settings."""

    replayer: Replayer
    inputs: Inputs | None = None
    unit: GivenUnit | None = None

    def fingerprint(self) -> Fingerprint:
        """Return the fingerprint of all input files. A session has none, as its replay is never resumed."""
        return (
            self.inputs.fingerprint() if self.inputs is not None else Fingerprint("", 1, 0, is_regular=False)
        )

    @property
    def size(self) -> int:
        """The bytes to read, for a progress bar; 0 if unknown, or if no bar is shown."""
        return self.fingerprint().size if sys.stderr is not None and sys.stderr.isatty() else 0

    def units(self, since: tuple[int, int] = (0, 0)) -> Iterator[AnyUnit]:
        """Cut the input into units, from `since` on."""
        if self.inputs is not None:
            return self.inputs.units(since)
        return iter([self.unit] if self.unit is not None else [])


def open_inputs(options: Options, paths: Paths, settings: Settings) -> Opened:
    """Open the files that the options name, or the saved session. Raises Failure."""
    model = options.model or settings.model
    name = options.files[0]
    is_session = len(options.files) == 1 and _SESSION_ID.fullmatch(name) and name != "-"
    if is_session and not os.path.lexists(name) and has_saved(options, paths):
        return _open_session(name, options, paths, settings)
    without = files_of(Path(options.output)) if options.output is not None else frozenset()
    replayer = Replayer(model, _as_asked(settings, model, options))
    return Opened(replayer, Inputs(tuple(options.files), without))


def _open_session(name: str, options: Options, paths: Paths, settings: Settings) -> Opened:
    """Open a saved session, with what was learned of the model and the session's stored counts."""
    store = open_saved(options, paths)
    try:
        info = store.session(name)
        model = options.model or settings.model or info.model
        known = knowledge_of(model, _address(info, model, settings), store)
        inputs = newest_inputs(store, info.id)
        system, tools = (inputs.system, inputs.tools) if inputs else ("", ())
        branch = store.stretch(info.id, None)
        counts = SessionCounts()
        counts.load(branch.messages, branch.counts)
        transcript = session_transcript(info, branch.messages, model, system=system, tools=tools)
        plan = _counted(counts, transcript, branch.messages, model) if system else None
        replayer = Replayer(
            model, _as_asked(settings, model, options), paths.catalog_file, known, plan, counts.memo
        )
        return Opened(replayer, unit=GivenUnit(transcript))
    except (SessionNotFound, SessionAmbiguous) as error:
        raise Failure(f"there is no file {name}, and {error}", Exit.USAGE) from error
    except StoreError as error:
        raise Failure(str(error)) from error
    finally:
        store.close()


def _counted(
    counts: SessionCounts, transcript: Transcript, branch: Sequence[Message], model: str
) -> ContextPlan:
    """Return a plan without decisions, with the sizes that the model reported for the session."""
    measured = counts.measured_sizes(transcript.messages, branch, model)
    return ContextPlan(measured=measured, confirmed=counts.confirmed(branch, measured))


def _address(info: SessionInfo, model: str, settings: Settings) -> str:
    own = info.api_base if model == info.model else None
    return own if own is not None else settings.for_model(model).api_base


def _as_asked(settings: Settings, model: str, options: Options) -> Settings:
    """Return the settings with this command's options; rolling is on unless the command line turns it off."""
    context = settings.context
    if settings.origins.get("context.enabled") != "command line":
        context = replace(context, enabled=True)
    if options.reserved_output_tokens is not None:
        context = replace(context, reserved_output_tokens=options.reserved_output_tokens)
    models = dict(settings.models)
    if options.max_input_tokens is not None:
        models[model] = replace(settings.for_model(model), max_input_tokens=options.max_input_tokens)
    return replace(settings, context=context, models=MappingProxyType(models))
