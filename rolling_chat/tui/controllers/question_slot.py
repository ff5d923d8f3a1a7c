"""Questions above the prompt box: one at a time, each waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from textual.css.query import NoMatches

from rolling_chat.tui.widgets.question import Reply

if TYPE_CHECKING:
    from textual.widget import Widget

    from rolling_chat.tui.state.screen_state import ScreenState
    from rolling_chat.tui.widgets.question import Question


class QuestionStage(Protocol):
    """What a question needs of the screen."""

    state: ScreenState

    def question_slot(self) -> Widget:
        """The widget that takes a question; raises NoMatches when the screen is being left."""
        ...

    def fit_question(self) -> None:
        """Give the question the rows that it can have."""
        ...

    def take_focus(self) -> None:
        """Give the keys to whoever should have them now."""
        ...

    def add_class(self, *class_names: str) -> object:
        """Style the screen as one that asks."""
        ...

    def remove_class(self, *class_names: str) -> object:
        """Style it as before."""
        ...

    def call_after_refresh(self, callback: Callable[[], None]) -> object:
        """Do something once the question is gone from the screen."""
        ...


class Asking:
    """The question that is asked on a chat screen, if any."""

    def __init__(self, stage: QuestionStage) -> None:
        self._stage = stage
        self._one_at_a_time = asyncio.Lock()
        self._question: Question | None = None
        self._answer: asyncio.Future[Reply] | None = None

    @property
    def question(self) -> Question | None:
        """The question that waits for its answer."""
        return self._question

    async def ask(self, question: Question) -> Reply:
        """Show a question and wait for its answer; another waits until this one is gone."""
        async with self._one_at_a_time:
            self._question, self._answer = question, asyncio.get_running_loop().create_future()
            self._stage.add_class("-asking")
            try:
                await self._stage.question_slot().mount(question)
                self._stage.fit_question()
                self._stage.take_focus()
                self._stage.state.changed()
                return await self._answer
            finally:
                self._question = self._answer = None
                self._stage.remove_class("-asking")
                with suppress(NoMatches):
                    self._stage.take_focus()  # before what has it is gone, and hands it to its neighbour
                    question.remove()
                self._stage.call_after_refresh(self._stage.state.changed)

    @property
    def takes_words(self) -> bool:
        """Whether the words of an answer are being written in the prompt box."""
        return self._question is not None and self._question.takes_words

    def give_words(self, text: str) -> bool:
        """Send `text` with the answer that the user is giving; False where no answer takes words."""
        if self._question is None or not self._question.takes_words:
            return False
        self._question.give_words(text)
        return True

    def leave(self) -> None:
        """Cancel a question between turns, for whoever writes on has answered it; one of a turn stays."""
        if self._question is not None and not self._stage.state.busy:
            self.answer(self._question, Reply(""))

    def answer(self, question: Question, reply: Reply) -> None:
        """Hand the reply to who asked; a late one to a question that is gone answers nothing."""
        if question is self._question and self._answer is not None and not self._answer.done():
            self._answer.set_result(reply)
