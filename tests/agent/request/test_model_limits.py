from __future__ import annotations

from types import MappingProxyType

import pytest

from rolling_chat.agent.request.model_limits import context_config, offers_tools, output_limit, window_of
from rolling_chat.settings.catalog import ModelCatalog
from rolling_chat.settings.schema import ContextSettings, ModelSettings, Settings, ToolContextSettings

CATALOG = ModelCatalog(
    {
        "openai/known": {
            "mode": "chat", "litellm_provider": "openai", "max_input_tokens": 50_000,
            "max_output_tokens": 2_000, "supports_function_calling": True,
        },
        "openai/plain": {"mode": "chat", "litellm_provider": "openai", "max_input_tokens": 50_000},
        "ollama/big": {"mode": "chat", "litellm_provider": "ollama", "max_input_tokens": 262_144},
    }
)  # fmt: skip


def settings(cap: int = 0, **models: int) -> Settings:
    named = {name.replace("__", "/"): ModelSettings(max_input_tokens=size) for name, size in models.items()}
    return Settings(context=ContextSettings(max_context_tokens=cap), models=MappingProxyType(named))


@pytest.mark.parametrize(
    ("model", "given", "window"),
    [
        ("openai/known", settings(), 50_000),
        ("openai/known", settings(openai__known=70_000), 70_000),
        ("openai/known", settings(cap=9_000), 9_000),
        ("openai/known", settings(cap=9_000, openai__known=70_000), 9_000),
        ("openai/known", settings(cap=900_000), 50_000),
        ("demo/offline", settings(), 8_192),
        ("demo/offline", settings(demo__offline=2_000), 2_000),
        ("openai/some-claude", settings(), 200_000),
        ("openai/nobody-knows", settings(), 128_000),
        ("ollama/big", settings(), 16_384),
        ("ollama/big", settings(ollama__big=100_000), 100_000),
    ],
)
def test_the_window_is_configured_known_or_guessed_and_never_above_the_cap(
    model: str, given: Settings, window: int
) -> None:
    assert window_of(model, given, CATALOG) == window


def test_tools_are_offered_unless_the_catalogue_says_no() -> None:
    assert offers_tools("openai/known", CATALOG)
    assert offers_tools("openai/nobody-knows", CATALOG)
    assert not offers_tools("openai/plain", CATALOG)


def test_the_output_limit_is_configured_known_or_nothing() -> None:
    assert output_limit("openai/known", Settings(), CATALOG) == 2_000
    assert output_limit("openai/nobody-knows", Settings(), CATALOG) == 0
    own = Settings(models=MappingProxyType({"openai/known": ModelSettings(max_output_tokens=77)}))
    assert output_limit("openai/known", own, CATALOG) == 77


def test_every_setting_of_the_pipeline_reaches_it() -> None:
    given = ContextSettings(
        reserved_output_tokens=1_111,
        safety_margin=0.2,
        max_history_tokens=2_222,
        preserve_recent_turns=3,
        usage_threshold=0.7,
        trim_to=0.5,
        trim_strategy="oldest-first",
        summarize="extract",
        summary_model="m",
        max_tool_result_tokens=333,
        tool_result_truncation="both",
        tool_result_keep_first=1,
        tool_result_keep_last=4,
        tool_result_masking="exact",
        token_estimator="chars",
        tools=MappingProxyType(
            {"read_file": ToolContextSettings("tail"), "list_files": ToolContextSettings()}
        ),
    )
    config = context_config(
        "openai/known", Settings(context=given), CATALOG, rolling=True, system="", tools=()
    )
    of_the_wire = {"cache_ttl"}
    others = {"enabled", "max_context_tokens", "tools"} | of_the_wire
    for name in ContextSettings.__dataclass_fields__.keys() - others:
        assert getattr(config, name) == getattr(given, name), name
    assert config.enabled
    assert config.max_context_tokens == 50_000
    assert config.max_output_tokens == 2_000
    assert config.tools == {"read_file": "tail"}


def test_one_result_takes_at_most_a_quarter_of_what_a_small_window_leaves() -> None:
    def cap(window: int) -> int:
        given = settings(openai__known=window)
        config = context_config("openai/known", given, CATALOG, rolling=True, system="", tools=())
        return config.max_tool_result_tokens

    assert cap(100_000) == 8_000
    assert cap(10_000) == pytest.approx((10_000 - 2_000 - 1_000) / 4, abs=1)
    assert cap(100) >= 1
