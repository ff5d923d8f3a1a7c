"""Ask the hooks about tool calls: whether one runs, its arguments, and notes to add to its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.agent.hooks.session_hooks import Ruling, SessionHooks
from rolling_chat.agent.permissions import Verdict
from rolling_chat.events import Emit, Noticed
from rolling_chat.messages import Ending, JsonObject
from rolling_chat.permissions.path_patterns import is_protected
from rolling_chat.permissions.rules import Subject
from rolling_chat.text import exact, one_line
from rolling_chat.tools import ToolResult

_MAX_SHOWN = 300  # characters of an argument, before and after


@dataclass(slots=True)
class HookedCalls:
    """Asks the hooks of a session about the calls of one turn; `stopped_by` is why a hook ended it."""

    hooks: SessionHooks
    emit: Emit
    stopped_by: str = ""

    async def before(self, tool: str, call_id: str, arguments: JsonObject) -> Ruling:
        """Ask the hooks about a call before it runs, and tell the user what they change or refuse."""
        ruling = await self.hooks.before_tool(tool, call_id, arguments)
        lines = list(ruling.lines)
        if ruling.changed_by:
            changes = "; ".join(_changes(arguments, ruling.arguments))
            lines.append(f"The hook {ruling.changed_by} changed a call of {tool}: {changes}")
            ruling.contexts.append(
                f"[the hook {ruling.changed_by} changed this call before it ran: {changes}]"
            )
        if ruling.refuses:
            lines.append(f"A hook refused {tool}: {one_line(ruling.reason, _MAX_SHOWN)}")
        if ruling.stops:
            self.stopped_by = ruling.reason
        for line in lines:
            await self.emit(Noticed(line, warning=True))
        return ruling

    async def after(
        self, tool: str, call_id: str, arguments: JsonObject, result: ToolResult
    ) -> Sequence[str]:
        """Report a call that has run to the hooks; return their notes for the model."""
        ruling = await self.hooks.after_tool(tool, call_id, arguments, result)
        for line in ruling.lines:
            await self.emit(Noticed(line, warning=True))
        notes = list(ruling.contexts)
        if ruling.refuses:
            notes.append(f"[a hook objects to this result]\n{ruling.reason}")
            await self.emit(
                Noticed(f"A hook objects to the result of {tool}: {one_line(ruling.reason, 300)}")
            )
        if ruling.stops:
            self.stopped_by = ruling.reason
        return notes


def refused_by_hook(ruling: Ruling) -> ToolResult:
    """Return the result of a call that a hook refused."""
    return ToolResult(f"Not run: a hook refused this call. It says: {ruling.reason}", Ending.REFUSED)


def verdict_with(
    verdict: Verdict, ruling: Ruling, subject: Subject, *, must_ask: bool, can_ask: bool
) -> Verdict:
    """Return the verdict about a call after the hooks' ruling.

    A hook can demand a question. Its approval replaces a question, but it cannot allow what a rule or the
    policy refuses, nor replace a question that is required (`must_ask`), such as about a call that the model
    wrote as text or that the user has refused before, or one about a protected file.
    """
    if ruling.decision == "ask" and verdict == "allowed":
        return "ask" if can_ask else "refused"
    if ruling.decision != "allow" or verdict != "ask" or must_ask:
        return verdict
    paths = subject if isinstance(subject, tuple) else ()
    return "ask" if any(map(is_protected, paths)) else "allowed"


def _changes(before: JsonObject, after: JsonObject) -> list[str]:
    names = dict.fromkeys((*before, *after))
    return [
        f"{exact(str(name))} “{_shown(before.get(name))}” → “{_shown(after.get(name))}”"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _shown(value: object) -> str:
    return "" if value is None else one_line(exact(str(value)), _MAX_SHOWN)
