"""The model catalog: windows, abilities and prices of models, by name."""

from __future__ import annotations

import difflib
import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rolling_chat.context_keys import CacheTtl
from rolling_chat.messages import Json, JsonObject
from rolling_chat.settings.catalog_files import TEXT_MODES, newest_catalog

# two names of the same server (litellm uses the first)
_SAME_SERVER = {"ollama_chat": "ollama"}
# the suffixes of the names of prices for long prompts, by the tokens above which they apply
_LONG = {tokens: f"_above_{tokens // 1000}k_tokens" for tokens in (128_000, 200_000, 272_000)}
_INVENTORIES = ("bedrock", "azure", "oci", "sagemaker")


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in US dollars per token; None if unknown."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_hour: float | None = None

    def write(self, ttl: CacheTtl) -> float | None:
        """Return the price of input that is written to the cache for `ttl`.

        If it is unknown, it is that of other input, or twice that for an hour.
        """
        if ttl == "5m" or self.input is None:
            return self.input if self.cache_write is None else self.cache_write
        return 2 * self.input if self.cache_write_hour is None else self.cache_write_hour


NO_PRICES = Prices()


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model in the catalog, with its window, limits and prices.

    Sizes are in tokens, 0 if unknown. `name` is its name in the table. `long_prices` apply to requests with a
    prompt of more than `long_above` tokens. There are no prices if the figures are those of another provider
    than the one asked for.
    """

    name: str
    provider: str
    max_input_tokens: int = 0
    max_output_tokens: int = 0
    supports_tools: bool = False
    supports_vision: bool = False
    supports_reasoning: bool = False
    prompt_cache: bool = False
    prices: Prices = NO_PRICES
    long_prices: Prices = NO_PRICES
    long_above: int = 0

    def prices_of(self, prompt_tokens: int) -> Prices:
        """Return the prices of a request with a prompt of that many tokens."""
        return self.long_prices if self.long_above and prompt_tokens > self.long_above else self.prices


class ModelCatalog:
    """A catalog of known models by name.

    `table` is in litellm's form, or a function that reads one on first use; that takes 15 ms, which a start
    with the offline model does not need.
    """

    def __init__(self, table: Mapping[str, JsonObject] | Callable[[], Mapping[str, JsonObject]]) -> None:
        self._source = table

    @functools.cached_property
    def _table(self) -> Mapping[str, JsonObject]:
        table = self._source() if callable(self._source) else self._source
        return {
            name: entry
            for name, entry in table.items()
            if isinstance(entry, Mapping) and str(entry.get("mode")) in TEXT_MODES
        }

    def lookup(self, model: str) -> ModelInfo | None:
        """Return the catalog's entry for `model`; None if there is none.

        It tries, in this order: the name itself; the name without provider prefixes, from the left, as used
        by routers (openrouter/anthropic/…); the same without a tag (`:8b`, `@latest`) and with dots for
        dashes; the same model of any provider, with the smallest window of all.
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
        """Return up to `n` known names that are most similar to `model`, best first.

        They are compared without provider prefixes. If several providers have a model, the name with the same
        provider comes first, then the name without one.
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
        """Return the names of all chat models, sorted."""
        return self._names

    @functools.cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, entry in self._table.items() if entry["mode"] == "chat"))

    @functools.cached_property
    def _plain_names(self) -> Mapping[str, list[str]]:
        """The names that users type, by their normalized last part, without the inventory names of clouds."""
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
            supports_vision=entry.get("supports_vision") is True,
            supports_reasoning=entry.get("supports_reasoning") is True,
            prompt_cache=entry.get("supports_prompt_caching") is True,
        )
        provider = asked.partition("/")[0]
        if name == asked or _SAME_SERVER.get(provider, provider) == info.provider:
            above = next((size for size in _LONG if f"input_cost_per_token{_LONG[size]}" in entry), 0)
            long = _prices(entry, _LONG[above]) if above else NO_PRICES
            return replace(info, prices=_prices(entry), long_prices=long, long_above=above)
        return info


@functools.cache
def load_catalog(fetched: Path | None = None) -> ModelCatalog:
    """Return the model catalog, which is read on first use: the packaged file, or a newer one at `fetched`.

    If no table can be read, the catalog is empty, and the log has the reason.
    """
    return ModelCatalog(lambda: newest_catalog(fetched).models)


def _prices(entry: JsonObject, tier: str = "") -> Prices:
    """Return the prices of an entry or one of its tiers, which has the usual prices by default."""

    def price(name: str) -> float | None:
        return _cost(entry.get(f"{name}{tier}", entry.get(name)))

    return Prices(
        price("input_cost_per_token"),
        price("output_cost_per_token"),
        price("cache_read_input_token_cost"),
        price("cache_creation_input_token_cost"),
        _cost(entry.get("cache_creation_input_token_cost_above_1hr")),
    )


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
