"""Plan one request of a client: pure, from what came in to the fields that change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rolling_chat.context import (
    ContextConfig,
    ContextPlan,
    CountMemo,
    Fate,
    FinalPrompt,
    Measurements,
    Pins,
    PromptReport,
    build_final_prompt,
    prompt_bound,
)
from rolling_chat.context.calibration import safety_margin
from rolling_chat.gateway.model_facts import ModelFacts
from rolling_chat.gateway.refusals import LEAST_SHARE
from rolling_chat.gateway.settings import GatewaySettings
from rolling_chat.gateway.transcripts import CACHE_MARK, Transcript, Wire, json_size, plain_value
from rolling_chat.messages import Json, JsonObject, Message
from rolling_chat.recognition.fingerprints import Branch
from rolling_chat.recognition.kept_messages import kept_messages, notice_of

_LEFT_OUT = (Fate.OMITTED, Fate.SUMMARIZED)
_CUT = (Fate.MASKED, Fate.SHORTENED)
_MIN_ANSWER = 1_024  # tokens beside a budget of thought


@dataclass(frozen=True, slots=True)
class ModelKnowledge:
    """Hold what the replies and refusals of a model taught; `limit` is a window in tokens, 0 for none."""

    measurements: Measurements = field(default_factory=Measurements)
    limit: int = 0

    def to_json(self) -> dict[str, Json]:
        """Return the knowledge as plain JSON values."""
        return {"measurements": self.measurements.to_json(), "limit": self.limit}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> ModelKnowledge:
        """Read knowledge from JSON; ignore what is none."""
        limit = data.get("limit")
        limit = limit if type(limit) is int and limit > 0 else 0
        return cls(Measurements.from_json(data.get("measurements")), limit)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request as a client sent it, with all that its plan depends on."""

    data: Mapping[str, Any]
    wire: Wire
    transcript: Transcript
    branch: Branch
    facts: ModelFacts
    settings: GatewaySettings
    known: ModelKnowledge
    plan: ContextPlan | None = None
    planned: int = 0  # how many messages the plan was made for
    most: int = 0  # tokens that it may take, after a refusal that named no number; 0 for no such limit


@dataclass(frozen=True, slots=True)
class PlannedChat:
    """A request that fits: the fields of the client's request to replace, and the plan behind them."""

    changes: Mapping[str, Any]
    plan: ContextPlan
    report: PromptReport
    torn: int = 0  # messages that belonged to nothing, and left
    answer: int = 0  # how long an answer the model is asked for, 0 if nobody says
    max_tokens: int = 0  # what the answer was limited to, 0 if it was not

    @property
    def omitted(self) -> int:
        """Count the messages that were left out."""
        return self.report.count(*_LEFT_OUT) + self.torn

    @property
    def shortened(self) -> int:
        """Count the messages of which something was cut."""
        return self.report.count(*_CUT)


def plan_chat(request: ChatRequest, memo: CountMemo) -> PlannedChat:
    """Plan a request: one that fits is not touched. Raises ContextOverflowError for one that cannot fit."""
    config = _config(request)
    final = _build(request, config, memo)
    changes: dict[str, Any] = {}
    torn = _torn(request, final)
    more = _bound(torn, request, memo)
    if final.report.count(*_LEFT_OUT, *_CUT) or more > _room_for_answer(final.report) - final.report.reserve:
        changes = _written(request, final)
        if _grows(request.data, changes):
            # the notice would be more than what it stands for: whole, or not at all
            final, changes = _build(request, replace(config, enabled=False), memo), {}
    left = len(torn) if changes else 0
    if _is_to_mark(request):
        previous = request.transcript.said[request.planned - 1].source if request.planned else -1
        changes = request.wire.mark(request.data, changes, previous=previous, ttl=request.settings.cache_ttl)
    name, asked = _asked(request.data)
    if not asked:
        name, asked = "max_tokens", request.facts.asks
    most = max(1, _room_for_answer(final.report) - (0 if left else more))
    if asked > most:
        return PlannedChat({**changes, name: most}, final.plan, final.report, left, most, most)
    return PlannedChat(changes, final.plan, final.report, left, asked)


def _build(request: ChatRequest, config: ContextConfig, memo: CountMemo) -> FinalPrompt:
    pins = Pins(pinned=request.transcript.pinned)

    def build(tools: Sequence[JsonObject]) -> FinalPrompt:
        return build_final_prompt(
            request.branch.messages, config, tools=tools, model=request.facts.name,
            plan=request.plan, pins=pins, memo=memo,
        )  # fmt: skip

    tools = _tools(request.data)
    try:
        return build(tools)
    except RecursionError:  # a schema is too deep to be written
        return build([plain_value(tool) for tool in tools])


def _torn(request: ChatRequest, final: FinalPrompt) -> Sequence[Message]:
    """The messages that no prompt can carry: results of no call, calls without results."""
    if not final.report.count(Fate.REPAIRED) or final.plan.sent is None:
        return ()
    kept = {item.index for item in final.plan.sent.items}
    first = int(request.transcript.has_system)
    return [one for index, one in enumerate(request.branch.messages) if index >= first and index not in kept]


def _bound(torn: Sequence[Message], request: ChatRequest, memo: CountMemo) -> int:
    if not torn:
        return 0
    calibration = request.known.measurements.calibration
    return prompt_bound(torn, model=request.facts.name, calibration=calibration, memo=memo)


def _grows(data: Mapping[str, Any], changes: Mapping[str, Any]) -> bool:
    """Whether the changed fields are larger than the given ones; messages that both have are not measured."""
    given, sent = ({id(one): one for one in fields["messages"]} for fields in (data, changes))
    new = [one for name, one in sent.items() if name not in given]
    system = data.get("system") if "system" in changes else None
    room = json_size([*new, changes.get("system")]) - json_size([system])
    gone = (one for name, one in given.items() if name not in sent)
    return room > 0 and all((room := room - json_size(one) - 1) > 0 for one in gone)


def _written(request: ChatRequest, final: FinalPrompt) -> dict[str, Any]:
    transcript, messages = request.transcript, request.branch.messages
    first = int(transcript.has_system)
    kept = list(kept_messages(final, first, len(messages)))
    return request.wire.write(request.data, transcript, kept, notice_of(messages, final))


def _config(request: ChatRequest) -> ContextConfig:
    settings, facts, known = request.settings, request.facts, request.known
    config, calibration = settings.config, known.measurements.calibration
    window = min(size for size in (facts.window, config.max_context_tokens) if size)
    if window * LEAST_SHARE <= known.limit < window:
        window = known.limit
    margin = safety_margin(config.safety_margin, is_set=settings.sets_margin, replies=calibration.replies)
    _name, asked = _asked(request.data)
    thought = _thought(request.data)
    limit = 0
    if asked > window // 3:
        # the planner reserves a third at most: of what was asked for beyond that half the window is kept
        answer = min(asked, max(window // 2, thought + _MIN_ANSWER))
        limit = max(1, window - int(window * margin) - answer)
    if request.most:
        limit = min(limit or request.most, request.most)
    return replace(
        config,
        enabled=request.transcript.readable,
        max_context_tokens=window,
        input_limit=limit,
        reserved_output_tokens=asked or config.reserved_output_tokens + thought,
        max_output_tokens=0 if asked else facts.max_output,
        safety_margin=margin,
        # a limit that was learned comes from a refusal: the model has been tried
        unproven_share=0.0 if known.limit else 1.0,
        calibration=calibration,
    )


def _asked(data: Mapping[str, Any]) -> tuple[str, int]:
    """How long an answer the client asks for, and by which field; 0 if it does not say."""
    for name in ("max_completion_tokens", "max_tokens"):
        value = data.get(name)
        if type(value) is int and 0 < value <= 1_000_000_000:
            return name, value
    return "", 0


def _thought(data: Mapping[str, Any]) -> int:
    thinking = data.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else 0
    return budget if type(budget) is int and 0 < budget <= 1_000_000_000 else 0


def _room_for_answer(report: PromptReport) -> int:
    return max(1, report.window - report.margin - max(report.tested, report.token_count))


def _tools(data: Mapping[str, Any]) -> Sequence[JsonObject]:
    """Everything beside the messages that a model reads: tools, and the schema of its answer."""
    tools = [tool for name in ("tools", "functions") for tool in _list(data.get(name))]
    schemas = (data.get(name) for name in ("response_format", "output_format", "output_config"))
    return [one for one in (*tools, *schemas) if isinstance(one, Mapping)]


def _is_to_mark(request: ChatRequest) -> bool:
    """A single question is not worth a mark, and whoever sets marks knows better."""
    data = request.data
    is_read = request.transcript.readable and all(said.known for said in request.transcript.said)
    if not (request.facts.marks and request.settings.cache_marks and is_read):
        return False
    is_chat = any(message.role == "assistant" for message in request.branch.messages)
    return (is_chat or bool(data.get("tools"))) and not _has_marks(data)


def _has_marks(data: Mapping[str, Any]) -> bool:
    blocks = [*_list(data.get("tools")), *_list(data.get("system"))]
    for message in data["messages"]:
        blocks += [message, *_list(message.get("content"))]
    return CACHE_MARK in data or any(isinstance(block, Mapping) and CACHE_MARK in block for block in blocks)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
