"""The keys of `[context]`, each with its default and its range: once, for settings and pipeline alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from rolling_chat.setting_rules import key, size

Truncation: TypeAlias = Literal["auto", "head", "tail", "both"]
TrimStrategy: TypeAlias = Literal["priority", "priority-based", "oldest-first"]
Summarize: TypeAlias = Literal["off", "extract", "model"]
Masking: TypeAlias = Literal["auto", "exact", "steps"]
CacheTtl: TypeAlias = Literal["5m", "1h"]
Direct: TypeAlias = Literal["auto", "off"]

TRUNCATIONS: tuple[str, ...] = get_args(Truncation)
ESTIMATORS = ("auto", "ratio", "chars", "bytes", "cl100k_base", "o200k_base")


@dataclass(frozen=True, slots=True)
class ContextKeys:
    """The settings of `[context]`, except those for single tools.

    Sizes are in tokens, shares are of the budget.
    """

    enabled: bool = key(True, bool, project=True)
    max_context_tokens: int = size(0)
    reserved_output_tokens: int = size(4096)
    safety_margin: float = key(0.10, float, least=0, below=1, project=True)
    max_history_tokens: int | Literal["auto"] = size("auto", choices=("auto",))
    preserve_recent_turns: int = size(5)
    usage_threshold: float = key(0.8, float, above=0, most=1, project=True)
    trim_to: float = key(0.6, float, above=0, most=1, project=True)
    trim_strategy: TrimStrategy = key("priority", str, choices=get_args(TrimStrategy), project=True)
    summarize: Summarize = key("model", str, choices=get_args(Summarize), project=True)
    # another model may be another company's server: not for a project to choose
    summary_model: str = key("", str)
    max_tool_result_tokens: int = size(8000, least=1)
    tool_result_truncation: Truncation = key("auto", str, choices=TRUNCATIONS, project=True)
    tool_result_keep_first: int = size(2)
    tool_result_keep_last: int = size(5)
    tool_result_masking: Masking = key("auto", str, choices=get_args(Masking), project=True)
    token_estimator: str = key("auto", str, choices=ESTIMATORS, project=True)
