"""The gateway's settings: from the proxy's YAML, the model, the team and the key."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from rolling_chat.context import ContextConfig
from rolling_chat.context_keys import CacheTtl, ContextKeys
from rolling_chat.setting_rules import MAX_NUMBER, Rule

NAME: Final = "rolling_chat"
"""The name of the table in `litellm_settings`, a model's `model_info`, a team's and a key's metadata."""

LOG = logging.getLogger("rolling_chat.gateway")

# Summaries need a second model, and names a tool that reads them back; a plan must not hold what was said.
_LEFT_OUT = frozenset({"enabled", "summarize", "summary_model", "usage_threshold", "omitted_names"})
_PLANNED: Mapping[str, Rule] = {
    item.name: item.metadata["rule"] for item in fields(ContextKeys) if item.name not in _LEFT_OUT
}


_UNTOUCHED: Final = ContextConfig(
    max_history_tokens=0,
    max_tool_result_tokens=MAX_NUMBER,
    tool_result_masking="steps",
    summarize="off",
)


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Hold what applies to one request.

    `config` is what the planner is given, before the model's own limits. A request that fits is not touched:
    so results are not capped and history may take the whole window, unless it is set.
    """

    enabled: bool = True
    cache_marks: bool = True
    cache_ttl: CacheTtl = "5m"
    headers: bool = True
    config: ContextConfig = _UNTOUCHED
    sets_margin: bool = False


DEFAULTS: Final = GatewaySettings()
_OWN: Mapping[str, Rule] = {
    "enabled": Rule(bool),
    "cache_marks": Rule(bool),
    "headers": Rule(bool),
    "cache_ttl": Rule(str, choices=("5m", "1h")),
}
_RULES: Mapping[str, Rule] = {**_PLANNED, **_OWN}
_SHOWN = 40  # characters of what is wrong


def read_settings(tables: Iterable[tuple[str, object]]) -> GatewaySettings:
    """Merge tables of settings, each with where it stands, the later ones first in force.

    Log and leave out what cannot be used.
    """
    settings = DEFAULTS
    for place, table in tables:
        if table is None:
            continue
        if not isinstance(table, Mapping):
            _tell(f"{NAME} in {place} is ignored: it takes a table of settings, not {_shown(table)}.")
            continue
        for name, value in table.items():
            try:
                settings = _with(settings, str(name), value)
            except ValueError as error:
                _tell(f"{NAME}.{_shown(str(name), is_name=True)} in {place} is ignored: {error}.")
    return settings


def _with(settings: GatewaySettings, name: str, value: Any) -> GatewaySettings:
    """Return settings with one more. Raises ValueError with what is wrong with it."""
    rule = _RULES.get(name)
    if rule is None:
        near = get_close_matches(name, _RULES, n=1)
        raise ValueError(f"there is no such setting{f', but {near[0]}' if near else ''}")
    try:
        checked = {name: rule.check(value)}
    except ValueError as error:
        raise ValueError(f"it takes {error}, not {_shown(value)}") from None
    if name in _OWN:
        return replace(settings, **checked)
    config = replace(settings.config, **checked)
    return replace(settings, config=config, sets_margin=settings.sets_margin or name == "safety_margin")


@lru_cache(maxsize=1_000)
def _tell(line: str) -> None:
    """Log a line once: most tables are read again beside those of another model or key."""
    LOG.warning("%s", line)


def _shown(value: object, *, is_name: bool = False) -> str:
    text = repr(value)[1:-1] if is_name else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
