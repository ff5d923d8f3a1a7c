"""Change the pipeline's settings during a session, and undo these changes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session_state import SessionState
from rolling_chat.context import ContextPlan, PromptReport
from rolling_chat.providers.background_thread import in_background
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.load import read_setting, shown
from rolling_chat.settings.schema import ContextSettings, ToolContextSettings
from rolling_chat.settings.write import save_setting
from rolling_chat.text import printable

log = logging.getLogger("rolling_chat.agent.context_settings")

_ORIGIN = "/rolling-context"
_ENABLED = "context.enabled"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Pipeline settings and whether rolling is on, either active or requested.

    `rolling` is the session's own state, `preference` the one that new sessions begin with.
    """

    context: ContextSettings
    rolling: bool
    preference: bool

    def switched(self, on: bool) -> Wanted:
        """Return a copy with rolling context on or off, for this session and new ones."""
        return replace(self, rolling=on, preference=on)

    def with_setting(self, key: str, text: str) -> Wanted:
        """Return a copy with one key of `[context]` changed; `enabled` switches rolling context.

        Raises SettingsError for an unknown key or an invalid value.
        """
        path, value = read_setting(f"context.{key.removeprefix('context.')}", text, _ORIGIN)
        match path[1:]:
            case ("enabled",):
                return self.switched(value)
            case ("tools", name, "truncation"):
                tools = {**self.context.tools, name: ToolContextSettings(value)}
                return replace(self, context=replace(self.context, tools=MappingProxyType(tools)))
            case (name,):
                return replace(self, context=replace(self.context, **{name: value}))
        raise AssertionError(path)  # the schema has no other keys

    def with_settings(self, settings: Mapping[str, str]) -> Wanted:
        """Return a copy with several keys changed."""
        wanted = self
        for key, text in settings.items():
            wanted = wanted.with_setting(key, text)
        return wanted


@dataclass(frozen=True, slots=True)
class Switch:
    """A change that can be undone: the settings and the plan that were active before it."""

    key: str  # empty if rolling was switched
    before: Wanted
    plan: ContextPlan | None


def value_of(context: ContextSettings, key: str) -> str:
    """Return the value of a `[context]` key as users write it."""
    name = key.removeprefix("context.")
    if name.startswith("tools."):
        tool = context.tools.get(name.removeprefix("tools.").removesuffix(".truncation").strip("\"'"))
        return shown(tool.truncation if tool else "")
    return shown(getattr(context, name))


class Overrides:
    """Switches rolling context and sets keys of `[context]` in one session, and undoes both."""

    def __init__(self, runtime: Runtime, state: SessionState) -> None:
        self._runtime = runtime
        self._state = state
        self._made: list[Switch] = []  # undone from the end

    def set_rolling(self, on: bool) -> str:
        """Switch rolling context, and save that as the preference for new sessions.

        The plan is kept but not used while rolling is off. Return a line if the preference could not be saved
        or is overridden, else an empty text.
        """
        self._switch("", self._active.switched(on))
        return self._save_preference(on)

    def set(self, key: str, value: str) -> str:
        """Set one key of `[context]` until this process ends; return a line that reports it.

        `value` is as the user types it. The key `enabled` is the switch, and saved as by `set_rolling`.
        Messages that now have room come back. Raises ChatError for an unknown key or an invalid value.
        """
        before = self._active
        with in_words():
            wanted = before.with_setting(key, value)
        if wanted.context is before.context:
            warning = self.set_rolling(wanted.rolling)
            return f"Rolling context is {'on' if wanted.rolling else 'off'}" + (warning and f" ({warning})")
        name = key.removeprefix("context.")
        self._switch(name, wanted)
        was, now = value_of(before.context, key), value_of(wanted.context, key)
        return f"For this session, {name} is {now}" + (f", it was {was}" if was != now else " already")

    async def preview(self, settings: Mapping[str, str] | None = None) -> PromptReport:
        """Report the next request as if rolling context were on with these settings, as the user typed them.

        Nothing is changed; the report is made off the event loop. Raises ChatError like `set`.
        """
        return await in_background(partial(self._preview, settings or {}))

    def _preview(self, settings: Mapping[str, str]) -> PromptReport:
        now = replace(self._active, rolling=True)
        with in_words():
            wanted = now.with_settings(settings)
            context = None if wanted.context == now.context else wanted.context
            branch = self._state.conversation.messages
        return self._state.planner.forecast.report(branch, context=context, rolling=wanted.rolling)

    def undo(self) -> str:
        """Undo the last change, and return to the plan before it. Raises ChatError."""
        if not self._made:
            raise ChatError(
                "There is nothing to undo: rolling context was not changed since this session was opened."
            )
        switch = self._made.pop()
        self._activate(switch.before, switch.plan)
        if not switch.key:
            warning = self._save_preference(switch.before.preference)
            line = f"Undone: rolling context is {'on' if switch.before.rolling else 'off'} again."
            return f"{line} {warning}".rstrip()
        return f"Undone: {switch.key} is {value_of(switch.before.context, switch.key)} again."

    @property
    def _active(self) -> Wanted:
        context = self._runtime.settings.context
        return Wanted(context, self._state.planner.setup.rolling, context.enabled)

    def _switch(self, key: str, wanted: Wanted) -> None:
        before, state = self._active, self._state
        if wanted == before:
            return
        plan = state.planner.plan_state.plan
        self._made.append(Switch("" if wanted.context == before.context else key, before, plan))
        self._activate(wanted, state.planner.forecast.plan_under(wanted.context, state.conversation.messages))

    def _activate(self, wanted: Wanted, plan: ContextPlan | None) -> None:
        state = self._state
        context = replace(wanted.context, enabled=wanted.preference)
        self._runtime.settings = replace(self._runtime.settings, context=context)
        state.planner.setup.rolling = wanted.rolling
        state.planner.plan_state.use_plan(plan)
        state.update(rolling=wanted.rolling, plan=plan.to_json() if plan is not None else None)

    def _save_preference(self, on: bool) -> str:
        """Write the preference to the user's settings; return a line if that fails or it is overridden."""
        runtime = self._runtime
        try:
            save_setting(runtime.paths, _ENABLED, on)
        except (SettingsError, OSError) as error:
            log.warning("the preference could not be saved", exc_info=True)
            return f"Not saved for new sessions: {error}"
        origin = runtime.settings.origins.get(_ENABLED, "default")
        if origin in ("default", "command line", printable(str(runtime.paths.config_file), 300)):
            return ""
        return f"New sessions here go by {_ENABLED} of {origin}."
