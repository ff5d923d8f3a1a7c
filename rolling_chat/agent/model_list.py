"""The models to choose from: reachable ones first, then one of each other provider."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rolling_chat.agent.request.model_limits import is_window_assumed, window_of
from rolling_chat.messages import Json
from rolling_chat.providers.known_providers import KNOWN_PROVIDERS
from rolling_chat.providers.model_ref import find_provider
from rolling_chat.providers.offline import OFFLINE_MODEL, offline_window
from rolling_chat.settings.catalog import NO_PRICES, ModelCatalog, ModelInfo, Prices
from rolling_chat.settings.schema import Settings

if TYPE_CHECKING:  # it imports an HTTP client, which is not needed before the first paint
    from rolling_chat.providers.local_servers import FoundServer

_DEMO_MODELS = (OFFLINE_MODEL, f"{OFFLINE_MODEL}-32k")
_DATED = re.compile(r"[-@]\d{4}-?\d{2}-?\d{2}(?:-v\d+:\d+)?$")


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model, how it is reached, and its figures with their sources.

    Sizes are in tokens, 0 if unknown; an ability is None if unknown. `needs` names a missing key.
    """

    name: str
    reached_by: str = ""
    needs: str = ""
    window: int = 0
    window_from: str = ""
    max_output: int = 0
    prices: Prices = NO_PRICES
    prices_from: str = ""
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the model as plain JSON values: null if unknown, prices in dollars per million tokens."""
        return {
            "name": self.name,
            "reached_by": self.reached_by or None,
            "needs": self.needs or None,
            "window": self.window or None,
            "window_from": self.window_from or None,
            "max_output": self.max_output or None,
            "input_price": per_million(self.prices.input),
            "output_price": per_million(self.prices.output),
            "cache_read_price": per_million(self.prices.cache_read),
            "cache_write_price": per_million(self.prices.cache_write),
            "prices_from": self.prices_from or None,
            "tools": self.tools,
            "vision": self.vision,
            "reasoning": self.reasoning,
        }


def per_million(price: float | None) -> float | None:
    """Return the price per million tokens for a price per token."""
    return None if price is None else round(price * 1_000_000, 6)


def list_all_models(
    settings: Settings, environ: Mapping[str, str], catalog: ModelCatalog, servers: Sequence[FoundServer]
) -> list[ListedModel]:
    """List the models of the settings, of `servers` and of providers with a key, then those that need a key.

    If the catalog has a model both with and without a date in its name, the one without is listed.
    """
    listing = _Listing(settings, environ, catalog)
    found = {one.name: one for one in listing.reachable(servers)}
    for provider in KNOWN_PROVIDERS:
        name = provider.first_model
        if name and provider.keys and name not in found and not provider.key_in(environ):
            found[name] = listing.of_catalog(name, needs=provider.keys[0])
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Listing:
    settings: Settings
    environ: Mapping[str, str]
    catalog: ModelCatalog

    def reachable(self, servers: Sequence[FoundServer]) -> Iterator[ListedModel]:
        """Yield the models that a request can be sent to now."""
        for name in self.settings.models:
            yield self.of_catalog(name, reached_by="settings")
        for server in servers:
            for one in server.models:
                yield replace(
                    self.of_catalog(one.name, reached_by=f"{server.name} at {server.address}"),
                    window=one.window, window_from=one.source if one.window else "",
                    max_output=one.max_output, prices=NO_PRICES, prices_from="",
                )  # fmt: skip
        names = frozenset(self.catalog.names())
        for name in self.catalog.names():
            if (key := self._key_for(name)) and not (_DATED.search(name) and _DATED.sub("", name) in names):
                yield self.of_catalog(name, reached_by=key)
        for name in _DEMO_MODELS:
            yield ListedModel(
                name, reached_by="built in", window=offline_window(name) or 0, window_from="built in",
                prices=Prices(0.0, 0.0), prices_from="built in", tools=True, vision=False, reasoning=False,
            )  # fmt: skip

    def of_catalog(self, name: str, *, reached_by: str = "", needs: str = "") -> ListedModel:
        """Return a model with its figures from settings and catalog."""
        info = self.catalog.lookup(name)
        is_known = not is_window_assumed(name, self.settings, self.catalog)
        is_set = self.settings.for_model(name).max_input_tokens > 0
        prices = info.prices if info else NO_PRICES
        return ListedModel(
            name, reached_by, needs,
            window=window_of(name, self.settings, self.catalog) if is_known else 0,
            window_from=_origin(info, is_set=is_set) if is_known else "",
            max_output=info.max_output_tokens if info else 0,
            prices=prices, prices_from="catalog" if prices != NO_PRICES else "",
            tools=info.supports_tools if info else None,
            vision=info.supports_vision if info else None,
            reasoning=info.supports_reasoning if info else None,
        )  # fmt: skip

    def _key_for(self, name: str) -> str:
        provider = find_provider(name)
        if provider is None:
            return ""
        return next((key for key in provider.keys if self.environ.get(key, "").strip()), "")


def _origin(info: ModelInfo | None, *, is_set: bool) -> str:
    if is_set:
        return "settings"
    return "catalog" if info else "built-in table"
