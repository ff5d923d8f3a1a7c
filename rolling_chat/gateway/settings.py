"""The gateway's settings: from the proxy's YAML, the model, the team and the key."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from rolling_chat.context import ContextConfig
from rolling_chat.context_keys import CacheTtl, ContextKeys
from rolling_chat.setting_rules import MAX_NUMBER, Rule

NAME: Final = "rolling_chat"
"""The name of the table in `litellm_settings`, a model's `model_info`, a team's and a key's metadata."""

LOG = logging.getLogger("rolling_chat.gateway")

# Summaries need a second model, and names a tool that reads them back; a plan must not hold what was said.
_LEFT_OUT = frozenset({"enabled", "summarize", "summary_model", "usage_threshold", "omitted_names"})
_PLANNED = frozenset(item.name for item in fields(ContextKeys)) - _LEFT_OUT


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


def read_settings(tables: Iterable[object]) -> GatewaySettings:
    """Merge tables of settings, the later ones first in force; log and leave out what cannot be used."""
    settings = DEFAULTS
    for table in tables:
        if table is None:
            continue
        if not isinstance(table, Mapping):
            _warn("the table", "a table of settings", table)
            continue
        for name, value in table.items():
            settings = _with(settings, str(name), value)
    return settings


def _with(settings: GatewaySettings, name: str, value: Any) -> GatewaySettings:
    if name in _OWN:
        rule = _OWN[name]
        if type(value) is not rule.kind or (rule.choices and value not in rule.choices):
            _warn(name, " or ".join(rule.choices) or "true or false", value)
            return settings
        own: dict[str, Any] = {name: value}
        return replace(settings, **own)
    if name not in _PLANNED:
        LOG.warning("Unknown setting %s.%s is ignored: see the README for those there are.", NAME, name)
        return settings
    try:
        planned: dict[str, Any] = {name: _number(value)}
        config = replace(settings.config, **planned)
    except (TypeError, ValueError) as error:
        LOG.warning("Setting %s is ignored: %s.", NAME, error)
        return settings
    return replace(settings, config=config, sets_margin=settings.sets_margin or name == "safety_margin")


def _number(value: Any) -> Any:
    """A share of 1 is written as an integer, too; a truth value is no number."""
    if isinstance(value, bool):
        raise TypeError(f"{value!r} is no number and no word")
    return value


def _warn(name: str, wanted: str, value: object) -> None:
    LOG.warning("Setting %s.%s is ignored: it takes %s, not %.40r.", NAME, name, wanted, value)
