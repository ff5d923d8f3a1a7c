"""Configuration of the context pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from rolling_chat.context.calibration import NOT_CALIBRATED, Calibration
from rolling_chat.context_keys import TRUNCATIONS, ContextKeys, Truncation
from rolling_chat.setting_rules import Rule


@dataclass(frozen=True, slots=True)
class ContextConfig(ContextKeys):
    """The `[context]` settings, and facts about the model that only the caller knows; sizes in tokens.

    `max_context_tokens` is W, the model's window; 0 looks it up in the built-in table by the model's name.
    `input_limit` is the provider's separate limit on input (0: none), `max_output_tokens` the model's output
    limit (0: unknown). `recall` means that the model has a tool to read omitted material back: shortened
    messages then name their id, `r` and the index. `todo` means that it has a to-do list tool: if the newest
    list was omitted, the notice repeats it. `notes` means the same for a notes tool. With `room`, each trim
    reports the free room to the model. `unproven_share` lets the first request to a model with an unknown
    tokenizer rely on the best estimate: until a reply or a refusal is known, this share of the estimate is
    tested instead of the upper bound; 0 always tests the bound. `calibration` is learned from the model's
    replies: it changes sizes, and the length to which messages are cut only in large steps.

    Raises ValueError, naming the key, for a value out of range.
    """

    tools: Mapping[str, Truncation] = field(default_factory=lambda: MappingProxyType({}))
    prompt_cache: bool = False
    input_limit: int = 0
    max_output_tokens: int = 0
    recall: bool = False
    todo: bool = False
    notes: bool = False
    room: bool = False
    unproven_share: float = 0.0
    calibration: Calibration = NOT_CALIBRATED

    def __post_init__(self) -> None:
        for item in fields(ContextKeys):
            _check(item.name, getattr(self, item.name), item.metadata["rule"])
        for name in ("input_limit", "max_output_tokens"):
            _check(name, getattr(self, name), _SIZE)
        _check("unproven_share", self.unproven_share, _SHARE)
        for tool, truncation in self.tools.items():
            _check(f"tools.{tool}", truncation, _TRUNCATION)


_SIZE = Rule(int, least=0)
_SHARE = Rule(float, least=0, most=1)
_TRUNCATION = Rule(str, choices=TRUNCATIONS)


def _check(name: str, value: float | str, rule: Rule) -> None:
    """Raise ValueError for a value out of range. The name of an estimator is checked when it is looked up."""
    if name == "token_estimator":
        return
    if isinstance(value, str):
        is_allowed = value in rule.choices or not (rule.choices or rule.is_number)
    else:
        is_allowed = rule.is_in_range(value)
    if not is_allowed:
        raise ValueError(f"{name} must be {rule.allowed}, not {value!r}")
