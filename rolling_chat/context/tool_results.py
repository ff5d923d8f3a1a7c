"""Shorten tool results: cap each one (layer 3a), mask old ones (layer 3b)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rolling_chat.context.count_memo import CountMemo, CountText
from rolling_chat.context.cutting import cut_by_kind, describer
from rolling_chat.context_keys import Truncation
from rolling_chat.figures import rounded
from rolling_chat.messages import JsonObject, Message, is_picture, without_pictures

# A cut moves back to a line end that lies within this last share of the kept text.
_NEAR_LINE_END = 0.05
# tokens; with less room, lines are worth more than a note on the omitted ones
_MIN_NOTED = 250
_SEARCH_STEPS = 14
_KEPT = {"head": "first", "tail": "last", "both": "first+last", "auto": "parts"}


def shorten_result(
    message: Message, cap: int, style: Truncation, count: CountText, memo: CountMemo, *, recall: str = ""
) -> Message:
    """Cut the text of a result to `cap` tokens, including the indicator; return the same object if it fits.

    What is kept is the head, the tail, half of each, or the important parts for its kind of text. No text is
    replaced by a longer one. The texts of a list of parts are joined; images and other parts follow, not
    counted against the cap. `recall` is the line after the indicator.
    """
    text = message.text
    if _fits(text, cap, count, memo):
        return message
    # results are immutable but shaped for every request: cache the cut
    shorter = memo.cuts.get(
        text,
        ("result", cap, style, count, recall),
        lambda: truncate_text(text, cap, style, count, memo, recall=recall),
        len,
    )
    if len(shorter) >= len(text):
        return message
    others = other_parts(message)
    if others:
        return replace(message, content=({"type": "text", "text": shorter}, *others))
    return replace(message, content=shorter)


def drop_parts(message: Message, tokens: int, recall: str = "") -> Message:
    """Reduce a result to its text and a line for the dropped parts of `tokens`; unchanged if all is text."""
    if not other_parts(message):
        return message
    line = f"[truncated: kept first ~0 of ~{rounded(tokens)} tokens (head)]"
    return replace(message, content=_lines(message.text, line, recall))


def other_parts(message: Message) -> tuple[JsonObject, ...]:
    """Return the parts of the content that are not text, such as images."""
    if isinstance(message.content, str):
        return ()
    return tuple(part for part in message.content if part.get("type") != "text")


def has_unknown_parts(message: Message) -> bool:
    """Return whether a result has parts that are neither text nor pictures.

    Such a result is never masked, only dropped with its iteration, because the value of those parts is
    unknown."""
    return any(not is_picture(part) for part in other_parts(message))


def _fits(text: str, cap: int, count: CountText, memo: CountMemo) -> bool:
    # a character has at most four bytes, a token at least one, and no factor doubles that: short texts fit
    return 8 * len(text) <= cap or memo.count_text(text, count) <= cap


def truncate_text(
    text: str, cap: int, style: Truncation, count: CountText, memo: CountMemo, *, recall: str = ""
) -> str:
    """Cut `text` to `cap` tokens in `style`, with an indicator line followed by `recall`.

    The result exceeds `cap` only if these lines alone do. `auto` cuts by the kind of text, or like `both` if
    there is no room for that."""
    total = memo.count_text(text, count)
    if style == "auto":
        describe = describer(_indicator(cap, total, style), recall, brief=cap < _MIN_NOTED)
        shorter = cut_by_kind(text, len(text) * cap // max(1, total), cap, count, describe)
        if shorter:
            return shorter
    room = max(0, cap - count(_lines(_indicator(cap, total, style), recall)) - 2)
    indicator = _lines(_indicator(room, total, style), recall)
    parts: tuple[str, ...]
    match style:
        case "head":
            parts = (_head(text, room, count), indicator)
        case "tail":
            parts = (indicator, _tail(text, room, count))
        case "both" | "auto":
            parts = (_head(text, room // 2, count), indicator, _tail(text, room - room // 2, count))
    return _lines(*parts)


def recall_line(first: int, last: int = -1) -> str:
    """Return the line with the ids by which the model can read the original messages."""
    return f"[recall: r{first}-r{last}]" if last > first else f"[recall: r{first}]"


def _lines(*parts: str) -> str:
    return "\n".join(filter(None, parts))


def first_lines(text: str, cap: int, count: CountText) -> str:
    """Return as many whole lines from the beginning of `text` as fit in `cap` tokens."""
    if count(text) <= cap:
        return text
    kept = text[: _longest_fitting(lambda size: text[:size], len(text), cap, count)]
    return kept[: max(0, kept.rfind("\n"))].rstrip()


def mask_result(
    message: Message, count: CountText, memo: CountMemo, *, parts: int = 0, recall: str = ""
) -> Message:
    """Replace a result with a short mask (layer 3b); return the same object if the mask is not shorter.

    `parts` is the cost of its images and other non-text parts, in tokens: they are dropped too.
    """
    tokens = memo.count_text(message.text, count) + parts
    mask = _lines(f"[result masked — ~{rounded(tokens)} tokens removed]", recall)
    if (len(mask) >= len(message.text) and not parts) or count(mask) >= tokens:
        return message
    return replace(message, content=mask)


def mask_pictures(message: Message, tokens: int, recall: str = "") -> Message:
    """Replace the pictures of a message, together `tokens`, with lines; its text stays."""
    return without_pictures(message, _lines(f"[picture omitted — ~{rounded(tokens)} tokens removed]", recall))


def _indicator(kept: int, total: int, style: Truncation) -> str:
    return f"[truncated: kept {_KEPT[style]} ~{rounded(kept)} of ~{rounded(total)} tokens ({style})]"


def _head(text: str, room: int, count: CountText) -> str:
    length = _longest_fitting(lambda size: text[:size], len(text), room, count)
    kept = text[:length]
    line_end = kept.rfind("\n")
    if line_end >= length * (1 - _NEAR_LINE_END) and length < len(text):
        kept = kept[:line_end]
    return kept


def _tail(text: str, room: int, count: CountText) -> str:
    length = _longest_fitting(lambda size: text[len(text) - size :], len(text), room, count)
    kept = text[len(text) - length :]
    line_end = kept.find("\n")
    if 0 <= line_end <= length * _NEAR_LINE_END and length < len(text):
        kept = kept[line_end + 1 :]
    return kept


def _longest_fitting(cut: Callable[[int], str], length: int, room: int, count: CountText) -> int:
    """Return the largest number of characters that count at most `room`: by interpolation, then bisection."""
    low, high = 0, length
    if room <= 0:
        return 0
    # a token has at least one byte and a character at most four: never look far beyond the room
    guess = min(length, room * 4)
    for _ in range(_SEARCH_STEPS):
        tokens = count(cut(guess))
        if tokens <= room:
            low = guess
            if tokens >= room * 0.99:
                break
        else:
            high = guess - 1
        if low >= high:
            break
        wanted = int(guess * room / max(tokens, 1))
        guess = wanted if low < wanted <= high else (low + high + 1) // 2
    return low
