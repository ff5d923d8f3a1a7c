"""Run the hooks of one session on each event, one by one, and combine their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rolling_chat.agent.errors import ChatError
from rolling_chat.agent.hooks.answers import Decision, HookAnswer, Trigger
from rolling_chat.agent.hooks.running import HookRunner, name_of
from rolling_chat.agent.hooks.tool_names import arguments_from, hook_input, matches
from rolling_chat.agent.permissions import Permissions
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session_state import SessionState
from rolling_chat.extensions.hooks import Hooks, read_hooks
from rolling_chat.messages import Json, JsonObject
from rolling_chat.settings.hook_settings import Hook
from rolling_chat.settings.load import IN_HOOK
from rolling_chat.text import one_line
from rolling_chat.tools import ToolResult

_MAX_RESPONSE = 100_000  # characters of a result that are passed to a hook
_MODES = {"ask": "default", "edits": "acceptEdits", "all": "bypassPermissions"}  # names in other agents
_OF_TASKS = frozenset({"PreToolUse", "PostToolUse", "PreCompact"})
"""The events that run hooks in a task, which has no messages of the user's, and whose end is no turn's."""


@dataclass(slots=True)
class Ruling:
    """The combined answer of the hooks of an event.

    `reason` is why they refused. `contexts` are for the model, `lines` for the user. `arguments` are those of
    a call as the hooks want them; `changed_by` is the hook that changed them, if any. Only a hook of the
    user's own can `allow`. `stops`: the turn must end.
    """

    decision: Decision = ""
    reason: str = ""
    contexts: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    arguments: JsonObject = field(default_factory=dict)
    changed_by: str = ""
    stops: bool = False

    @property
    def refuses(self) -> bool:
        """Whether a hook refused, or wants the turn to end."""
        return self.decision == "deny"

    @property
    def context(self) -> str:
        """The text for the model; empty if there is none."""
        return "\n".join(self.contexts)

    def add(self, event: str, hook: Hook, answer: HookAnswer) -> None:
        """Add the answer of one hook: a refusal overrides a question, which overrides an approval."""
        name = name_of(hook)
        if answer.fault:
            blocks = "its on_failure blocks" if hook.blocks_on_failure else "the work goes on"
            self.lines.append(f"The {event} hook {name} failed ({answer.fault}); {blocks}.")
            if hook.blocks_on_failure:
                self.decision, self.reason = "deny", f"The hook {name} failed: {answer.fault}."
        if answer.message:
            self.lines.append(f"The {event} hook {name} says: {answer.message}")
        if answer.context:
            self.contexts.append(f"[from the hook {name}]\n{answer.context}")
        if answer.stops or answer.decision == "deny":
            self.decision, self.reason, self.stops = "deny", answer.reason, answer.stops
        elif answer.decision == "ask" or (answer.decision == "allow" and hook.is_own and not self.decision):
            self.decision = answer.decision

    def change(self, hook: Hook, updated: JsonObject) -> None:
        """Use the arguments that a hook wants; a change by a project's hook cancels an approval."""
        if updated == self.arguments:
            return
        self.arguments, self.changed_by = updated, name_of(hook)
        if not hook.is_own and self.decision == "allow":
            self.decision = ""


class SessionHooks:
    """Runs the hooks of one session, which are read again with every turn.

    `is_task`: the session is that of a task, which works for the session with `session_id`.
    """

    def __init__(
        self,
        runtime: Runtime,
        state: SessionState,
        permissions: Permissions,
        session_id: str,
        *,
        is_task: bool = False,
    ) -> None:
        self._runtime = runtime
        self._state = state
        self._permissions = permissions
        self._session_id = session_id
        self._is_task = is_task
        self._runner = HookRunner(runtime, permissions)
        self._source = "resume" if state.conversation.recent else "startup"
        self._starting: asyncio.Task[Ruling] | None = None
        self._is_started = is_task
        self._running: set[asyncio.Task[Any]] = set()
        self._hooks = Hooks()
        self.read()

    def read(self) -> None:
        """Read the hooks again."""
        runtime = self._runtime
        # a hook that runs this program would otherwise run itself forever
        is_inner = IN_HOOK in runtime.environ
        self._hooks = Hooks() if is_inner else read_hooks(runtime.settings.hooks, runtime.trust)

    @property
    def faults(self) -> tuple[str, ...]:
        """Lines about hooks that are ignored."""
        return self._hooks.faults

    @property
    def by_event(self) -> Mapping[str, tuple[Hook, ...]]:
        """The hooks by event, in the order in which they run."""
        return self._hooks.by_event

    @property
    def asks_about_messages(self) -> bool:
        """Whether there is a hook to ask about the next message."""
        events = {"UserPromptSubmit"} if self._is_started else {"UserPromptSubmit", "SessionStart"}
        return not events.isdisjoint(self._hooks.by_event)

    def begin(self) -> None:
        """Start the SessionStart hooks, unless they were started; the first message waits for them."""
        if not self._is_started and self._starting is None and not self._state.is_followed:
            self._starting = self._begun(self._ask("SessionStart", {"source": self._source}, self._source))

    async def before_message(self, text: str) -> Ruling:
        """Ask about a message before it is sent. Raises ChatError if a hook refuses it."""
        ruling = Ruling()
        if not self._is_started:
            self.begin()
            if self._starting is not None:
                started = await self._starting
                ruling.contexts, ruling.lines = started.contexts, started.lines
            self._starting, self._is_started = None, True
        asked = await self._ask("UserPromptSubmit", {"prompt": text})
        if asked.refuses:
            raise ChatError(f"Not sent: a hook refused the message. {one_line(asked.reason, 400)}".rstrip())
        ruling.contexts += asked.contexts
        ruling.lines += asked.lines
        return ruling

    async def before_tool(self, tool: str, call_id: str, arguments: JsonObject) -> Ruling:
        """Ask about a tool call before it is decided whether it may run; `tool` is the tool's name."""
        payload = {"tool_name": tool, "tool_use_id": call_id}
        return await self._ask("PreToolUse", payload, tool, arguments)

    async def after_tool(self, tool: str, call_id: str, arguments: JsonObject, result: ToolResult) -> Ruling:
        """Report a call that has run; the contexts of the ruling go to the model with its result."""
        response = {"text": result.text[:_MAX_RESPONSE], "ending": result.ending.value}
        payload = {"tool_name": tool, "tool_use_id": call_id, "tool_response": response}
        return await self._ask("PostToolUse", payload, tool, arguments)

    async def before_compact(self, trigger: Trigger, focus: str = "") -> list[str]:
        """Report that history will be shortened, which hooks cannot refuse; return lines for the user."""
        payload = {"trigger": trigger, "custom_instructions": focus}
        ruling = await self._ask("PreCompact", payload, trigger)
        if ruling.reason:
            ruling.lines.append(f"A PreCompact hook says: {one_line(ruling.reason, 300)}")
        return ruling.lines

    async def before_stop(self, answer: str, *, is_sent_on: bool) -> Ruling:
        """Ask whether the turn may end; the reason of a refusal says what remains to be done."""
        payload = {"stop_hook_active": is_sent_on, "last_assistant_message": answer[:_MAX_RESPONSE]}
        return await self._ask("Stop", payload)

    def notify(self, line: str) -> None:
        """Report, without waiting, that the user's attention is requested."""
        if "Notification" in self._hooks.by_event:
            self._begun(self._ask("Notification", {"message": line}, ""))

    def close(self) -> None:
        """Cancel running hooks, without waiting for them."""
        for task in self._running:
            task.cancel()

    async def stop(self) -> None:
        """Cancel running hooks, and wait until they have ended."""
        self.close()
        if self._running:
            await asyncio.wait(set(self._running))

    def _begun(self, work: Coroutine[Any, Any, Ruling]) -> asyncio.Task[Ruling]:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Ruling]) -> None:
        self._running.discard(task)
        with suppress(asyncio.CancelledError):
            task.exception()  # retrieved, so that asyncio does not log it

    async def _ask(
        self,
        event: str,
        payload: Mapping[str, Json],
        subject: str = "",
        arguments: JsonObject | None = None,
    ) -> Ruling:
        """Run the hooks of an event that `subject` matches, until one refuses."""
        ruling = Ruling(arguments=arguments or {})
        if self._is_task and event not in _OF_TASKS:
            return ruling
        folder = self._runtime.folder
        for hook in self._hooks.by_event.get(event, ()):
            if not matches(hook.matcher, subject):
                continue
            sent = {**self._about(event), **payload}
            if arguments is not None:
                sent["tool_input"] = hook_input(ruling.arguments, folder)
            answer = await self._runner.run(event, hook, sent)
            ruling.add(event, hook, answer)
            if ruling.refuses:
                break
            if answer.updated is not None and event == "PreToolUse":
                ruling.change(hook, arguments_from(answer.updated, ruling.arguments, folder))
        return ruling

    def _about(self, event: str) -> dict[str, Json]:
        policy = self._permissions.policy
        return {
            "session_id": self._session_id,
            "cwd": str(self._runtime.folder),
            "hook_event_name": event,
            "permission_mode": _MODES.get(policy, policy),
        }
