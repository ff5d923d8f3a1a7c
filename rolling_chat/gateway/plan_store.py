"""Where plans are kept: in this process, and in the proxy's Redis for the others.

Every request keeps its plan under the fingerprint of all its messages. The next one looks for its longest
prefix that is known. Nothing that was said is stored: a plan holds indexes, sizes and hashes.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from rolling_chat.context import ContextPlan
from rolling_chat.gateway.fingerprints import Branch, size_of
from rolling_chat.messages import Json

LOG = logging.getLogger("rolling_chat.gateway")

_PREFIX = "rolling_chat:"
_MAX_PLANS = 10_000
_NEAR, _MOST = 8, 256  # how many prefixes are asked for at first, and then at most
_DAY = 86_400  # seconds


class Shared(Protocol):
    """What is used of the proxy's `RedisCache`."""

    async def async_batch_get_cache(self, key_list: list[str]) -> Mapping[str, Any]:
        """Return the values of keys."""
        ...

    async def async_set_cache(self, key: str, value: Any, **kwargs: Any) -> Any:
        """Store a value for `ttl` seconds."""
        ...


class Found(NamedTuple):
    """The newest plan of a conversation, and what is known of its model."""

    plan: ContextPlan | None
    length: int  # messages that it was made for
    model: Mapping[str, Json]


class PlanStore:
    """Keep plans and what models taught.

    At most 10,000 plans are in memory. What makes the next plan of a conversation fast holds its messages:
    that is kept for the newest ones, up to `warm` characters.
    """

    def __init__(self, *, plans: int = _MAX_PLANS, warm: int = 64_000_000, ttl: int = _DAY) -> None:
        self._most, self._most_warm, self._ttl = plans, warm, ttl
        self._plans: OrderedDict[str, ContextPlan] = OrderedDict()
        self._warm: OrderedDict[str, int] = OrderedDict()
        self._warmth = 0
        self._models: dict[str, Mapping[str, Json]] = {}

    async def find(self, branch: Branch, model: str, shared: Shared | None) -> Found:
        """Return the plan of the longest prefix that is known here or to the others."""
        ends = branch.ends()
        own = next((end for end in ends if branch.prefixes[end] in self._plans), 0)
        longer = [end for end in ends if end > own]
        if shared is not None and longer:
            for part in (longer[:_NEAR], longer[_NEAR:_MOST]):
                theirs = await self._ask(branch, part, model, shared) if part else 0
                if theirs:
                    own = theirs
                    break
        plan = self._plans.get(branch.prefixes[own]) if own else None
        return Found(plan, own, self._models.get(model, {}))

    async def keep(self, prefix: str, plan: ContextPlan, shared: Shared | None, *, after: str = "") -> None:
        """Keep the plan of a request, which goes on with that of the prefix `after`."""
        self._put(prefix, replace(plan, sent=None))
        if after != prefix:
            self._cool(after)
        await self._share(f"{_PREFIX}plan:{prefix}", plan.to_json(), shared)

    async def keep_model(self, model: str, known: Mapping[str, Json], shared: Shared | None) -> None:
        """Keep what a model taught."""
        self._models[model] = known
        await self._share(f"{_PREFIX}model:{model}", known, shared)

    def model(self, model: str) -> Mapping[str, Json]:
        """Return what is known of a model here."""
        return self._models.get(model, {})

    def _put(self, prefix: str, plan: ContextPlan) -> None:
        self._cool(prefix)
        self._plans[prefix] = plan
        self._plans.move_to_end(prefix)
        if plan.index is not None:
            self._warm[prefix] = sum(size_of(item.message) for item in plan.index.items)
            self._warmth += self._warm[prefix]
        while len(self._plans) > self._most:
            oldest = next(iter(self._plans))
            self._cool(oldest)
            del self._plans[oldest]
        while self._warmth > self._most_warm:
            self._cool(next(iter(self._warm)))

    def _cool(self, prefix: str) -> None:
        """Let the messages of a conversation go; its decisions stay."""
        warmth = self._warm.pop(prefix, None)
        if warmth is not None:
            self._warmth -= warmth
            self._plans[prefix] = replace(self._plans[prefix], index=None)

    async def _ask(self, branch: Branch, ends: Sequence[int], model: str, shared: Shared) -> int:
        """Fetch the plan of the first of `ends` that others know, and return its length; 0 for none."""
        keys = {end: f"{_PREFIX}plan:{branch.prefixes[end]}" for end in ends}
        model_key = f"{_PREFIX}model:{model}"
        try:
            values = await shared.async_batch_get_cache([model_key, *keys.values()])
        except Exception as error:  # whatever the proxy's Redis raises: it may be gone
            LOG.warning("Plans of other workers cannot be read (%s): each worker plans by itself.", error)
            return 0
        known = _read(values.get(model_key))
        if isinstance(known, dict):
            self._models[model] = known
        for end, key in keys.items():
            plan = _plan_of(values.get(key))
            if plan is not None:
                self._put(branch.prefixes[end], plan)
                return end
        return 0

    async def _share(self, key: str, value: Mapping[str, Json], shared: Shared | None) -> None:
        if shared is None:
            return
        try:
            await shared.async_set_cache(key, json.dumps(value), ttl=self._ttl)
        except Exception as error:  # whatever the proxy's Redis raises: it may be gone
            LOG.warning("Plans cannot be shared with other workers (%s).", error)


def _read(value: Any) -> Any:
    """A stored value; the proxy's cache may have read its JSON already."""
    if isinstance(value, str | bytes):
        try:
            return json.loads(value)
        except ValueError:
            return None
    return value


def _plan_of(value: Any) -> ContextPlan | None:
    """Read a plan; None for what is none, whoever wrote it."""
    try:
        return ContextPlan.from_json(_read(value))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
