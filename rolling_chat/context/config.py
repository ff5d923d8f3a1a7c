"""ContextConfig: everything the pipeline needs to know, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from rolling_chat.context.calibration import NOT_CALIBRATED, Calibration

Truncation: TypeAlias = Literal["head", "tail", "both"]


@dataclass(frozen=True, slots=True)
class ContextConfig:
    """Every key of `[context]` under its own name, and what only a caller can know.

    All sizes are in tokens. `max_context_tokens` is W, the model's window; 0 asks the built-in
    table by the model's name. `input_limit` is the provider's own limit on input alone (0: none).
    `max_output_tokens` is the model's output limit (0: unknown). `recall` says that the model has a
    tool to read back what left: what was shortened then says by which id, `r` and its place.
    `calibration` is what the model's replies taught about our counts: it moves sizes, and what a message
    is cut to only in large steps. Raises ValueError, naming the key, for a value that is out of range.
    """

    enabled: bool = True
    max_context_tokens: int = 0
    reserved_output_tokens: int = 4096
    safety_margin: float = 0.10
    max_history_tokens: int = 20_000
    preserve_recent_turns: int = 5
    usage_threshold: float = 0.8
    trim_to: float = 0.6
    trim_strategy: Literal["priority", "priority-based", "oldest-first"] = "priority"
    summarize: Literal["off", "extract", "model"] = "model"
    summary_model: str = ""
    max_tool_result_tokens: int = 8000
    tool_result_truncation: Truncation = "head"
    tool_result_keep_first: int = 2
    tool_result_keep_last: int = 5
    tool_result_masking: Literal["auto", "exact", "steps"] = "auto"
    token_estimator: str = "auto"
    tools: Mapping[str, Truncation] = field(default_factory=lambda: MappingProxyType({}))
    prompt_cache: bool = False
    input_limit: int = 0
    max_output_tokens: int = 0
    recall: bool = False
    calibration: Calibration = NOT_CALIBRATED

    def __post_init__(self) -> None:
        for key in (
            "max_context_tokens", "reserved_output_tokens", "max_history_tokens",
            "preserve_recent_turns", "tool_result_keep_first", "tool_result_keep_last",
            "input_limit", "max_output_tokens",
        ):  # fmt: skip
            if getattr(self, key) < 0:
                raise ValueError(f"{key} must be 0 or more, not {getattr(self, key)}")
        if self.max_tool_result_tokens <= 0:
            raise ValueError(f"max_tool_result_tokens must be above 0, not {self.max_tool_result_tokens}")
        if not 0 <= self.safety_margin < 1:
            raise ValueError(f"safety_margin must be from 0 to below 1, not {self.safety_margin}")
        for key in ("usage_threshold", "trim_to"):
            if not 0 < getattr(self, key) <= 1:
                raise ValueError(f"{key} must be above 0 and at most 1, not {getattr(self, key)}")
        for key, allowed in _CHOICES.items():
            if getattr(self, key) not in allowed:
                raise ValueError(f"{key} must be one of {', '.join(allowed)}, not {getattr(self, key)!r}")
        for tool, truncation in self.tools.items():
            if truncation not in _CHOICES["tool_result_truncation"]:
                raise ValueError(f"tools.{tool} must be one of head, tail, both, not {truncation!r}")


_CHOICES: dict[str, tuple[str, ...]] = {
    "trim_strategy": ("priority", "priority-based", "oldest-first"),
    "summarize": ("off", "extract", "model"),
    "tool_result_truncation": ("head", "tail", "both"),
    "tool_result_masking": ("auto", "exact", "steps"),
}
