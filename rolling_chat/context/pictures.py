"""Count the tokens of a picture by its size, with each provider's own rule.

Every rule returns a best estimate and an upper bound. Sources, all read in 2025 and 2026:

- OpenAI, developers.openai.com, "Images and vision", "Calculating costs": tiles of 512 pixels after fitting
into 2048 × 2048 and then 768 on the shorter side; or patches of 32 pixels, at most 1,536, times a factor.
- Anthropic, platform.claude.com, "Vision": width × height / 750, after fitting into 1,568 pixels and about
1,600 tokens; newer models accept 2,576 pixels and 4,784 tokens.
- Google, ai.google.dev, "Understand and count tokens": 258 up to 384 × 384, else 258 a tile; "Media
resolution": up to 1,120 for newer models.
- Others: the most that the published encoders of open models need (Llama 3.2 Vision: 4 tiles of 1,601;
Pixtral: patches of 16 in 1,024; Qwen-VL: patches of 28, without a limit).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class PictureTokens(NamedTuple):
    """The tokens of one picture: a best estimate, and an upper bound."""

    estimate: int
    bound: int


PictureRule: TypeAlias = Callable[[int, int], PictureTokens]
"""Count a picture from its width and height in pixels, both at least 1."""


def picture_rule(model: str | None) -> PictureRule:
    """Return the rule by which `model` counts pictures; a conservative one for an unknown model."""
    name = (model or "").lower()
    last = name.rsplit("/", 1)[-1]
    for words, rule in _RULES:
        if any(word in name if len(word) > _SHORT else last.startswith(word) for word in words):
            return rule
    return careful_picture


def _tiles(base: int, tile: int) -> PictureRule:
    def count(width: int, height: int) -> PictureTokens:
        scale = min(1.0, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height)) if scale * min(width, height) > 768 else scale
        across, down = (math.ceil(round(side * scale, 6) / 512) for side in (width, height))
        # if a side was scaled to exactly the edge of a tile, rounding decides
        most = (math.ceil((side * scale + (scale < 1)) / 512) for side in (width, height))
        return PictureTokens(base + tile * across * down, base + tile * math.prod(most))

    return count


def _patches(factor: float, most: int = 1_536) -> PictureRule:
    def count(width: int, height: int) -> PictureTokens:
        patches = min(math.ceil(width / 32) * math.ceil(height / 32), most)
        tokens = math.ceil(patches * factor)
        return PictureTokens(tokens, tokens + 1)

    return count


def _new_openai(width: int, height: int) -> PictureTokens:
    """Count a picture for an OpenAI model newer than the table, whichever rule applies to it."""
    likely = _tiles(85, 170)(width, height)
    return PictureTokens(likely.estimate, max(likely.bound, _patches(2.46, 10_000)(width, height).bound))


def _claude(width: int, height: int) -> PictureTokens:
    scale = min(1.0, 1568 / max(width, height))
    estimate = min(math.ceil(width * height * scale * scale / 750), 1_600)
    scale = min(1.0, 2576 / max(width, height))
    area = math.ceil(width * height * scale * scale / 750)
    patches = math.ceil(width * scale / 28) * math.ceil(height * scale / 28)
    return PictureTokens(estimate, min(max(area, patches) + 16, 4_800))


def _gemini(width: int, height: int) -> PictureTokens:
    tiles = 1
    if max(width, height) > 384:
        side = min(max(math.floor(min(width, height) / 1.5), 256), 768)
        tiles = math.ceil(width / side) * math.ceil(height / side)
    return PictureTokens(258 * tiles, max(258 * tiles, 1_600))


def careful_picture(width: int, height: int) -> PictureTokens:
    """Count a picture for an unknown model, with the most that any known model needs as the bound."""
    llama = 4 * 1_601 + 4
    pixtral = 64 * 65
    qwen = math.ceil(width / 28 + 1) * math.ceil(height / 28 + 1)
    bound = max(llama, pixtral, qwen)
    return PictureTokens(min(max(256, math.ceil(width * height / 750)), bound), bound)


_SHORT = 2  # letters of a name that is only matched at the beginning

# First match wins.
_RULES: tuple[tuple[tuple[str, ...], PictureRule], ...] = (
    (("claude",), _claude),
    (("gemini", "gemma"), _gemini),
    (("gpt-4o-mini",), _tiles(2_833, 5_667)),
    (("gpt-4.1-mini", "gpt-5-mini"), _patches(1.62)),
    (("gpt-4.1-nano", "gpt-5-nano"), _patches(2.46)),
    (("o4-mini",), _patches(1.72)),
    (("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-4-turbo", "gpt-4-vision"), _tiles(85, 170)),
    (("computer-use",), _tiles(65, 129)),
    (("gpt-5.",), _new_openai),
    (("gpt-5",), _tiles(70, 140)),
    (("o1", "o3"), _tiles(75, 150)),
    (("gpt-", "o4", "o5"), _new_openai),
)
