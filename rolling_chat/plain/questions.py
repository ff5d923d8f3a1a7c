"""Questions as numbered lines, answered only by a number."""

from __future__ import annotations

from collections.abc import Sequence

from rolling_chat.agent.questions import Answer, Reply, UserQuestion
from rolling_chat.plain.console import Console
from rolling_chat.text import exact, visible

_PAGE = 40  # lines of the description written at once


async def ask(console: Console, question: UserQuestion) -> Reply:
    """Ask the user a question; Ctrl+C gives the harmless answer.

    Answers that approve are offered only after the whole description was written.
    """
    console.write(f"Question: {question.title}")
    lines = [visible(line) if question.is_diff else exact(line) for line in question.detail.split("\n")]
    at = 0
    while True:
        for line in lines[at : at + _PAGE]:
            console.write(f"  {line}")
        at += _PAGE
        is_whole = at >= len(lines)
        answers = [answer for answer in question.answers if is_whole or not answer.approves]
        answers = [answer for answer in answers if not (is_whole and answer.unseen)]
        chosen = await choose(
            console, [answer.label for answer in answers], more=0 if is_whole else len(lines) - at
        )
        if chosen == MORE:
            continue
        answer = answers[chosen] if chosen is not None else _harmless(question.answers)
        words = (await console.read("Why? ") or "") if answer.takes_words else ""
        return Reply(answer.value, words)


MORE = -1
"""Returned by `choose` if the user wants to read on."""


async def choose(console: Console, labels: Sequence[str], *, more: int = 0) -> int | None:
    """Let the user choose by number; return the index, MORE to read on, None for Ctrl+C or an empty line."""
    for number, label in enumerate(labels, 1):
        console.write(f"{number}. {label}")
    if more:
        console.write(f"{len(labels) + 1}. Read on: {more:,} more lines")
    count = len(labels) + bool(more)
    while True:
        line = await console.read(f"Number, 1 to {count}: " if count > 1 else "Number, 1: ")
        if line is None or not line.strip():
            return None
        text = line.strip().rstrip(".")
        if text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= count:
            index = int(text) - 1
            return MORE if index == len(labels) else index
        console.write(f"Write a number from 1 to {count}, or an empty line for none.")


def _harmless(answers: Sequence[Answer]) -> Answer:
    return next((answer for answer in answers if answer.escape), answers[0])
