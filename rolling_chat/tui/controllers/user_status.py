"""The user's own status row: run their command whenever its input has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rolling_chat import __version__
from rolling_chat.messages import JsonObject, Usage
from rolling_chat.tui.controllers.background import Coalesced, Workplace
from rolling_chat.tui.widgets.status import UserStatus

if TYPE_CHECKING:
    from rolling_chat.agent import Chat
    from rolling_chat.context.report import PromptReport


class StatusStage(Workplace, Protocol):
    """The part of the screen that the status row uses."""

    chat: Chat

    def query_one(self, selector: type[UserStatus], /) -> UserStatus:
        """Return the widget; raise NoMatches while the screen is being closed."""
        ...


class UserStatusController:
    """Runs the user's status command in the background, never twice at once."""

    def __init__(self, screen: StatusStage) -> None:
        self._screen = screen
        self._facts: JsonObject = {}
        self._running = Coalesced(self._run)

    def follow(self, report: PromptReport | None, usage: Usage, *, busy: bool) -> None:
        """Run the command if there is one and its facts have changed, but not while an answer streams in."""
        chat = self._screen.chat
        if busy or report is None or not chat.settings.screen.status_command:
            return
        facts = _facts(chat, report, usage)
        if facts != self._facts:
            self._facts = facts
            self._running.ask(self._screen)

    async def _run(self) -> None:
        line = await self._screen.chat.user_status(self._facts)
        self._screen.query_one(UserStatus).show(line)


def _facts(chat: Chat, report: PromptReport, usage: Usage) -> JsonObject:
    """Return the command's input, under the names that other agents use, if any."""
    session = chat.session
    facts: dict[str, Any] = {
        "version": __version__,
        "session_id": session.info.id,
        "title": session.info.title,
        "cwd": session.info.folder,
        "model": {"id": session.model, "display_name": session.model.rpartition("/")[2]},
        "workspace": {"current_dir": session.info.folder},
        "cost": {"total_cost_usd": usage.cost},
        "context_window": {
            "context_window_size": report.window,
            "used_tokens": report.used,
            "used_percentage": round(report.percent, 1),
            "total_input_tokens": usage.input_tokens,
            "total_output_tokens": usage.output_tokens,
            "rolling": report.rolling,
        },
        "permission_mode": session.permissions.policy,
    }
    return facts
