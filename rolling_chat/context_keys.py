"""The keys of `[context]`, each with its default and range, shared by settings and pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from rolling_chat.setting_rules import key, size

Truncation: TypeAlias = Literal["auto", "head", "tail", "both"]
TrimStrategy: TypeAlias = Literal["priority", "priority-based", "age", "oldest-first"]
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

    enabled: bool = key(True, bool, project=True, help="Rolling context, for new sessions.")
    max_context_tokens: int = size(0, help="Cap on the window for every model. 0: the model's own window.")
    reserved_output_tokens: int = size(4096, help="Room for the answer; at most a third of the window.")
    safety_margin: float = key(
        0.10,
        float,
        least=0,
        below=1,
        project=True,
        help="Share of the window that is kept free; 0.02 after three replies, unless it is set.",
    )
    max_history_tokens: int | Literal["auto"] = size(
        "auto", choices=("auto",), help='Cap on earlier turns. "auto": max(20000, window / 10); 0: no cap.'
    )
    preserve_recent_turns: int = size(
        5, help="The number of newest turns that are shortened and dropped late."
    )
    usage_threshold: float = key(
        0.8,
        float,
        above=0,
        most=1,
        project=True,
        help="A summary is made when earlier turns use this share of their room.",
    )
    trim_to: float = key(
        0.6,
        float,
        above=0,
        most=1,
        project=True,
        help="Old messages are dropped down to this share of the limit; 1.0: just enough.",
    )
    trim_strategy: TrimStrategy = key(
        "priority",
        str,
        choices=get_args(TrimStrategy),
        project=True,
        help="The order in which material is dropped.",
    )
    summarize: Summarize = key(
        "model",
        str,
        choices=get_args(Summarize),
        project=True,
        help="How old turns are summarized: not, by rules, or by a model.",
    )
    # another model may mean another company's server, so a project must not choose it
    summary_model: str = key("", str, help="The model that summarizes. Empty: the chat's own.")
    max_tool_result_tokens: int = size(8000, least=1, help="What the model sees of one result at most.")
    tool_result_truncation: Truncation = key(
        "auto",
        str,
        choices=TRUNCATIONS,
        project=True,
        help='Which part of a long result the model sees. "auto": what matters in it.',
    )
    tool_result_keep_first: int = size(
        2, help="Results of the current turn that are masked last: how many of its first ones."
    )
    tool_result_keep_last: int = size(
        5, help="Results of the current turn that are masked last: how many of its newest ones."
    )
    tool_result_masking: Masking = key(
        "auto",
        str,
        choices=get_args(Masking),
        project=True,
        help='"exact": mask at every result; "steps": only when room is needed.',
    )
    omitted_names: float = key(
        0.0,
        float,
        least=0,
        most=0.5,
        project=True,
        help="Share of the room for history that lists the names which only what left the prompt has.",
    )
    token_estimator: str = key(
        "auto", str, choices=ESTIMATORS, project=True, help="How tokens are counted for the gauge."
    )
