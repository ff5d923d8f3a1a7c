"""A model's limits, from settings and catalog, as the pipeline's configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from types import MappingProxyType

from rolling_chat.context import Calibration, ContextConfig, Measurements, count_tokens, get_context_limit
from rolling_chat.context.budget import window_budget
from rolling_chat.context.calibration import NOT_CALIBRATED, safety_margin
from rolling_chat.context.families import knows_context_limit
from rolling_chat.context_keys import CacheTtl, ContextKeys, Truncation
from rolling_chat.message_lines import RECALL
from rolling_chat.messages import JsonObject
from rolling_chat.notes import NOTE_TOOL
from rolling_chat.providers import wire
from rolling_chat.providers.model_ref import ModelRef
from rolling_chat.providers.offline import offline_window
from rolling_chat.providers.wire_families import find_family
from rolling_chat.sessions.records import Learned
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.catalog import ModelCatalog, ModelInfo
from rolling_chat.settings.schema import ContextSettings, Settings
from rolling_chat.todo_list import TODO

# The thinking budget that litellm sends for each effort, in tokens; doubled for each effort above "high".
_THINKING: Mapping[str, int] = MappingProxyType(
    {"minimal": 128, "low": 1_024, "medium": 2_048, "high": 4_096, "xhigh": 8_192, "max": 16_384}
)

_MIN_BUDGET = 1_024  # tokens: Anthropic's minimum thinking budget
_MIN_ANSWER = 256  # tokens of answer besides the thinking

NOTHING_LEARNED = Learned()
NOTHING_MEASURED = Measurements()

_OLLAMA_WINDOW = 16_384
"""The window to ask an Ollama server for by default; a larger one needs more memory than it may have."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What requests have revealed about a model at an address: its limit and how it counts tokens."""

    learned: Learned = NOTHING_LEARNED
    measurements: Measurements = NOTHING_MEASURED

    def describe(self) -> str:
        """Return one line for the user."""
        calibration = self.measurements.calibration
        parts = []
        if self.learned.limit:
            parts.append(f"a window of {self.learned.limit:,} tokens from a refusal")
        if self.measurements.groups or self.measurements.wholes:
            parts.append(
                f"it counts {calibration.estimate:.2f} times our estimate, {calibration.bound:.2f} at most "
                f"({self.measurements.replies:,} replies)"
            )
        if self.measurements.is_miscounted:
            parts.append("its server counted a prompt wrongly, and is asked for no more counts")
        return "; ".join(parts) or "nothing yet of this model"


def knowledge_of(model: str, address: str, store: SessionStore) -> Knowledge:
    """Return what the store knows about `model` at an address. Raises StoreError."""
    known = store.models
    return Knowledge(known.learned(model, address), Measurements.from_json(known.measured(model, address)))


def window_of(
    model: str,
    settings: Settings,
    catalog: ModelCatalog,
    learned: Learned = NOTHING_LEARNED,
    *,
    served: int = 0,
) -> int:
    """Return W: the tokens that one request to `model` may have, prompt and answer together.

    It is the user's `max_input_tokens`, or else the demo model's window, or else the one that the server
    reported (`served`), the catalog's, or the built-in table's. It never exceeds `max_context_tokens` or a
    limit learned from a refusal.
    """
    info = _known(model, catalog)
    window = settings.for_model(model).max_input_tokens or offline_window(model) or 0
    if not window and served:
        window = min(served, _OLLAMA_WINDOW) if ModelRef.parse(model).is_ollama else served
    if not window:
        window = (info.max_input_tokens if info else 0) or get_context_limit(model)
        if ModelRef.parse(model).is_ollama:
            window = min(window, _OLLAMA_WINDOW)
    for cap in (settings.context.max_context_tokens, learned.limit):
        window = min(window, cap) if cap else window
    return window


def is_window_assumed(model: str, settings: Settings, catalog: ModelCatalog) -> bool:
    """Return whether the window of `model` is unknown, so that a default is used."""
    if settings.for_model(model).max_input_tokens or offline_window(model) or ModelRef.parse(model).is_ollama:
        return False
    info = _known(model, catalog)
    return not (info and info.max_input_tokens) and not knows_context_limit(model)


def output_limit(model: str, settings: Settings, catalog: ModelCatalog) -> int:
    """Return the maximum length of an answer of `model`, in tokens; 0 if unknown."""
    info = _known(model, catalog)
    return settings.for_model(model).max_output_tokens or (info.max_output_tokens if info else 0)


def effort_of(model: str, wanted: str, catalog: ModelCatalog) -> str:
    """Return the reasoning effort to ask of `model`; empty for one that is known not to reason."""
    info = _known(model, catalog)
    if ModelRef.parse(model).is_demo or (info is not None and not info.supports_reasoning):
        return ""
    highest = find_family(model).max_effort
    return highest if highest and _THINKING.get(wanted, 0) > _THINKING[highest] else wanted


def effort_within(effort: str, max_tokens: int | None) -> str:
    """Return `effort`, or the next lower one whose thinking leaves room for an answer in `max_tokens`.

    Claude refuses a thinking budget that is not below its output limit. Empty for the model's default.
    """
    if max_tokens is None or effort not in _THINKING:
        return effort
    names = list(_THINKING)
    lower = reversed(names[: names.index(effort) + 1])
    fitting = (name for name in lower if max(_THINKING[name], _MIN_BUDGET) + _MIN_ANSWER <= max_tokens)
    return next(fitting, "")


def cache_ttl_of(model: str, settings: Settings, catalog: ModelCatalog) -> CacheTtl:
    """Return the time to live that the cache marks of `model` ask for.

    It is the setting's, except that on Bedrock an hour needs a price in the catalog: models without one do
    not support it.
    """
    wanted = settings.context.cache_ttl
    if wanted == "5m" or not find_family(model).cache_marks:
        return "5m"
    info = _known(model, catalog) if ModelRef.parse(model).served_by.startswith("bedrock") else None
    return "5m" if info is not None and info.prices.cache_write_hour is None else wanted


def offers_tools(model: str, catalog: ModelCatalog) -> bool:
    """Return whether to offer `model` tools: yes, unless the catalog says that it does not support them."""
    info = _known(model, catalog)
    return info is None or info.supports_tools


def _known(model: str, catalog: ModelCatalog) -> ModelInfo | None:
    """Return the catalog's entry for a model; None, without reading the catalog, for the demo model."""
    return None if offline_window(model) else catalog.lookup(model)


def context_config(
    model: str,
    settings: Settings,
    catalog: ModelCatalog,
    *,
    rolling: bool,
    system: str,
    tools: Sequence[JsonObject],
    learned: Learned = NOTHING_LEARNED,
    served: int = 0,
    effort: str = "",
    calibration: Calibration = NOT_CALIBRATED,
) -> ContextConfig:
    """Return the pipeline's configuration for `model`.

    All sizes are in the model's own tokens, as far as `calibration` is known. The limit on a tool result is
    `max_tool_result_tokens`, but at most a quarter of the window without system prompt, tools, reserve and
    margin.
    """
    context = settings.context
    window = max(window_of(model, settings, catalog, learned, served=served), 1)
    max_output = output_limit(model, settings, catalog)
    floor = _count_once(system, model) + _count_once(json.dumps(list(tools)), model)
    truncations: dict[str, Truncation] = {
        name: tool.truncation for name, tool in context.tools.items() if tool.truncation
    }
    config = ContextConfig(
        **{
            **{item.name: getattr(context, item.name) for item in fields(ContextKeys)},
            "enabled": rolling,
            "max_context_tokens": window,
            "safety_margin": margin_for(settings, calibration),
            # thinking counts as output
            "reserved_output_tokens": context.reserved_output_tokens + _THINKING.get(effort, 0),
        },
        tools=truncations,
        prompt_cache=wire.prompt_cache(model),
        max_output_tokens=max_output,
        recall=_has(RECALL, tools),
        todo=_has(TODO, tools),
        notes=_has(NOTE_TOOL, tools),
        room=rolling,
        calibration=calibration,
    )
    # Neither the shrinking margin nor changing estimates may affect the limit: results stay as they were cut.
    room = window_budget(replace(config, safety_margin=context.safety_margin)).room
    quarter = (room - int(floor * calibration.shape)) // 4
    return replace(config, max_tool_result_tokens=max(min(context.max_tool_result_tokens, quarter), 1))


@lru_cache(maxsize=16)
def _count_once(text: str, model: str) -> int:
    """Count a text that is the same in every request."""
    return count_tokens(text, model)


def _has(name: str, tools: Sequence[JsonObject]) -> bool:
    return any(tool.get("function", {}).get("name") == name for tool in tools)


def margin_for(settings: Settings, calibration: Calibration) -> float:
    """Return M, the safety margin, as a share of the window; one that the user set does not shrink."""
    margin = settings.context.safety_margin
    is_set = settings.origins.get("context.safety_margin", "default") != "default"
    is_set = is_set or margin != ContextSettings().safety_margin
    return safety_margin(margin, is_set=is_set, replies=calibration.replies)
