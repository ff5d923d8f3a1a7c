"""What a person changes of the pipeline in mid-session: settings as they are typed, and the way back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session import OpenSession
from rolling_chat.context import ContextPlan, PromptReport
from rolling_chat.settings.load import read_setting, shown
from rolling_chat.settings.schema import ContextSettings, SettingsError, ToolContextSettings
from rolling_chat.settings.write import save_setting
from rolling_chat.text import printable

log = logging.getLogger("rolling_chat.agent.context_settings")

_ORIGIN = "/rolling-context"
_ENABLED = "context.enabled"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Settings of the pipeline and whether rolling is on, as they are or as they are asked for.

    `rolling` is the session's own state, `preference` the one that new sessions begin with.
    """

    context: ContextSettings
    rolling: bool
    preference: bool

    def switched(self, on: bool) -> Wanted:
        """The same with rolling context on or off, here and for new sessions."""
        return replace(self, rolling=on, preference=on)

    def with_setting(self, key: str, text: str) -> Wanted:
        """The same with one key of `[context]` changed; `enabled` is the switch itself.

        Raises SettingsError for a key that there is not and for a value that it does not take.
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
        """The same with several keys changed."""
        wanted = self
        for key, text in settings.items():
            wanted = wanted.with_setting(key, text)
        return wanted


@dataclass(frozen=True, slots=True)
class Switch:
    """A change that can be taken back: what was active before it, and its plan."""

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


class Overrides:
    """The switch and the settings of an open session's pipeline, and what can be taken back of them.

    `session` is the open session, whichever it is at the time: what was changed in one is
    forgotten in the next.
    """

    def __init__(self, runtime: Runtime, session: Callable[[], OpenSession]) -> None:
        self._runtime = runtime
        self._session = session
        self._made: list[Switch] = []  # what can be undone, the last one last
        self._made_in: OpenSession | None = None

    def set_rolling(self, on: bool) -> str:
        """Switch rolling context, and save that as the preference for new sessions.

        The plan is laid aside when it goes off, taken up when it goes on. Returns a line where the
        preference could not be saved or does not count, else an empty text.
        """
        self._switch("", self._in_force.switched(on))
        return self._save_preference(on)

    def set_context(self, key: str, value: str) -> str:
        """Set one key of `[context]`, as typed; returns the line that says so. Raises ChatError."""
        before = self._in_force
        with in_words():
            wanted = before.with_setting(key, value)
        if wanted.context is before.context:
            warning = self.set_rolling(wanted.rolling)
            return f"Rolling context is {'on' if wanted.rolling else 'off'}" + (warning and f" ({warning})")
        name = key.removeprefix("context.")
        self._switch(name, wanted)
        was, now = value_of(before.context, key), value_of(wanted.context, key)
        return f"For this session, {name} is {now}" + (f", it was {was}" if was != now else " already")

    def preview(self, settings: Mapping[str, str] | None = None) -> PromptReport:
        """The next request's report with rolling on, under these settings as typed. Raises ChatError."""
        now = replace(self._in_force, rolling=True)
        with in_words():
            wanted = now.with_settings(settings or {})
        context = None if wanted.context == now.context else wanted.context
        session = self._session()
        return session.planner.preview(session.conversation.messages, context=context, rolling=wanted.rolling)

    def undo(self) -> str:
        """Take the last change back, and return to the plan before it. Raises ChatError."""
        if not self._made or self._made_in is not self._session():
            raise ChatError(
                "There is nothing to undo: rolling context was not changed since this session was opened."
            )
        switch = self._made.pop()
        self._put_in_force(switch.before, switch.plan)
        if not switch.key:
            warning = self._save_preference(switch.before.preference)
            line = f"Undone: rolling context is {'on' if switch.before.rolling else 'off'} again."
            return f"{line} {warning}".rstrip()
        return f"Undone: {switch.key} is {value_of(switch.before.context, switch.key)} again."

    @property
    def _in_force(self) -> Wanted:
        context = self._runtime.settings.context
        return Wanted(context, self._session().planner.rolling, context.enabled)

    def _switch(self, key: str, wanted: Wanted) -> None:
        before, session = self._in_force, self._session()
        if wanted == before:
            return
        plan = session.planner.decisions
        if self._made_in is not session:
            self._made, self._made_in = [], session
        self._made.append(Switch("" if wanted.context == before.context else key, before, plan))
        self._put_in_force(wanted, session.planner.plan_under(wanted.context, session.conversation.messages))

    def _put_in_force(self, wanted: Wanted, plan: ContextPlan | None) -> None:
        session = self._session()
        context = replace(wanted.context, enabled=wanted.preference)
        self._runtime.settings = replace(self._runtime.settings, context=context)
        session.planner.rolling = wanted.rolling
        session.planner.use_plan(plan)
        session.update(rolling=wanted.rolling, plan=plan.to_json() if plan is not None else None)

    def _save_preference(self, on: bool) -> str:
        """Write the preference to the user's settings; a line where that fails or something overrides it."""
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
