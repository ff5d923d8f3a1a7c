"""Open the session to which a chat switches from the current one."""

from __future__ import annotations

from rolling_chat.agent.errors import in_words
from rolling_chat.agent.models import pick_model
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session import Session
from rolling_chat.events import Listener
from rolling_chat.sessions.records import SessionInfo


class NextSession:
    """Opens another session; the current one, `before`, stays open. All methods raise ChatError.

    They call the store several times: if it is remote, call them from a thread.
    """

    def __init__(self, runtime: Runtime, listener: Listener, before: Session) -> None:
        self._runtime = runtime
        self._listener = listener
        self._before = before

    def new(self) -> Session:
        """Open a new session with the same model."""
        before = self._before
        with in_words():
            info = self._runtime.store.create_session(
                folder=str(self._runtime.folder),
                model=before.chosen.model,
                api_base=before.chosen.address,
                rolling=self._runtime.settings.context.enabled,
            )
            return self._opened(info, *before.chosen, before.chosen_line)

    def saved(self, id_start: str) -> Session:
        """Open the session whose id begins with `id_start`; return the current one if it is that."""
        before = self._before
        with in_words():
            info = self._runtime.store.session(id_start)
            if info.id == before.info.id:
                return before
            (model, address), line = before.chosen, before.chosen_line
            if info.model:  # an imported session has none, and keeps the current model
                choice = pick_model(self._runtime, "", info)
                model, address, line = choice.model, choice.address, choice.line
            return self._opened(info, model, address, line)

    def copy(self) -> Session:
        """Open a copy of the current session."""
        before = self._before
        before.refresh()  # the copy of a followed session keeps the model and address used there
        with in_words():
            info = self._runtime.store.fork(before.info.id)
            return self._opened(info, *before.chosen, before.chosen_line)

    def _opened(self, info: SessionInfo, model: str, address: str | None, line: str) -> Session:
        return Session(
            self._runtime, info, self._listener,
            model=model, address=address, rolling=info.rolling, model_line=line,
        )  # fmt: skip
