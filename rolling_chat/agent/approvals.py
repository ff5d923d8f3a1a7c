"""Which tools run at once, which ask first, and which are refused."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rolling_chat.events import AskLeave, Leave, LeaveRequest
from rolling_chat.tools.base import Tool

log = logging.getLogger("rolling_chat.agent.approvals")

Policy: TypeAlias = Literal["read-only", "ask", "edits", "all"]
Verdict: TypeAlias = Literal["allowed", "ask", "refused"]


@dataclass(slots=True)
class Approvals:
    """The policy of `agent.approvals`, the person to ask, and what they have allowed so far.

    A tool that needs no leave always runs. One that does: `read-only` refuses it, `ask` and
    `edits` ask (`edits` lets changes to files pass, and commands are none), `all` lets it run.
    """

    policy: Policy
    ask: AskLeave | None = None
    _allowed: set[str] = field(default_factory=set)  # tools allowed until the session is closed

    def verdict(self, tool: Tool) -> Verdict:
        """What is to be done about a call of `tool`."""
        if not tool.needs_leave or self.policy == "all":
            return "allowed"
        if self.policy == "read-only":
            return "refused"
        if tool.name in self._allowed:
            return "allowed"
        return "ask" if self.ask is not None else "refused"

    async def decide(self, request: LeaveRequest) -> bool:
        """Ask the person. A question that could not be put counts as no."""
        if self.ask is None:
            return False
        try:
            leave = await self.ask(request)
        except Exception:
            log.exception("the question for leave failed")
            return False
        if leave is Leave.SESSION:
            self._allowed.add(request.call.name)
        return leave is not Leave.NO

    def refusal(self, tool: Tool) -> str:
        """What the model is told of a call that was refused without asking."""
        if self.policy == "read-only":
            return f"Not run: {tool.name} is not allowed here (approvals are read-only). Go on without it."
        return (
            f"Not run: {tool.name} needs the user's leave, and nobody can be asked here "
            f"(approvals are {self.policy!r}). Go on without it, or say what you would have run."
        )

    def forget(self) -> None:
        """Take back what was allowed for a session: another one begins."""
        self._allowed.clear()
