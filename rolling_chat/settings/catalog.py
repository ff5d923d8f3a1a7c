"""What is known of the models: litellm's own table, read as data and without importing litellm."""

from __future__ import annotations

import difflib
import functools
import importlib.util
import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rolling_chat.messages import Json, JsonObject

_log = logging.getLogger("rolling_chat.settings.catalog")
_TABLE_FILE = "model_prices_and_context_window_backup.json"
# "responses" and "completion" models are reached by the same call, through litellm's bridges
_TEXT_MODES = frozenset({"chat", "responses", "completion"})
# two paths to the same server (litellm names its models by the first)
_SAME_SERVER = {"ollama_chat": "ollama"}
_INVENTORIES = ("bedrock", "azure", "oci", "sagemaker")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model in the catalog: its window, its limits, its prices.

    Sizes in tokens, 0 where unknown; costs in US dollars a token.

    `name` is the table's name for it. A cost is None where nobody knows it, and where the
    figures were found under another provider than the one asked for.
    """

    name: str
    provider: str
    max_input_tokens: int = 0
    max_output_tokens: int = 0
    supports_tools: bool = False
    prompt_cache: bool = False
    input_cost: float | None = None
    output_cost: float | None = None
    cache_read_cost: float | None = None
    cache_write_cost: float | None = None


class ModelCatalog:
    """A catalog of known models by name.

    `table` is litellm's, or reads it when something is first asked of it: that takes 30 ms, which a
    start with the offline model can do without.
    """

    def __init__(self, table: Mapping[str, JsonObject] | Callable[[], Mapping[str, JsonObject]]) -> None:
        self._source = table

    @functools.cached_property
    def _table(self) -> Mapping[str, JsonObject]:
        table = self._source() if callable(self._source) else self._source
        return {
            name: entry
            for name, entry in table.items()
            if isinstance(entry, Mapping) and str(entry.get("mode")) in _TEXT_MODES
        }

    def lookup(self, model: str) -> ModelInfo | None:
        """Return what the catalog says about `model`; None if it does not know it.

        Tried in turn: the name itself; the name without provider prefixes, from the left, as
        routers give them (openrouter/anthropic/…); the same without a tag (`:8b`, `@latest`) and
        with dots for dashes; the same model under any provider, the smallest window of them all.
        """
        name = model.strip()
        if not name:
            return None
        for spelling in _spellings(name):
            if spelling in self._table:
                return self._info(spelling, asked=name)
        for spelling in _spellings(name):
            found = self._by_last_part.get(_normal(spelling.rpartition("/")[2]))
            if found:
                return self._info(found, asked=name)
        return None

    def nearest(self, model: str, n: int = 3) -> list[str]:
        """Return the `n` known names most like `model`, the best first; perhaps fewer.

        Compared without provider prefixes; where several providers have a model, the name under
        the provider asked for comes first, then the name that stands alone.
        """
        prefix, _, last = model.strip().lower()[:200].rpartition("/")
        if not last or n < 1:
            return []
        last = _normal(last)
        close = difflib.get_close_matches(last, self._plain_names, n=n, cutoff=0.6)
        within = sorted((name for name in self._plain_names if last in name), key=len)
        found = dict.fromkeys([*close, *within])
        provider = prefix.partition("/")[0]
        return [self._name_under(provider, name) for name in list(found)[:n]]

    def names(self) -> Sequence[str]:
        """Return every chat model's name, in order."""
        return self._names

    @functools.cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, entry in self._table.items() if entry["mode"] == "chat"))

    @functools.cached_property
    def _plain_names(self) -> Mapping[str, list[str]]:
        """The names people type, by their normal last part; a cloud's inventory names are left out."""
        found: dict[str, list[str]] = {}
        for name in self._names:
            if not str(self._table[name].get("litellm_provider") or "").startswith(_INVENTORIES):
                found.setdefault(_normal(name.rpartition("/")[2]), []).append(name)
        return found

    def _name_under(self, provider: str, last: str) -> str:
        def rank(name: str) -> tuple[bool, int, int]:
            own = provider != "" and provider in (
                name.partition("/")[0],
                self._table[name].get("litellm_provider"),
            )
            return (not own, name.count("/"), len(name))

        return min(self._plain_names[last], key=rank)

    @functools.cached_property
    def _by_last_part(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for name in self._names:
            last = _normal(name.rpartition("/")[2])
            window = _tokens(self._table[name].get("max_input_tokens"))
            known = found.get(last)
            smaller = known is None or 0 < window < _window_or_most(self._table[known])
            if smaller and (window or known is None):
                found[last] = name
        return found

    def _info(self, name: str, *, asked: str) -> ModelInfo:
        entry = self._table[name]
        info = ModelInfo(
            name=name,
            provider=str(entry.get("litellm_provider") or ""),
            max_input_tokens=_tokens(entry.get("max_input_tokens")),
            max_output_tokens=_tokens(entry.get("max_output_tokens")),
            supports_tools=entry.get("supports_function_calling") is True,
            prompt_cache=entry.get("supports_prompt_caching") is True,
            input_cost=_cost(entry.get("input_cost_per_token")),
            output_cost=_cost(entry.get("output_cost_per_token")),
            cache_read_cost=_cost(entry.get("cache_read_input_token_cost")),
            cache_write_cost=_cost(entry.get("cache_creation_input_token_cost")),
        )
        provider = asked.partition("/")[0]
        if name == asked or _SAME_SERVER.get(provider, provider) == info.provider:
            return info
        return replace(info, input_cost=None, output_cost=None, cache_read_cost=None, cache_write_cost=None)


@functools.cache
def load_catalog() -> ModelCatalog:
    """Load the model catalog from litellm's table in its package folder, once and when first needed.

    It is empty, and a line in the log says why, where there is no table to be read.
    """
    return ModelCatalog(_read_table)


def _read_table() -> Mapping[str, JsonObject]:
    path = table_path()
    if path is None:
        _log.warning("no model table: litellm is not installed")
        return {}
    try:
        table = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("no model table: %s: %s", path, error)
        return {}
    return table if isinstance(table, dict) else {}


def table_path() -> Path | None:
    """Find the path of litellm's model table, or None; litellm is not imported."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / _TABLE_FILE


def _spellings(name: str) -> Iterator[str]:
    prefix, slash, rest = name.partition("/")
    if slash and prefix in _SAME_SERVER:
        yield name
        name = f"{_SAME_SERVER[prefix]}/{rest}"
    bare = re.sub(r"[:@][^/]*$", "", name)
    for whole in dict.fromkeys((name, bare)):
        parts = whole.split("/")
        for start in range(len(parts)):
            spelling = "/".join(parts[start:])
            yield spelling
            yield spelling.lower()
            yield spelling.lower().replace(".", "-")


def _normal(name: str) -> str:
    return name.lower().replace(".", "-").replace("_", "-")


def _tokens(value: Json) -> int:
    return int(value) if isinstance(value, int | float) and math.isfinite(value) and value > 0 else 0


def _window_or_most(entry: JsonObject) -> float:
    return _tokens(entry.get("max_input_tokens")) or math.inf


def _cost(value: Json) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if usable and value >= 0 else None
