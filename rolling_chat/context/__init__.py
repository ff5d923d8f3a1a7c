"""Plan every model request so that it fits the context window.

The package is also a library: it takes and returns plain OpenAI-format dictionaries and needs nothing heavier
than tiktoken. Public names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat.lazily import public_names

if TYPE_CHECKING:
    from rolling_chat.context.calibration import Calibration, Measurements
    from rolling_chat.context.config import ContextConfig
    from rolling_chat.context.confirm import Confirmation, confirm_count
    from rolling_chat.context.count_memo import CountMemo
    from rolling_chat.context.errors import ContextOverflowError
    from rolling_chat.context.families import get_context_limit
    from rolling_chat.context.pins import Pins
    from rolling_chat.context.plan import ContextPlan
    from rolling_chat.context.prompt import FinalPrompt, build_final_prompt
    from rolling_chat.context.report import Fate, PromptReport, Row
    from rolling_chat.context.summarize import Summarised, Summarized, summarize_context, summary_steps
    from rolling_chat.context.summary_due import DuePass, due_pass
    from rolling_chat.context.summary_request import SummaryError, SummaryOptions
    from rolling_chat.context.summary_text import Summary, max_summary_tokens, most_summary_tokens
    from rolling_chat.context.tokens import (
        TokenEstimator,
        count_tokens,
        estimate_tokens,
        prompt_bound,
        register_estimator,
    )
    from rolling_chat.context.trimming import LimitedMessages, enforce_context_limit, trim_conversation
    from rolling_chat.context.turns import group_into_turns

__all__ = [
    "Calibration",
    "Confirmation",
    "ContextConfig",
    "ContextOverflowError",
    "ContextPlan",
    "CountMemo",
    "DuePass",
    "Fate",
    "FinalPrompt",
    "LimitedMessages",
    "Measurements",
    "Pins",
    "PromptReport",
    "Row",
    "Summarised",
    "Summarized",
    "Summary",
    "SummaryError",
    "SummaryOptions",
    "TokenEstimator",
    "build_final_prompt",
    "confirm_count",
    "count_tokens",
    "due_pass",
    "enforce_context_limit",
    "estimate_tokens",
    "get_context_limit",
    "group_into_turns",
    "max_summary_tokens",
    "most_summary_tokens",
    "prompt_bound",
    "register_estimator",
    "summarize_context",
    "summary_steps",
    "trim_conversation",
]

_MODULES = {
    "Calibration": ".calibration",
    "Confirmation": ".confirm",
    "ContextConfig": ".config",
    "ContextOverflowError": ".errors",
    "ContextPlan": ".plan",
    "CountMemo": ".count_memo",
    "DuePass": ".summary_due",
    "Fate": ".report",
    "FinalPrompt": ".prompt",
    "LimitedMessages": ".trimming",
    "Measurements": ".calibration",
    "Pins": ".pins",
    "PromptReport": ".report",
    "Row": ".report",
    "Summarised": ".summarize",
    "Summarized": ".summarize",
    "Summary": ".summary_text",
    "SummaryError": ".summary_request",
    "SummaryOptions": ".summary_request",
    "TokenEstimator": ".tokens",
    "build_final_prompt": ".prompt",
    "confirm_count": ".confirm",
    "count_tokens": ".tokens",
    "due_pass": ".summary_due",
    "enforce_context_limit": ".trimming",
    "estimate_tokens": ".tokens",
    "get_context_limit": ".families",
    "group_into_turns": ".turns",
    "max_summary_tokens": ".summary_text",
    "most_summary_tokens": ".summary_text",
    "prompt_bound": ".tokens",
    "register_estimator": ".tokens",
    "summarize_context": ".summarize",
    "summary_steps": ".summarize",
    "trim_conversation": ".trimming",
}

__getattr__ = public_names(__name__, _MODULES)
