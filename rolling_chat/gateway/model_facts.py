"""What the proxy knows of a model: its window, its tokenizer's name, its settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rolling_chat.context import get_context_limit
from rolling_chat.context.families import family_of
from rolling_chat.gateway.settings import NAME

_FRESH_SECONDS = 60.0
# What LiteLLM asks of a Claude that is not in its table: Anthropic's API wants a number.
_FILLED_IN = 4_096
_MARKED = frozenset({"anthropic", "bedrock", "vertex_ai", "azure_ai", "openrouter"})


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Hold what is known of the model that a client named.

    `name` says by which tokenizer to count, empty where several may answer. `window` and `max_output` are in
    tokens, `max_output` 0 if unknown. `asks` is how long an answer LiteLLM asks for where the client does not
    say, 0 if it asks for none. `marks` says that its provider takes marks for its prompt cache;
    `tables` are the settings of its deployments.
    """

    name: str
    window: int
    max_output: int = 0
    marks: bool = False
    asks: int = 0
    tables: tuple[object, ...] = ()


Deployments = Callable[[str, str | None], Sequence[Mapping[str, Any]]]
ModelInfo = Callable[[str], Mapping[str, Any]]


class ModelDirectory:
    """Look models up in the proxy's configuration and in LiteLLM's table; answers hold for a minute."""

    def __init__(
        self,
        deployments: Deployments | None = None,
        info: ModelInfo | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._deployments = deployments or _router_deployments
        self._info = info or _litellm_info
        self._clock = clock
        self._known: dict[tuple[str, str | None], tuple[float, ModelFacts]] = {}

    def facts(self, model: str, team: str | None = None) -> ModelFacts:
        """Return what is known of `model`; of several deployments the smallest window."""
        now = self._clock()
        known = self._known.get((model, team))
        if known is not None and now - known[0] < _FRESH_SECONDS:
            return known[1]
        if len(self._known) > 1_000:
            self._known.clear()
        rows = self._deployments(model, team) or [{"litellm_params": {"model": model}}]
        every = [self._of_one(model, row) for row in rows]
        smallest = min(every, key=lambda one: one.window)
        is_one = len({_tokenizer(one.name) for one in every}) == 1
        facts = ModelFacts(
            smallest.name if is_one else "",
            smallest.window,
            min((one.max_output for one in every if one.max_output), default=0),
            all(one.marks for one in every),
            max(one.asks for one in every),
            tuple(table for one in every for table in one.tables),
        )
        self._known[model, team] = now, facts
        return facts

    def _of_one(self, asked: str, row: Mapping[str, Any]) -> ModelFacts:
        params, own = row.get("litellm_params") or {}, row.get("model_info") or {}
        name = str(params.get("model") or asked)
        name = asked if "*" in name else name
        base = own.get("base_model") or params.get("base_model") or name
        info = self._info(base)
        window = _size(own.get("max_input_tokens")) or _size(info.get("max_input_tokens"))
        most = _size(own.get("max_output_tokens")) or _size(info.get("max_output_tokens"))
        filled = (_size(info.get("max_output_tokens")) or _FILLED_IN) if "claude" in name.lower() else 0
        asks = _size(params.get("max_tokens")) or filled
        table = own.get(NAME)
        return ModelFacts(
            base,
            window or get_context_limit(base),
            most,
            _takes_marks(name),
            asks,
            () if table is None else (table,),
        )


def _takes_marks(model: str) -> bool:
    """Whether LiteLLM carries cache marks to the provider; a server of another kind may refuse them."""
    provider, slash, _rest = model.lower().partition("/")
    return "claude" in model.lower() and (not slash or provider in _MARKED)


def _tokenizer(model: str) -> tuple[object, ...]:
    family = family_of(model)
    return family.encoding, family.factor, family.prior


def _size(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


def _router_deployments(model: str, team: str | None) -> Sequence[Mapping[str, Any]]:
    from litellm.proxy import proxy_server  # noqa: PLC0415 - only the running proxy has it

    router = proxy_server.llm_router
    return [] if router is None else [dict(row) for row in router.get_model_list(model, team) or ()]


def _litellm_info(model: str) -> Mapping[str, Any]:
    import litellm  # noqa: PLC0415 - slow to import

    try:
        return dict(litellm.get_model_info(model))
    except Exception:  # it raises Exception itself for a model that it does not know
        return {}
