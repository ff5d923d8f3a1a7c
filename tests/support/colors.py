"""How well text is told from its ground: the contrast ratio of WCAG 2.2."""

from __future__ import annotations

# success criterion 1.4.3, level AA: the least for text of ordinary size
READABLE = 4.5


def luminance(color: str) -> float:
    """Relative luminance of `#rrggbb`, 0 to 1, as WCAG 2.2 defines it."""
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colors as `#rrggbb`, 1 to 21, as WCAG 2.2 defines it."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)
