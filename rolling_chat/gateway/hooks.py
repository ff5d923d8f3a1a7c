"""The callback that LiteLLM's proxy calls: before a request, and when its answer or refusal is known."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from litellm.integrations.custom_logger import CustomLogger
from typing_extensions import override

from rolling_chat.context import ContextOverflowError, ContextPlan, CountMemo, PromptReport, confirm_count
from rolling_chat.gateway.anthropic_wire import AnthropicWire
from rolling_chat.gateway.chat_wire import ChatWire
from rolling_chat.gateway.counters import Counters
from rolling_chat.gateway.model_facts import ModelDirectory, ModelFacts
from rolling_chat.gateway.plan_store import PlanStore, Shared
from rolling_chat.gateway.planning import ChatRequest, ModelKnowledge, PlannedChat, plan_chat
from rolling_chat.gateway.refusals import LEAST_SHARE, lesson_of, overflow_in, proxy_error, refusal_of
from rolling_chat.gateway.settings import NAME, GatewaySettings, read_settings
from rolling_chat.gateway.transcripts import Wire
from rolling_chat.gateway.usage import counted_prompt
from rolling_chat.recognition.fingerprints import Recognizer, seed_of, size_of

LOG = logging.getLogger("rolling_chat.gateway")

_WIRES: Final[Mapping[str, Wire]] = {
    "completion": ChatWire(),
    "acompletion": ChatWire(),
    "anthropic_messages": AnthropicWire(),
}
_MOST_OPEN = 512  # requests of which the end may still be told; each holds its messages
_MOST_READ = 1_000  # different tables of settings
_LARGE = 200_000  # characters: what takes longer to count than other requests should wait
# What has a request answered by whomever the client chooses: nothing is learned from that.
_OWN_ANSWERS = ("api_base", "base_url", "api_key", "user_config", "mock_response", "mock_tool_calls")
_UNREADABLE = (AttributeError, KeyError, RecursionError, TypeError, ValueError)


@dataclass(slots=True)
class _Open:
    """A request on its way: what its answer is to be counted with, and what its headers say."""

    headers: dict[str, str] | None
    prefix: str = ""
    model: str = ""
    plan: ContextPlan | None = None
    shared: Shared | None = None
    report: PromptReport | None = None
    answer: int = 0
    is_anthropic: bool = False
    asked: str = ""


class RollingWindow(CustomLogger):
    """Plan every chat request of every client by the window of the model that it asks for."""

    def __init__(self, *, models: ModelDirectory | None = None, store: PlanStore | None = None) -> None:
        super().__init__()
        self.counters = Counters()
        self._models = models or ModelDirectory()
        self._store = store or PlanStore()
        self._recognizer = Recognizer()
        self._memo = CountMemo()
        self._read: dict[str, GatewaySettings] = {}
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._most: OrderedDict[str, int] = OrderedDict()  # what a refused request may take, by its prefix

    # -- before a request

    @override
    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: Any
    ) -> dict[str, Any] | None:
        """Replace what does not fit in `data`; raise the wire's own refusal for what cannot fit.

        A fault in here is logged and counted, and the request goes on as it came.
        """
        wire = _WIRES.get(str(call_type))
        if wire is None or not data.get("messages"):
            return None
        try:
            return await self._planned(user_api_key_dict, cache, data, wire)
        except ContextOverflowError as error:
            entry = _Open({"x-rolling-window": str(error.report.window)})
            self._count(data, "refused", entry)
            refused = refusal_of(error, is_anthropic=wire is _WIRES["anthropic_messages"])
        except Exception:
            LOG.exception("The rolling window failed: the request goes on as it came.")
            self._count(data, "failed_open", _Open({}))
            return None
        raise proxy_error(refused, entry.headers or {})

    async def _planned(self, key: Any, cache: Any, data: dict[str, Any], wire: Wire) -> dict[str, Any] | None:
        facts = self._models.facts(str(data.get("model") or ""), getattr(key, "team_id", None))
        settings = self._settings(_tables_for(facts, key))
        if not settings.enabled:
            self._count(data, "skipped", _Open({} if settings.headers else None))
            return None
        try:
            transcript = wire.read(data)
        except _UNREADABLE as error:
            LOG.info("A request is passed on unread: %s.", error)
            self._count(data, "skipped", _Open({} if settings.headers else None))
            return None
        model = f"{data.get('model')}|{facts.name}"
        seed = seed_of(str(getattr(key, "token", None) or ""), model, str(settings.config))
        branch = self._recognizer.branch((said.message for said in transcript.said), seed)
        shared = _shared(cache)
        found = await self._store.find(branch, model, shared)
        known = ModelKnowledge.from_json(found.model)
        request = ChatRequest(
            data,
            wire,
            transcript,
            branch,
            facts,
            settings,
            known,
            found.plan,
            found.length,
            self._most.get(branch.prefixes[-1], 0),
        )
        if sum(map(size_of, branch.messages[found.length :])) > _LARGE:
            planned = await asyncio.to_thread(_plan, request, self._memo)
        else:
            planned = _plan(request, self._memo)
        prefix = branch.prefixes[-1]
        await self._store.keep(prefix, planned.plan, shared, after=branch.prefixes[found.length])
        teaches = not any(data.get(name) for name in _OWN_ANSWERS)
        entry = _Open(
            _headers(planned) if settings.headers else None,
            prefix, model, planned.plan if teaches else None, shared, planned.report, planned.answer,
            wire is _WIRES["anthropic_messages"], str(data.get("model")),
        )  # fmt: skip
        self._count(data, "trimmed" if planned.omitted or planned.shortened else "unchanged", entry)
        data.update(planned.changes)
        return data

    def _settings(self, tables: tuple[tuple[str, object], ...]) -> GatewaySettings:
        """Read settings once: what is wrong with them is said once, too."""
        name = repr(tables)
        known = self._read.get(name)
        if known is None:
            if len(self._read) >= _MOST_READ:
                self._read.clear()
            known = self._read[name] = read_settings(tables)
        return known

    def _count(self, data: Mapping[str, Any], outcome: str, entry: _Open) -> None:
        self.counters.add(outcome)
        if entry.headers is not None:
            entry.headers["x-rolling-outcome"] = outcome
        call_id = data.get("litellm_call_id")
        if isinstance(call_id, str):
            self._open[call_id] = entry
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)

    # -- after it

    @override
    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Take the count that the model reported."""
        entry = self._open.get(str(kwargs.get("litellm_call_id")))
        if entry is None or entry.plan is None or kwargs.get("cache_hit") or _is_fallback(kwargs, entry):
            return
        try:
            reported = counted_prompt(kwargs, response_obj, is_anthropic=entry.is_anthropic)
            await self._learn_count(entry, entry.plan, reported)
        except Exception:
            LOG.exception("The usage of a reply was not understood.")

    async def _learn_count(self, entry: _Open, plan: ContextPlan, reported: int) -> None:
        known = await self._known(entry)
        if not reported:
            if known.measurements.calibration.knows_nothing:
                known = replace(known, measurements=known.measurements.tried())
                await self._store.keep_model(entry.model, known.to_json(), entry.shared)
            return
        confirmed, group = confirm_count(plan, reported, memo=self._memo)
        entry.plan = None
        await self._store.keep(entry.prefix, confirmed, entry.shared)
        known = replace(known, measurements=known.measurements.add(group))
        await self._store.keep_model(entry.model, known.to_json(), entry.shared)

    async def _known(self, entry: _Open) -> ModelKnowledge:
        return ModelKnowledge.from_json(await self._store.model(entry.model, entry.shared))

    @override
    async def async_log_failure_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Learn the window from a refusal that speaks of it."""
        entry = self._open.get(str(kwargs.get("litellm_call_id")))
        if entry is None or entry.plan is None or entry.report is None or _is_fallback(kwargs, entry):
            return
        try:
            overflow = overflow_in(kwargs.get("exception"))
            if overflow is None:
                return
            lesson = lesson_of(overflow, entry.report, entry.answer)
            known = await self._known(entry)
            known = replace(known, measurements=known.measurements.tried())
            if lesson.limit:
                least = entry.report.window * LEAST_SHARE
                limit = min(size for size in (lesson.limit, known.limit) if size >= least)
                known = replace(known, limit=limit)
                LOG.warning("A refusal says that %s takes %d tokens.", entry.asked, lesson.limit)
            await self._store.keep_model(entry.model, known.to_json(), entry.shared)
            if lesson.counted:
                await self._learn_count(entry, entry.plan, lesson.counted)
            if lesson.most:
                self._most[entry.prefix] = lesson.most
                while len(self._most) > _MOST_OPEN:
                    self._most.popitem(last=False)
        except Exception:
            LOG.exception("A refusal was not understood.")

    @override
    async def async_post_call_response_headers_hook(
        self,
        data: dict[str, Any],
        user_api_key_dict: Any,
        response: Any,
        request_headers: dict[str, str] | None = None,
        litellm_call_info: dict[str, Any] | None = None,
    ) -> dict[str, str] | None:
        """Say in the response's headers what was done with the request."""
        entry = self._open.get(str(data.get("litellm_call_id")))
        return dict(entry.headers) if entry is not None and entry.headers else None


def _plan(request: ChatRequest, memo: CountMemo) -> PlannedChat:
    """Plan a request; a plan so far that makes no sense, or makes it too large, whoever wrote it, is none."""
    try:
        return plan_chat(request, memo)
    except Exception as error:
        if request.plan is None:
            raise
        if not isinstance(error, ContextOverflowError):
            LOG.warning("A stored plan makes no sense: its conversation is planned anew.", exc_info=True)
        return plan_chat(replace(request, plan=None, planned=0), memo)


def _is_fallback(kwargs: Mapping[str, Any], entry: _Open) -> bool:
    """Whether another model answered than the one that the request was planned for."""
    params = kwargs.get("litellm_params")
    tables = (
        [params.get(name) for name in ("metadata", "litellm_metadata")] if isinstance(params, Mapping) else []
    )
    groups = [table.get("model_group") for table in tables if isinstance(table, Mapping)]
    return any(isinstance(group, str) and group != entry.asked for group in groups)


def _tables_for(facts: ModelFacts, key: Any) -> tuple[tuple[str, object], ...]:
    """The proxy's settings, then the model's, the team's and the key's, each with where it stands."""
    litellm = sys.modules.get("litellm")
    places = (("the team's metadata", "team_metadata"), ("the key's metadata", "metadata"))
    metadata = ((place, getattr(key, name, None)) for place, name in places)
    own = ((place, table.get(NAME)) for place, table in metadata if isinstance(table, Mapping))
    models = (("a model's model_info", table) for table in facts.tables)
    return (("litellm_settings", getattr(litellm, NAME, None)), *models, *own)


def _shared(cache: Any) -> Shared | None:
    """The proxy's Redis, where it has one: that of its keys, else that of its limits."""
    redis: Shared | None = getattr(cache, "redis_cache", None)
    proxy = sys.modules.get("litellm.proxy.proxy_server")
    return redis if redis is not None else getattr(proxy, "redis_usage_cache", None)


def _headers(planned: PlannedChat) -> dict[str, str]:
    headers = {
        "x-rolling-tokens": str(planned.report.token_count),
        "x-rolling-window": str(planned.report.window),
        "x-rolling-omitted": str(planned.omitted),
        "x-rolling-shortened": str(planned.shortened),
    }
    return {**headers, "x-rolling-max-tokens": str(planned.max_tokens)} if planned.max_tokens else headers


handler: Final = RollingWindow()
