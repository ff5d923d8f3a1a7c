"""What a person changes of the pipeline in mid-session: settings as they are typed, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from rolling_chat.context import ContextPlan
from rolling_chat.settings.load import read_setting, shown
from rolling_chat.settings.schema import ContextSettings, ToolContextSettings

_ORIGIN = "/rolling-context"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Settings of the pipeline and whether rolling is on, as they are or as they are asked for."""

    context: ContextSettings
    rolling: bool

    def with_setting(self, key: str, text: str) -> Wanted:
        """The same with one key of `[context]` changed; `enabled` is the switch itself.

        Raises SettingsError for a key that there is not and for a value that it does not take.
        """
        path, value = read_setting(f"context.{key.removeprefix('context.')}", text, _ORIGIN)
        match path[1:]:
            case ("enabled",):
                return replace(self, rolling=value)
            case ("tools", name, "truncation"):
                tools = {**self.context.tools, name: ToolContextSettings(value)}
                return replace(self, context=replace(self.context, tools=MappingProxyType(tools)))
            case (name,):
                return replace(self, context=replace(self.context, **{name: value}))
        raise AssertionError(path)  # the schema has no other keys

    def with_settings(self, settings: Mapping[str, str]) -> Wanted:
        """The same with several keys changed."""
        wanted = self
        for key, text in settings.items():
            wanted = wanted.with_setting(key, text)
        return wanted


@dataclass(frozen=True, slots=True)
class Switch:
    """A change that can be taken back: what was in force before it, and the plan of then."""

    key: str  # empty: rolling was switched
    before: Wanted
    plan: ContextPlan | None


def value_of(context: ContextSettings, key: str) -> str:
    """The value of a key as people write it."""
    name = key.removeprefix("context.")
    if name.startswith("tools."):
        tool = context.tools.get(name.removeprefix("tools.").removesuffix(".truncation").strip("\"'"))
        return shown(tool.truncation if tool else "")
    return shown(getattr(context, name))
