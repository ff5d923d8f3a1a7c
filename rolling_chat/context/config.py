"""The settings of the context pipeline, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from rolling_chat.context.calibration import NOT_CALIBRATED, Calibration
from rolling_chat.context_keys import TRUNCATIONS, ContextKeys, Truncation
from rolling_chat.setting_rules import Rule


@dataclass(frozen=True, slots=True)
class ContextConfig(ContextKeys):
    """Hold the `[context]` settings and what only a caller can know of the model.

    All sizes are in tokens. `max_context_tokens` is W, the model's window; 0 asks the built-in
    table by the model's name. `input_limit` is the provider's own limit on input alone (0: none).
    `max_output_tokens` is the model's output limit (0: unknown). `recall` says that the model has a
    tool to read back what left: what was shortened then says by which id, `r` and its index. `todo` says
    that it has one for a to-do list: the newest list is told when the call that made it has left. `notes`
    says the same of a tool that makes notes. With `room` each trim tells the model how much room there is.
    `unproven_share` lets the first request to a model that nobody can count go on the best estimate: while no
    reply and no refusal is known of it, this share of the estimate is tested, and not the upper bound; 0 for
    the bound, always. `calibration` is what the model's replies taught about our counts: it moves sizes, and
    what a message is cut to only in large steps. Raises ValueError, naming the key, for a value that is out
    of range.
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
    """Raise ValueError for a value out of range. An estimator's name is checked where it is looked up."""
    if name == "token_estimator":
        return
    if isinstance(value, str):
        is_allowed = value in rule.choices or not (rule.choices or rule.is_number)
    else:
        is_allowed = rule.is_in_range(value)
    if not is_allowed:
        raise ValueError(f"{name} must be {rule.allowed}, not {value!r}")
