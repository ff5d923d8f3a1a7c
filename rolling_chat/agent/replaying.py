"""The replay of transcripts as the chat would have it: its settings, its model catalog, its pipeline."""

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


# settings hold such mappings, and go to other processes
copyreg.pickle(MappingProxyType, lambda mapping: (_frozen, (dict(mapping),)))


@dataclass(frozen=True, slots=True)
class Replayer:
    """Plan the requests of conversations by a model and settings; a value, which can go to other processes.

    `known` is what the chat has learned of the model, for a saved session; `plan` has the sizes that the
    model reported of it, and `memo` what was counted. A file is replayed by what settings and catalog say, so
    that it comes out the same on every machine.
    """

    model: str
    settings: Settings = field(default_factory=Settings)
    catalog_file: Path | None = None
    known: Knowledge | None = None
    plan: ContextPlan | None = None
    memo: CountMemo | None = field(default=None, compare=False)

    @classmethod
    def create(cls, model: str, *, max_input_tokens: int = 0) -> Replayer:
        """Make one of the default settings, and the packaged model catalog unless a window is given."""
        settings = Settings()
        of_model = replace(settings.for_model(model), max_input_tokens=max_input_tokens)
        return cls(model, replace(settings, models={model: of_model}))

    def rows(
        self, conversation: Transcript | JsonObject, name: str = "", *, file: str | None = None
    ) -> Iterator[dict[str, Json]]:
        """Yield a row for every request of a conversation: a pure function of it and of these settings.

        It may be an object with `messages`, and perhaps `id` and `tools`, which is called `name` if it has no
        id. Raises TranscriptError if it is no conversation.
        """
        if not isinstance(conversation, Transcript):
            where = name or "the conversation"
            conversation = make_transcript(row_value(conversation, where), name, where)
        for replayed in self.requests(conversation, CountMemo()):
            yield as_row(replayed, file=file)

    def requests(self, transcript: Transcript, memo: CountMemo) -> Iterator[Replayed]:
        """Plan every request of a conversation, one after the other."""
        config = self._config_for(transcript)
        return replay(transcript, config, model=self.model, memo=self.memo or memo, plan=self.plan)

    def config(self, system: str = "", tools: tuple[JsonObject, ...] = ()) -> ContextConfig:
        """Return the pipeline's configuration, as the chat has it for this system prompt and these tools."""
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
        """Return all that rows depend on besides the conversation, by name."""
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
