"""How providers' prompt caches work: how long a prompt stays there, by provider and model.

As the providers' own pages put it in autumn 2026. Where a provider names a span, its lower end counts. Every
read starts the time anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from rolling_chat.context_keys import CacheTtl
from rolling_chat.providers.model_ref import ModelRef

SHORTEST: Final = 300.0
"""Seconds after which a cache is taken to be cold where the provider names no time: the least of any."""

_MINUTES, _HOURS = 60.0, 3_600.0


@dataclass(frozen=True, slots=True)
class CacheRule:
    """One row of the table.

    `seconds` is how long a prompt stays in the cache after it was last used, None where the provider names no
    time. A prompt of fewer than `least` tokens is not cached. `marked`: only what `cache_control` marks cover
    is cached, and written at a price of its own. `counts_tool_choice`: another `tool_choice` or reasoning
    effort makes the messages be read anew. `source` is the page that says so.
    """

    seconds: float | None
    source: str
    least: int = 1_024
    marked: bool = False
    counts_tool_choice: bool = False


_ANTHROPIC = CacheRule(
    5 * _MINUTES,
    "https://platform.claude.com/docs/en/build-with-claude/prompt-caching",
    marked=True,
    counts_tool_choice=True,
)
_BEDROCK = replace(
    _ANTHROPIC, source="https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html"
)
_OPENAI_PAGE = "https://developers.openai.com/api/docs/guides/prompt-caching"
_AZURE_PAGE = "https://learn.microsoft.com/en-us/azure/foundry/openai/how-to/prompt-caching"
_GEMINI_PAGE = "https://ai.google.dev/gemini-api/docs/caching"

# First match wins: the provider's name and the model's, both in lower case, by regular expressions.
_TABLE: tuple[tuple[str, str, CacheRule], ...] = (
    ("bedrock", "claude", _BEDROCK),
    ("", "claude", _ANTHROPIC),
    ("groq", "gpt-oss|kimi", CacheRule(2 * _HOURS, "https://console.groq.com/docs/prompt-caching", 128)),
    # `prompt_cache_options.ttl` has one value
    ("", r"gpt-(5\.[6-9]|5\.\d\d|[6-9]|\d\d)", CacheRule(30 * _MINUTES, _OPENAI_PAGE)),
    ("", r"gpt-5\.5", CacheRule(24 * _HOURS, _OPENAI_PAGE)),
    # "24h" is Azure's for those that were asked for it
    ("azure", r"gpt-4o|gpt-4\.1|gpt-5|o[134]\b", CacheRule(5 * _MINUTES, _AZURE_PAGE)),
    # the models with `prompt_cache_retention = "24h"`, the default for whoever has no zero data retention
    (
        "",
        r"gpt-(4\.1|5|5\.[1-4])(-codex(-max|-mini)?|-pro|-chat-latest)?(-\d{4}-\d\d-\d\d)?$",
        CacheRule(24 * _HOURS, _OPENAI_PAGE),
    ),
    # in memory: 5 to 10 minutes of inactivity
    ("", r"gpt-4o|gpt-4\.1|gpt-5|chatgpt-4o|(^|/)o[134]\b", CacheRule(5 * _MINUTES, _OPENAI_PAGE)),
    # implicit caching: both pages promise savings, and no time
    ("", r"gemini-2\.5", CacheRule(None, _GEMINI_PAGE, 2_048)),
    ("", r"gemini-([3-9]|flash|pro)", CacheRule(None, _GEMINI_PAGE, 4_096)),
    # on disk: cleared when unused, "usually within a few hours to a few days"
    ("deepseek", "", CacheRule(2 * _HOURS, "https://api-docs.deepseek.com/guides/kv_cache", 64)),
    # "can be evicted at any time"
    (
        "xai",
        "",
        CacheRule(None, "https://docs.x.ai/developers/advanced-api-usage/prompt-caching/best-practices"),
    ),
    # the implicit cache: "not guaranteed"
    ("dashscope", "qwen", CacheRule(None, "https://help.aliyun.com/en/model-studio/context-cache", 256)),
)
# OpenRouter sends a conversation to the same provider while its cache is warm, so that the maker's rule holds
# there: https://openrouter.ai/docs/guides/best-practices/prompt-caching
_ROUTERS = frozenset({"openrouter"})


@lru_cache(maxsize=256)
def cache_rule(model: str, ttl: CacheTtl = "5m") -> CacheRule | None:
    """Return how the prompts of `model` are cached; None where nothing is known of a cache.

    `ttl` is the time that Claude's cache marks ask for. A llama.cpp server or Ollama keeps the last prompt of
    a slot for nothing: no rule is needed for it.
    """
    ref = ModelRef.parse(model)
    provider, name = ref.served_by, ref.name.lower()
    if provider in _ROUTERS:
        provider, _, _ = name.partition("/")
        provider = {"x-ai": "xai", "qwen": "dashscope"}.get(provider, provider)
    if ref.is_ollama or ref.is_demo:
        return None
    for server, pattern, rule in _TABLE:
        if (not server or provider.startswith(server)) and re.search(pattern, name):
            return replace(rule, seconds=_HOURS) if rule.marked and ttl == "1h" else rule
    return None
