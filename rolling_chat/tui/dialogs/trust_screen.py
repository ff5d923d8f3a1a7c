"""The question whether to trust a folder's own files: instructions, settings, commands and so on."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events, on
from textual.containers import Vertical

from rolling_chat.agent.questions import NEVER, SHOW, TRUST, trust_question
from rolling_chat.settings.errors import SettingsError
from rolling_chat.tui.dialogs.framed import FramedScreen
from rolling_chat.tui.dialogs.text_screen import TextScreen
from rolling_chat.tui.widgets.question import Question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import App, ComposeResult

    from rolling_chat.settings.project_files import ProjectFile
    from rolling_chat.settings.trust import FolderTrust

_log = logging.getLogger("rolling_chat.tui")


class TrustScreen(FramedScreen[str]):
    """Asks about files of the folder; keys that are no answer go to `typed`."""

    DEFAULT_CSS = """
    TrustScreen > Vertical { width: 90%; max-width: 110; height: auto; border: none; padding: 0; }
    """

    def __init__(
        self,
        trust: FolderTrust,
        files: Sequence[ProjectFile],
        typed: Callable[[events.Key | events.Paste], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._question = Question(trust_question(trust, files), clock)
        self._typed = typed

    def compose(self) -> ComposeResult:
        """Lay out the question."""
        with Vertical():
            yield self._question

    def on_mount(self) -> None:
        """Focus the question."""
        self._question.focus()

    def on_resize(self, event: events.Resize) -> None:
        """Fit the question to the screen."""
        self._question.fit(event.size.height)

    @on(Question.Answered)
    def _answered(self, event: Question.Answered) -> None:
        event.stop()
        self.dismiss(event.reply.value)

    @on(Question.Typed)
    def _typed_elsewhere(self, event: Question.Typed) -> None:
        event.stop()
        self._typed(events.Paste(event.text))

    @on(Question.Erased)
    def _erased_elsewhere(self, event: Question.Erased) -> None:
        event.stop()
        self._typed(events.Key("backspace", None))


async def ask_for_trust(
    app: App[None], trust: FolderTrust, typed: Callable[[events.Key | events.Paste], None]
) -> None:
    """Ask about a folder's undecided files. An answer that cannot be saved counts as none."""
    files = trust.undecided()
    while True:
        answer = await app.push_screen_wait(TrustScreen(trust, files, typed))
        if answer != SHOW:
            break
        await app.push_screen_wait(TextScreen("What this folder brings along", trust.shown(files)))
    try:
        if answer == TRUST:
            trust.trust(files)
        elif answer == NEVER:
            trust.refuse(files)
    except SettingsError as error:
        _log.warning("the answer could not be kept: %s", error)
        trust.problem = str(error)
