"""Layers 3b and 3c: the iterations of a turn, whole, and which of their results may be masked."""

from __future__ import annotations

from collections.abc import Sequence

from rolling_chat.context.pieces import Piece


def split_iterations(turn: Sequence[Piece]) -> list[list[Piece]]:
    """The iterations of `turn`, oldest first: each call with all of its results.

    User messages and answers without calls belong to none and are left out.
    """
    found: list[list[Piece]] = []
    inside = False
    for piece in turn:
        if piece.message.tool_calls:
            found.append([piece])
            inside = True
        elif piece.message.role == "tool" and inside:
            found[-1].append(piece)
        else:
            inside = False
    return found


def maskable_results(turn: Sequence[Piece], keep_first: int, keep_last: int) -> list[Piece]:
    """The results of `turn` between its first `keep_first` and its last `keep_last`.

    Never one of the newest iteration, which the model has not seen; none where both windows hold all.
    """
    results = [piece for piece in turn if piece.message.role == "tool" and piece.index >= 0]
    between = results[keep_first : max(keep_first, len(results) - keep_last)]
    iterations = split_iterations(turn)
    newest = {piece.index for piece in iterations[-1]} if iterations else set()
    return [piece for piece in between if piece.index not in newest]
