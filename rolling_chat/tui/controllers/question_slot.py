"""Questions above the prompt box: one at a time, each waited for."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from textual.css.query import NoMatches

if TYPE_CHECKING:
    from rolling_chat.tui.screens.chat import ChatScreen
    from rolling_chat.tui.widgets.question import Question, Reply


class Asking:
    """The question that is asked on a chat screen, if any."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
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
            self._screen.add_class("-asking")
            try:
                await self._screen.query_one("#question-slot").mount(question)
                self._screen.fit_question()
                self._screen.take_focus()
                self._screen.paint()
                return await self._answer
            finally:
                self._question = self._answer = None
                self._screen.remove_class("-asking")
                with suppress(NoMatches):
                    self._screen.take_focus()  # before what has it is gone, and hands it to its neighbour
                    question.remove()
                self._screen.call_after_refresh(self._screen.paint)

    @property
    def takes_words(self) -> bool:
        """Whether the words of an answer are being written in the prompt box."""
        return self._question is not None and self._question.takes_words

    def answer(self, question: Question, reply: Reply) -> None:
        """Hand the reply to who asked; a late one to a question that is gone answers nothing."""
        if question is self._question and self._answer is not None and not self._answer.done():
            self._answer.set_result(reply)
