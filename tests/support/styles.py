"""Style sheets parsed once for all apps of a test run: else every app spends 25 ms on the same ones."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

_parsed: dict[Hashable, list[RuleSet]] = {}
_parse_rules = Stylesheet._parse_rules


def _parse_once(self: Stylesheet, css: str, read_from: Any, *args: Any, **options: Any) -> list[RuleSet]:
    key = (css, read_from, args, *sorted(options.items()), *self._variables.items())
    if key not in _parsed:
        _parsed[key] = _parse_rules(self, css, read_from, *args, **options)
    return _parsed[key]


def share_parsed_styles() -> None:
    """Let every app of this process share what was parsed with the same variables."""
    Stylesheet._parse_rules = _parse_once  # type: ignore[method-assign]
