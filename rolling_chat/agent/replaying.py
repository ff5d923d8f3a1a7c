"""Replay transcripts with the chat's settings, model catalog and pipeline."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rolling_chat.agent.request.model_limits import Knowledge, context_config
from rolling_chat.context import ContextConfig, ContextPlan, CountMemo
from rolling_chat.messages import Json, JsonObject
from rolling_chat.replay import Replayed, Transcript, as_row, make_transcript, replay, row_value
from rolling_chat.settings.catalog import ModelCatalog, load_catalog
from rolling_chat.settings.schema import Settings


def _frozen(mapping: Mapping[str, Any]) -> MappingProxyType[str, Any]:
    return MappingProxyType(mapping)


# settings contain such mappings, and are sent to other processes
copyreg.pickle(MappingProxyType, lambda mapping: (_frozen, (dict(mapping),)))


@dataclass(frozen=True, slots=True)
class Replayer:
    """Plans the requests of conversations with a model and settings; a value that can be pickled.

    For a saved session, `known` is what the chat has learned about the model, `plan` has the sizes that the
    model reported, and `memo` the counts. Files are replayed by settings and catalog alone, so that the
    result is the same on every machine.
    """

    model: str
    settings: Settings = field(default_factory=Settings)
    catalog_file: Path | None = None
    known: Knowledge | None = None
    plan: ContextPlan | None = None
    memo: CountMemo | None = field(default=None, compare=False)

    @classmethod
    def create(cls, model: str, *, max_input_tokens: int = 0) -> Replayer:
        """Create one with default settings and the packaged model catalog; a window may be given."""
        settings = Settings()
        of_model = replace(settings.for_model(model), max_input_tokens=max_input_tokens)
        return cls(model, replace(settings, models={model: of_model}))

    def rows(
        self, conversation: Transcript | JsonObject, name: str = "", *, file: str | None = None
    ) -> Iterator[dict[str, Json]]:
        """Yield a row for every request of a conversation, a pure function of it and these settings.

        The conversation may be an object with `messages` and optionally `id` and `tools`; `name` is used if
        it has no id. Raises TranscriptError if it is not a conversation.
        """
        if not isinstance(conversation, Transcript):
            where = name or "the conversation"
            conversation = make_transcript(row_value(conversation, where), name, where)
        for replayed in self.requests(conversation, CountMemo()):
            yield as_row(replayed, file=file)

    def requests(self, transcript: Transcript, memo: CountMemo) -> Iterator[Replayed]:
        """Plan every request of a conversation in order."""
        config = self._config_for(transcript)
        return replay(transcript, config, model=self.model, memo=self.memo or memo, plan=self.plan)

    def config(self, system: str = "", tools: tuple[JsonObject, ...] = ()) -> ContextConfig:
        """Return the pipeline's configuration that the chat would use for a system prompt and tools."""
        known = self.known or Knowledge()
        return context_config(
            self.model,
            self.settings,
            _catalog(self.catalog_file),
            rolling=self.settings.context.enabled,
            system=system,
            tools=tools,
            learned=known.learned,
            calibration=known.measurements.calibration,
        )

    def facts(self) -> dict[str, Json]:
        """Return everything that rows depend on besides the conversation, by name."""
        config = asdict(replace(self.config(), tools={}))
        tools = {name: str(value) for name, value in self.config().tools.items()}
        return {"model": self.model, **config, "tools": tools}

    def _config_for(self, transcript: Transcript) -> ContextConfig:
        first = transcript.messages[0] if transcript.messages else None
        system = first.text if first is not None and first.role == "system" else ""
        return self.config(system, tuple(transcript.tools))


@cache
def _catalog(file: Path | None) -> ModelCatalog:
    return load_catalog(file)
