"""The provider's cache of one session's prompt: how long it lives, and why it was missed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rolling_chat.agent.request.builder import PlannedRequest
from rolling_chat.agent.request.cache_misses import (
    AnsweredPrompt,
    CacheMiss,
    MissCause,
    PromptPrefix,
    find_cause,
    is_expired,
    missed_tokens,
)
from rolling_chat.agent.request.model_limits import cache_ttl_of
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.agent.request.setup import RequestSetup
from rolling_chat.agent.runtime import Runtime
from rolling_chat.context_keys import CacheTtl
from rolling_chat.messages import Usage
from rolling_chat.providers.cache_rules import SHORTEST, CacheRule, cache_rule
from rolling_chat.sessions.records import RequestRecord, StoreError

_SPARE = 60.0  # seconds that a cache must have left to serve a request that is yet to be sent


@dataclass(frozen=True, slots=True)
class CacheStatus:
    """The state of the provider's cache: `seconds_left` until it expires, 0 once it has.

    `tokens` is how much of the last prompt is in it, or was.
    """

    seconds_left: float
    tokens: int


class PromptCache:
    """The provider's cache of one session, inferred from its rules and its reports.

    For a resumed session, `read` reads the last prompt and its time from the store.
    """

    def __init__(self, runtime: Runtime, setup: RequestSetup, session_id: str) -> None:
        self._runtime = runtime
        self._setup = setup
        self._session_id = session_id
        self._has_read = False
        self._newest: AnsweredPrompt | None = None  # by any model
        self._answered: dict[tuple[str, str | None], AnsweredPrompt | None] = {}

    @property
    def rule(self) -> CacheRule | None:
        """The rule by which the model's prompts are cached; None if no cache is known."""
        return self._rule_of(self._setup.model)

    @property
    def is_cold(self) -> bool:
        """Whether the provider no longer has, or never had, this session's prompt in its cache."""
        last, rule = self._last, self.rule
        lifetime = rule.seconds if rule is not None and rule.seconds else SHORTEST
        return last is None or self._runtime.clock() - last.at > lifetime

    @property
    def status(self) -> CacheStatus | None:
        """The state of the cache; None if that is unknown or nothing was cached."""
        last, rule = self._last, self.rule
        if last is None or rule is None or rule.seconds is None:
            return None
        tokens = last.cached_tokens(rule)
        left = last.at + rule.seconds - self._runtime.clock()
        return CacheStatus(max(left, 0.0), tokens) if tokens else None

    @property
    def is_warm(self) -> bool:
        """Whether the provider has the last prompt in its cache, with time to spare."""
        status = self.status
        return status is not None and status.seconds_left > _SPARE

    @property
    def last_prefix(self) -> PromptPrefix | None:
        """The prefix of the last prompt, for the provider's cache; None before this process has sent one."""
        return self._last.prefix if self._last is not None else None

    def refresh(self, at: float) -> None:
        """Note that the last prompt was read from the cache again, `at` seconds since the epoch."""
        target, last = (self._setup.model, self._setup.address), self._last
        if last is not None:
            self._answered[target] = replace(last, at=max(at, last.at))

    def warm_price(self, planned: PlannedRequest) -> float | None:
        """Return the input cost, in US dollars, of a request that begins like the last; None if unknown."""
        last, rule = self._last, self.rule
        info = self._runtime.catalog.lookup(self._setup.model)
        if last is None or last.prefix is None or not last.prefix.size or rule is None or info is None:
            return None
        scale = last.usage.input_tokens / last.prefix.size
        whole = int(scale * planned.prefix.size)
        read = min(int(scale * last.prefix.common_with(planned.prefix)), last.cached_tokens(rule))
        price, rest = info.prices_of(whole).cache_read, self.fresh_price(whole - read)
        return None if price is None or rest is None else read * price + rest

    def fresh_price(self, tokens: int) -> float | None:
        """Return the cost, in US dollars, of `tokens` that are not read from the cache; None if unknown."""
        info, rule = self._runtime.catalog.lookup(self._setup.model), self.rule
        if info is None or rule is None:
            return None
        prices = info.prices_of(tokens)
        price = prices.write(self._ttl_of(self._setup.model)) if rule.marked else prices.input
        return None if price is None else tokens * price

    def _rule_of(self, model: str) -> CacheRule | None:
        return cache_rule(model, self._ttl_of(model))

    def _ttl_of(self, model: str) -> CacheTtl:
        return cache_ttl_of(model, self._runtime.settings, self._runtime.catalog)

    def judge(self, planned: PlannedRequest, usage: Usage, at: float) -> CacheMiss | None:
        """Remember an answered request; return why the provider's cache did not serve it, None if it did.

        `at` is when it was sent, in seconds since the epoch. The first request of a session misses nothing.
        """
        model, rule = planned.request.model, self._rule_of(planned.request.model)
        target, now = (model, self._setup.address), AnsweredPrompt(at, usage, planned.prefix)
        before, newest = self._answered_by(target), self._newest
        self._answered[target], self._newest = now, now
        if rule is None or not usage.input_tokens:
            return None
        if before is not None:
            miss = self._explain(now, before, rule)
            # another model answered in between, and the change of model made a new plan
            if miss is not None and miss.cause is MissCause.TRIMMED and newest and newest.at != before.at:
                return replace(miss, cause=MissCause.MODEL)
            return miss
        if newest is None:
            return None
        # another model's cache is of no use here: everything that both were sent has to be read
        shared = replace(newest, usage=Usage(input_tokens=usage.input_tokens))
        tokens = missed_tokens(now, shared, replace(rule, marked=False))
        return CacheMiss(MissCause.MODEL, tokens) if tokens else None

    def _explain(self, now: AnsweredPrompt, before: AnsweredPrompt, rule: CacheRule) -> CacheMiss | None:
        if not missed_tokens(now, before, rule):
            return None
        if before.prefix is None and not is_expired(now, before, rule):
            before = replace(before, prefix=self._stored_prefix(now))
        tokens = missed_tokens(now, before, rule)
        return CacheMiss(find_cause(now, before, rule), tokens) if tokens else None

    @property
    def _last(self) -> AnsweredPrompt | None:
        """The prompt that the model answered last in this session, as far as that was read."""
        return self._answered.get((self._setup.model, self._setup.address))

    def _answered_by(self, target: tuple[str, str | None]) -> AnsweredPrompt | None:
        if not self._has_read:
            newest = self._runtime.store.last_answer(self._session_id)
            self._newest, self._has_read = _stored(newest), True
            if newest is None or newest.model == target[0]:
                self._answered.setdefault(target, self._newest)
        if target not in self._answered:
            record = self._runtime.store.last_answer(self._session_id, target[0])
            self._answered[target] = _stored(record)
        return self._answered[target]

    def read(self) -> None:
        """Read the prompt that the model answered last from the store, unless it is known."""
        self._answered_by((self._setup.model, self._setup.address))

    def _stored_prefix(self, now: AnsweredPrompt) -> PromptPrefix | None:
        """Return the prefix of the stored request before `now`; None if that cannot be rebuilt."""
        store, mine = self._runtime.store, now.prefix
        record = store.last_answer(self._session_id, self._setup.model)
        if record is None or mine is None:
            return None
        try:
            rebuilt = rebuild_request(store, record).prefix
        except StoreError:
            return None
        return replace(rebuilt, tool_choice=mine.tool_choice, effort=mine.effort)


def _stored(record: RequestRecord | None) -> AnsweredPrompt | None:
    return None if record is None else AnsweredPrompt(record.created_at, record.usage)
