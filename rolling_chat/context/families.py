"""What is known of a model by its name: its family's tokenizer, and its context window.

`factor` is the median of reported tokens over the encoding's count, and `prior` a share of it that
recorded requests stayed under; both measured on some 2,000 recorded requests and 1,500 increments of
real sessions. `framing` is what a message costs beside its text. Tool schemas cost more than their
JSON with some providers, who wrap them in instructions of their own: `tools_extra` is the usual
surplus and `tools_extra_bound` the largest recorded. `image` is a ceiling for one image of unknown size;
`picture` counts one whose size is known.
All figures are in tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rolling_chat.context.pictures import PictureRule, careful_picture, picture_rule


@dataclass(frozen=True, slots=True)
class Family:
    """Describe how a model family counts tokens; `encoding` is empty if none comes near."""

    name: str
    encoding: str = ""
    factor: float = 1.0
    prior: float = 1.0
    framing: int = 4
    tools_extra: int = 0
    tools_extra_bound: int = 0
    image: int = 2_000
    picture: PictureRule = careful_picture


UNKNOWN = Family("unknown", framing=6, tools_extra=100, tools_extra_bound=500)

_O200K = Family("openai-o200k", "o200k_base", prior=1.05, framing=4, tools_extra_bound=400, image=1_500)
_CL100K = Family("openai-cl100k", "cl100k_base", prior=1.05, framing=4, tools_extra_bound=400, image=1_500)
_CLAUDE = Family(
    "claude", "cl100k_base", 1.35, 1.8, framing=5, tools_extra=350, tools_extra_bound=900, image=4_800
)
_DEMO = Family("demo", "o200k_base", framing=4)

# First match wins; every word is looked for in the lower-cased model name.
FAMILIES: tuple[tuple[tuple[str, ...], Family], ...] = (
    (("demo/offline",), _DEMO),
    (("claude",), _CLAUDE),
    (("gpt-oss",), Family("gpt-oss", "o200k_base", 1.02, 1.15, framing=6, tools_extra_bound=300)),
    # its images are billed at 2,833 and 5,667 a tile, up to eight tiles and the base
    (
        ("gpt-4o-mini",),
        Family("openai-o200k-mini", "o200k_base", 1.0, 1.05, tools_extra_bound=400, image=48_200),
    ),
    (("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "chatgpt-4o"), _O200K),
    (("gpt-4", "gpt-3.5", "text-embedding"), _CL100K),
    (("gemini", "gemma"), Family("gemini", "o200k_base", 1.05, 1.45, tools_extra_bound=120, image=1_600)),
    (
        ("llama",),
        Family("llama", "cl100k_base", 1.17, 2.1, framing=6, tools_extra=100, tools_extra_bound=400),
    ),
    (
        ("qwen", "qwq"),
        Family("qwen", "cl100k_base", 1.1, 1.5, framing=6, tools_extra=150, tools_extra_bound=400),
    ),
    (("deepseek",), Family("deepseek", "cl100k_base", 1.16, 1.5, tools_extra=250, tools_extra_bound=450)),
    (
        ("mistral", "mixtral", "codestral", "devstral", "ministral", "magistral"),
        Family("mistral", "cl100k_base", 1.2, 1.7, tools_extra=50, tools_extra_bound=300),
    ),
    (("grok",), Family("grok", "o200k_base", 1.06, 1.35, framing=8, tools_extra=230, tools_extra_bound=450)),
    (("glm",), Family("glm", "cl100k_base", 1.1, 1.5, framing=6, tools_extra=150, tools_extra_bound=400)),
    (("kimi", "moonshot"), Family("kimi", "o200k_base", 1.1, 1.5, framing=6, tools_extra_bound=300)),
    (("nova",), Family("nova", "cl100k_base", 1.2, 1.6, tools_extra=870, tools_extra_bound=1_300)),
    (("command",), Family("command", "cl100k_base", 1.3, 1.8, tools_extra=1_300, tools_extra_bound=1_550)),
)

# OpenAI's reasoning models have names too short to be looked for anywhere but at the start.
_REASONING = ("o1", "o3", "o4")


def family_of(model: str | None) -> Family:
    """Return the family of `model`, with or without a provider in front; UNKNOWN if none fits.

    Its rule for pictures is the model's own.
    """
    family, picture = _family_by_name(model), picture_rule(model)
    return family if family.picture is picture else replace(family, picture=picture)


def _family_by_name(model: str | None) -> Family:
    name = (model or "").lower()
    for words, family in FAMILIES:
        if any(word in name for word in words):
            return family
    last = name.rsplit("/", 1)[-1]
    if any(last == stem or last.startswith(stem + "-") for stem in _REASONING):
        return _O200K
    return UNKNOWN


DEFAULT_WINDOW = 128_000

# First match in the lower-cased name wins; tokens.
_WINDOWS: tuple[tuple[str, int], ...] = (
    ("claude", 200_000),
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_000_000),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 128_000),
    ("gemini", 1_000_000),
    ("grok-4", 2_000_000),
    ("grok", 131_072),
    ("deepseek-v3", 163_840),
    ("deepseek-chat-v3", 163_840),
    ("deepseek", 128_000),
    ("qwen3", 131_072),
    ("qwen", 128_000),
    ("llama-4", 327_680),
    ("llama", 128_000),
    ("mistral-large", 262_144),
    ("mistral", 128_000),
    ("mixtral", 128_000),
)


def get_context_limit(model: str | None) -> int:
    """Return the context window of `model` in tokens; 128,000 if its name is unknown."""
    return _window_by_name(model) or DEFAULT_WINDOW


def knows_context_limit(model: str | None) -> bool:
    """Return whether the context window of `model` is known by its name."""
    return _window_by_name(model) > 0


def _window_by_name(model: str | None) -> int:
    name = (model or "").lower()
    return next((window for stem, window in _WINDOWS if stem in name), 0)
