"""Where plans are kept: in this process, and in the proxy's Redis for the others.

Every request keeps its plan under the fingerprint of all its messages. The next one looks for its longest
prefix that is known. Nothing that was said is stored: a plan holds indexes, sizes and hashes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from rolling_chat.context import ContextPlan
from rolling_chat.messages import Json
from rolling_chat.recognition.fingerprints import Branch
from rolling_chat.recognition.plan_memory import PlanMemory

LOG = logging.getLogger("rolling_chat.gateway")

_PREFIX = "rolling_chat:"
_NEAR, _MOST = 8, 256  # how many prefixes are asked for at first, and then at most
_DAY = 86_400  # seconds
_STOOD_STILL = 1.5  # of our patience: a timer that comes so late says that this process stood still


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
    """Keep plans and what models taught: here, and in what the workers share.

    A request waits `patience` seconds for that at most. After a fault it is left alone for `rest` seconds.
    """

    def __init__(
        self,
        memory: PlanMemory | None = None,
        *,
        patience: float = 1.0,
        rest: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plans = memory or PlanMemory()
        self._patience, self._rest, self._clock = patience, rest, clock
        self._rests_until = clock()
        self._models: dict[str, Mapping[str, Json]] = {}

    async def find(self, branch: Branch, model: str, shared: Shared | None) -> Found:
        """Return the plan of the longest prefix that is known here or to the others."""
        ends = branch.ends()
        own = self._plans.longest(branch, ends)
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
        self._plans.put(prefix, plan, after=after)
        await self._share(f"{_PREFIX}plan:{prefix}", plan.to_json(), shared)

    async def keep_model(self, model: str, known: Mapping[str, Json], shared: Shared | None) -> None:
        """Keep what a model taught."""
        self._models[model] = known
        await self._share(_model_key(model), known, shared)

    async def model(self, model: str, shared: Shared | None) -> Mapping[str, Json]:
        """Return what is known of a model, here and to the others: whoever adds to it must lose nothing."""
        if shared is not None:
            self._take_model(model, await self._use(shared.async_batch_get_cache, [_model_key(model)]))
        return self._models.get(model, {})

    async def _ask(self, branch: Branch, ends: Sequence[int], model: str, shared: Shared) -> int:
        """Fetch the plan of the first of `ends` that others know, and return its length; 0 for none."""
        keys = {end: f"{_PREFIX}plan:{branch.prefixes[end]}" for end in ends}
        values = await self._use(shared.async_batch_get_cache, [_model_key(model), *keys.values()])
        if not isinstance(values, Mapping):
            return 0
        self._take_model(model, values)
        for end, key in keys.items():
            plan = _plan_of(values.get(key))
            if plan is not None:
                self._plans.put(branch.prefixes[end], plan)
                return end
        return 0

    def _take_model(self, model: str, values: object) -> None:
        known = _read(values.get(_model_key(model))) if isinstance(values, Mapping) else None
        if isinstance(known, dict):
            self._models[model] = known

    async def _share(self, key: str, value: Mapping[str, Json], shared: Shared | None) -> None:
        if shared is not None:
            await self._use(partial(shared.async_set_cache, ttl=_DAY), key, json.dumps(value))

    async def _use(self, call: Callable[..., Awaitable[Any]], *given: Any) -> Any:
        """Return what a call of the shared store returns, None if it fails or hangs.

        While this process stands still no answer is heard: that is not held against the store.
        """
        if self._clock() < self._rests_until:
            return None
        for is_last in (False, True):
            began = self._clock()
            try:
                return await asyncio.wait_for(call(*given), self._patience)
            except Exception as error:  # whatever the proxy's Redis raises: it may be gone
                stood_still = self._clock() - began > _STOOD_STILL * self._patience
                if isinstance(error, TimeoutError) and stood_still and not is_last:
                    continue
                self._rests_until = self._clock() + self._rest
                LOG.warning("Plans are not shared, each worker plans by itself: %r.", error)
                break
        return None


def _model_key(model: str) -> str:
    return f"{_PREFIX}model:{model}"


def _read(value: Any) -> Any:
    """A stored value; the proxy's cache may have read its JSON already."""
    if isinstance(value, str | bytes):
        try:
            return json.loads(value)
        except (RecursionError, ValueError):
            return None
    return value


def _plan_of(value: Any) -> ContextPlan | None:
    """Read a plan; None for what is none, whoever wrote it."""
    try:
        plan = ContextPlan.from_json(_read(value))
        if plan is None or _has_words(plan):
            return None
        plan.to_json()  # what cannot be stored again is none either
        return plan
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None


def _has_words(plan: ContextPlan) -> bool:
    """Whether a plan would add words to a prompt: one of the gateway's never does."""
    notice = plan.decisions.notice
    return bool(plan.summary or plan.pins.notes or notice.notes or notice.hidden_notes or notice.names)
