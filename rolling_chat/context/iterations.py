"""Layers 3b and 3c: the iterations of a turn, whole, and which of their results may be masked."""

from __future__ import annotations

from collections.abc import Sequence

from rolling_chat.context.prompt_items import PromptItem


def split_iterations(turn: Sequence[PromptItem]) -> list[list[PromptItem]]:
    """The iterations of `turn`, oldest first: each call with all of its results.

    User messages and answers without calls belong to none and are left out.
    """
    found: list[list[PromptItem]] = []
    inside = False
    for item in turn:
        if item.message.tool_calls:
            found.append([item])
            inside = True
        elif item.message.role == "tool" and inside:
            found[-1].append(item)
        else:
            inside = False
    return found


def maskable_results(turn: Sequence[PromptItem], keep_first: int, keep_last: int) -> list[PromptItem]:
    """The results of `turn` between its first `keep_first` and its last `keep_last`.

    Never one of the newest iteration, which the model has not seen; none where both windows hold all.
    """
    results = [item for item in turn if item.message.role == "tool" and item.index >= 0]
    between = results[keep_first : max(keep_first, len(results) - keep_last)]
    iterations = split_iterations(turn)
    newest = {item.index for item in iterations[-1]} if iterations else set()
    return [item for item in between if item.index not in newest]
