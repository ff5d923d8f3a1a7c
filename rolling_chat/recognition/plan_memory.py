"""Keep the plans of many conversations in memory, by the fingerprint of the messages they were made for."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace

from rolling_chat.context import ContextPlan
from rolling_chat.recognition.fingerprints import Branch, size_of


class PlanMemory:
    """An in-memory store of the newest `plans` plans.

    A plan's index makes the next plan fast but references the conversation's messages. It is kept for the
    newest plans, up to `warm` characters. Thread-safe.
    """

    def __init__(self, plans: int = 10_000, warm: int = 64_000_000) -> None:
        self._max_plans, self._max_warmth = plans, warm
        self._plans: OrderedDict[str, ContextPlan] = OrderedDict()
        self._warm: OrderedDict[str, int] = OrderedDict()
        self._warmth = 0
        self._lock = threading.Lock()

    def longest(self, branch: Branch, ends: Iterable[int]) -> int:
        """Return the first of `ends` whose prefix has a plan; 0 if none has."""
        return next((end for end in ends if branch.prefixes[end] in self._plans), 0)

    def get(self, prefix: str) -> ContextPlan | None:
        """Return the plan of a prefix, if any."""
        return self._plans.get(prefix)

    def put(self, prefix: str, plan: ContextPlan, *, after: str = "") -> None:
        """Store the plan of a prefix, which continues the plan of the prefix `after`."""
        with self._lock:
            self._put(prefix, replace(plan, sent=None))
            if after != prefix:
                self._drop_index(after)

    def _put(self, prefix: str, plan: ContextPlan) -> None:
        self._drop_index(prefix)
        self._plans[prefix] = plan
        self._plans.move_to_end(prefix)
        if plan.index is not None:
            self._warm[prefix] = sum(size_of(item.message) for item in plan.index.items)
            self._warmth += self._warm[prefix]
        while len(self._plans) > self._max_plans:
            oldest = next(iter(self._plans))
            self._drop_index(oldest)
            del self._plans[oldest]
        while self._warmth > self._max_warmth:
            self._drop_index(next(iter(self._warm)))

    def _drop_index(self, prefix: str) -> None:
        """Drop a plan's index, which references messages; its decisions stay."""
        warmth = self._warm.pop(prefix, None)
        if warmth is not None:
            self._warmth -= warmth
            self._plans[prefix] = replace(self._plans[prefix], index=None)
