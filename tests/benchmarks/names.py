"""The list of names that left (`omitted_names`): how much of what is needed it keeps, by order and by share.

Of the names in the next assistant message that stood anywhere before, the share that the prompt has: without
a list and with one, in the same window. Then, of the names that left and that the next assistant messages
use, the share that a list of that size has if it is ordered as it is, by one sign alone, or not at all.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rolling_chat.context import ContextConfig, ContextOverflowError, FinalPrompt, build_final_prompt
from rolling_chat.context.names import names_in
from rolling_chat.context.notice_contents import OmittedName
from rolling_chat.context.omitted_names import names_within, rank_names
from rolling_chat.context.report import Fate
from rolling_chat.context.tokens import bounding_estimator
from rolling_chat.message_lines import piece_text
from rolling_chat.messages import Message
from tests.benchmarks.reading import NO_TRANSCRIPTS, conversations, transcript_files

MODEL = "gpt-4o"
WINDOWS = (8_000, 16_000)
SHARE = 0.05
_MAX_POINTS = 40  # of one conversation
_CHARACTERS = 2  # a token of the window: less has not to leave
_NEXT = 12  # messages in which a name may be used before the next trim, or so

Order = Callable[[OmittedName, Mapping[str, int]], float]
ORDERS: Mapping[str, Order] = {
    "newest": lambda name, _: name.index,
    "most messages": lambda name, counts: counts[name.name],
    "at random": lambda name, _: int(hashlib.sha256(name.name.encode()).hexdigest()[:8], 16),
}


def run() -> Iterator[str]:
    """A line a file and window."""
    files = transcript_files()
    if not files:
        yield NO_TRANSCRIPTS
    for path in files:
        for window in WINDOWS:
            if line := _line(path, window):
                yield line


def _line(path: Path, window: int) -> str:
    counts: Counter[str] = Counter()
    for conversation in conversations(path):
        messages = [Message.from_dict(message) for message in conversation["messages"]]
        for at in _points(messages, window):
            counts += _at(messages, at, window)
    if not counts["points"]:
        return ""
    without, listed = (100 * counts[name] / max(1, counts["needed"]) for name in ("without", "with"))
    orders = ", ".join(
        f"{name} {100 * counts[name] / max(1, counts['left']):.0f}" for name in ("as it is", *ORDERS)
    )
    return (
        f"{path.name.split('.')[0]:<13} at {window:>6,}: names in the next message {without:5.1f} % without "
        f"a list, {listed:5.1f} % with one; of {counts['left']} that left and are used, listed {orders} % "
        f"({counts['points']} requests)"
    )


def _points(messages: Sequence[Message], window: int) -> list[int]:
    """Where a model was called after something had to leave."""
    asked, size = [], 0
    for at, message in enumerate(messages):
        if at > 1 and message.role == "assistant" and size > _CHARACTERS * window:
            asked.append(at)
        size += len(piece_text(message))
    return asked[:: max(1, -(-len(asked) // _MAX_POINTS))]


def _at(messages: Sequence[Message], at: int, window: int) -> Counter[str]:
    before = messages[:at]
    plain, listed = _prompt(before, window, 0.0), _prompt(before, window, SHARE)
    if plain is None or listed is None or not plain.report.trimmed:
        return Counter()
    past = {name for message in before for name, _ in names_in(piece_text(message))}
    needed = {name for name, _ in names_in(piece_text(messages[at]))} & past
    later = (one for one in messages[at : at + _NEXT] if one.role == "assistant")
    used = {name for one in later for name, _ in names_in(piece_text(one))}
    return Counter(
        {
            "points": 1,
            "needed": len(needed),
            "without": _found(needed, plain),
            "with": _found(needed, listed),
            **_by_order(before, plain, used, listed),
        }
    )


def _by_order(
    before: Sequence[Message], plain: FinalPrompt, used: set[str], listed: FinalPrompt
) -> dict[str, int]:
    """How many of the names that left and are used a list has, for every order of it."""
    fates = {Fate.OMITTED, Fate.MASKED, Fate.SHORTENED}
    left = [(row.index, before[row.index]) for row in plain.report.rows if row.fate in fates]
    ranked = rank_names(left, plain.messages, (), len(before))
    counts = Counter(
        name for _, message in left for name in {one for one, _ in names_in(piece_text(message))}
    )
    count = bounding_estimator(MODEL).bound_text
    most = count(listed.plan.decisions.notice.names_block(recall=True))
    lists = {
        name: sorted(ranked, key=lambda one, key=key: (-key(one, counts), one.name))
        for name, key in ORDERS.items()
    }
    return {
        "left": sum(name.name in used for name in ranked),
        **{
            name: sum(one.name in used for one in names_within(order, most, count))
            for name, order in {"as it is": ranked, **lists}.items()
        },
    }


def _found(needed: set[str], prompt: FinalPrompt) -> int:
    text = "\n".join(map(piece_text, prompt.messages))
    return sum(name in text for name in needed)


def _prompt(messages: Sequence[Message], window: int, share: float) -> FinalPrompt | None:
    config = ContextConfig(
        max_context_tokens=window, max_history_tokens=0, prompt_cache=True, recall=True, omitted_names=share
    )
    try:
        return build_final_prompt(messages, config, model=MODEL)
    except ContextOverflowError:
        return None
