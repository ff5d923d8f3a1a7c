"""What it keeps is what is needed: paths and identifiers that the next assistant message uses.

Of the words of the next assistant message that stood anywhere before in a transcript, the share that also
stands in the prompt: for each strategy in the same window, then at the same tokens, the larger prompt held to
so little that it is no more. Beside them the most that anyone could reach at those tokens: a choice of
messages that knows what will be needed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    FinalPrompt,
    build_final_prompt,
    count_tokens,
)
from rolling_chat.messages import Message
from tests.benchmarks.reading import NO_TRANSCRIPTS, conversations, transcript_files

MODEL = "gpt-4o"
WINDOWS = (20_000, 32_000)
STRATEGIES = ("priority", "oldest-first")
_MOST_POINTS = 60
_ATTEMPTS = 12
# paths, dotted names, and names that are no word of prose: snake_case, camelCase
_NAMES = re.compile(
    r"(?:[\w.-]*/)+[\w.-]{2,}|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+"
)


def run() -> Iterator[str]:
    """A line a file and window: how much of what is needed each strategy has in the prompt."""
    files = transcript_files()
    if not files:
        yield NO_TRANSCRIPTS
    for path in files:
        for window in WINDOWS:
            line = _line(path, window)
            if line:
                yield line


def _line(path: Path, window: int) -> str:
    hits: Counter[str] = Counter()
    names = points = 0
    for conversation in conversations(path):
        messages = [Message.from_dict(message) for message in conversation["messages"]]
        for at, needed in _points(messages):
            before = messages[:at]
            built = {name: _prompt(before, window, name) for name in STRATEGIES}
            held = _at_the_same_tokens(before, window, built)
            if held is None:
                continue
            points += 1
            names += len(needed)
            for name in STRATEGIES:
                hits[name] += _found(needed, _said(built[name]))
                hits[f"{name} held"] += _found(needed, _said(held[name]))
            hits["most"] += _most(before, needed, held["oldest-first"].token_count)
    if not points:
        return ""
    share = {name: 100 * hits[name] / max(1, names) for name in hits}
    return (
        f"{path.name.split('.')[0]:<13} at {window:>6,}: "
        f"same window {share['priority']:5.1f} and {share['oldest-first']:5.1f} %, "
        f"same tokens {share['priority held']:5.1f} and {share['oldest-first held']:5.1f} %, "
        f"at most {share['most']:5.1f} % ({points} requests, {names} names)"
    )


def _found(needed: set[str], text: str) -> int:
    return sum(name in text for name in needed)


def _said(prompt: FinalPrompt | None) -> str:
    return "\n".join(map(_text, prompt.messages)) if prompt else ""


def _most(messages: Sequence[Message], needed: set[str], room: int) -> int:
    """How many of `needed` a choice of whole messages finds room for that knows them.

    What every prompt has stands first: the system message, the request, the newest message. Then what
    has the most names a token.
    """
    request = max((at for at, message in enumerate(messages) if message.role == "user"), default=0)
    texts = {at: _text(message) for at, message in enumerate(messages)}
    chosen = {0, request, len(messages) - 1}
    room -= sum(_cost(texts[at]) for at in chosen)
    missing = {name for name in needed if not any(name in texts[at] for at in chosen)}
    worth = {at: _cost(text) for at, text in texts.items() if at not in chosen and _found(missing, text)}
    while missing:
        fitting = [at for at in worth if worth[at] <= room and _found(missing, texts[at])]
        if not fitting:
            break
        best = max(fitting, key=lambda at: _found(missing, texts[at]) / worth[at])
        room -= worth.pop(best)
        missing -= {name for name in missing if name in texts[best]}
    return len(needed) - len(missing)


def _cost(text: str) -> int:
    return count_tokens(text, MODEL) + 4


def _points(messages: Sequence[Message]) -> Iterator[tuple[int, set[str]]]:
    """Where a model was called after something had to leave, and the names it used that it had seen."""
    sizes, size = [], 0
    for message in messages:
        sizes.append(size)
        size += len(_text(message))
    asked = [
        at
        for at, message in enumerate(messages)
        if at > 1 and message.role == "assistant" and sizes[at] > 2 * WINDOWS[0]
    ]
    step = max(1, len(asked) // _MOST_POINTS)
    for at in asked[::step]:
        before = "\n".join(map(_text, messages[:at]))
        needed = {name for name in _NAMES.findall(_text(messages[at])) if name in before}
        if needed:
            yield at, needed


def _at_the_same_tokens(
    messages: Sequence[Message], window: int, built: Mapping[str, FinalPrompt | None]
) -> dict[str, FinalPrompt] | None:
    """Both prompts where something had to leave, the larger one held to so little that it is no more."""
    built = dict(built)
    if any(prompt is None or not prompt.report.trimmed for prompt in built.values()):
        return None
    least = min(prompt.token_count for prompt in built.values() if prompt)
    for name in STRATEGIES:
        for _ in range(_ATTEMPTS):
            prompt = built[name]
            if prompt is None or prompt.token_count <= least * 1.02:
                break
            room = prompt.report.bound - max(100, prompt.token_count - least)
            built[name] = _prompt(messages, window, name, max(1_000, room))
    sides = {name: prompt for name, prompt in built.items() if prompt is not None}
    return sides if len(sides) == len(STRATEGIES) else None


def _prompt(
    messages: Sequence[Message], window: int, strategy: Any, input_limit: int = 0
) -> FinalPrompt | None:
    config = ContextConfig(
        max_context_tokens=window,
        input_limit=input_limit,
        max_history_tokens=0,
        trim_to=1.0,
        trim_strategy=strategy,
        prompt_cache=True,
    )
    try:
        return build_final_prompt(messages, config, model=MODEL)
    except ContextOverflowError:
        return None


def _text(message: Message) -> str:
    return "\n".join((message.text, *(call.arguments for call in message.tool_calls)))
