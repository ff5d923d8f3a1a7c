"""Questions above the prompt box: one at a time, each awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from textual.css.query import NoMatches

from rolling_chat.agent.questions import Reply
from rolling_chat.tui.widgets.question import Question

if TYPE_CHECKING:
    from textual.widget import Widget

    from rolling_chat.agent.questions import UserQuestion
    from rolling_chat.tui.state.screen_state import ScreenState


class QuestionStage(Protocol):
    """The part of the screen that a question uses."""

    state: ScreenState

    def question_slot(self) -> Widget:
        """Return the container of the question; raise NoMatches while the screen is being closed."""
        ...

    def fit_question(self) -> None:
        """Fit the question's height to the rows available."""
        ...

    def take_focus(self) -> None:
        """Focus the widget that should have the keys now."""
        ...

    def add_class(self, *class_names: str) -> object:
        """Add a style class to the screen."""
        ...

    def remove_class(self, *class_names: str) -> object:
        """Remove a style class from the screen."""
        ...

    def call_attention(self, line: str) -> None:
        """Notify a user who is looking elsewhere of `line`."""
        ...

    def call_after_refresh(self, callback: Callable[[], None]) -> object:
        """Call a function after the next redraw."""
        ...


class Asking:
    """Shows questions to the user on a chat screen, one at a time; `clock` is monotonic, in seconds."""

    def __init__(self, stage: QuestionStage, clock: Callable[[], float]) -> None:
        self._stage = stage
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._question: Question | None = None
        self._answer: asyncio.Future[Reply] | None = None

    @property
    def question(self) -> Question | None:
        """The question that waits for an answer, if any."""
        return self._question

    async def ask(self, asked: UserQuestion) -> Reply:
        """Show a question and return its answer; questions asked meanwhile wait their turn."""
        async with self._one_at_a_time:
            question = Question(asked, self._clock)
            self._question, self._answer = question, asyncio.get_running_loop().create_future()
            self._stage.add_class("-asking")
            try:
                await self._stage.question_slot().mount(question)
                self._stage.fit_question()
                self._stage.take_focus()
                self._stage.state.changed()
                self._stage.call_attention("a question waits for your answer")
                return await self._answer
            finally:
                self._question = self._answer = None
                self._stage.remove_class("-asking")
                with suppress(NoMatches):
                    # before the question is removed, which would pass the focus to a neighbor
                    self._stage.take_focus()
                    question.remove()
                self._stage.call_after_refresh(self._stage.state.changed)

    @property
    def takes_words(self) -> bool:
        """Whether the prompt box takes the words of an answer to the open question."""
        return self._question is not None and self._question.takes_words

    def give_words(self, text: str) -> bool:
        """Send `text` with the answer that the user is giving; return False if no answer takes words."""
        if self._question is None or not self._question.takes_words:
            return False
        self._question.give_words(text)
        return True

    def cancel(self) -> None:
        """Cancel the open question, unless a turn runs, because the user went on by typing."""
        if self._question is not None and not self._stage.state.busy:
            self.answer(self._question, Reply(""))

    def answer(self, question: Question, reply: Reply) -> None:
        """Answer a question with `reply`; do nothing if that question is no longer open."""
        if question is self._question and self._answer is not None and not self._answer.done():
            self._answer.set_result(reply)
