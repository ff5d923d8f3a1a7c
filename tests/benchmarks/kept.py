"""What it keeps is what is needed: paths and identifiers that the next assistant message uses.

The transcripts stay outside the project: `ROLLING_CHAT_TRANSCRIPTS` names a folder of JSONL files, one
conversation a line with its `messages`, packed or not. Of the words of the next assistant message that
stood anywhere before, the share that also stands in the prompt, for each strategy at the same tokens.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rolling_chat.context import ContextConfig, ContextOverflowError, FinalPrompt, build_final_prompt
from rolling_chat.messages import Message

MODEL = "gpt-4o"
WINDOWS = (20_000, 32_000)
STRATEGIES = ("priority", "oldest-first")
_FOLDER = "ROLLING_CHAT_TRANSCRIPTS"
_MOST_POINTS = 60
_ATTEMPTS = 12
# paths, dotted names, and names that are no word of prose: snake_case, camelCase
_NAMES = re.compile(
    r"(?:[\w.-]*/)+[\w.-]{2,}|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+"
)


def run() -> Iterator[str]:
    """A line a file and window: how much of what is needed each strategy has in the prompt."""
    folder = os.environ.get(_FOLDER)
    if not folder:
        yield f"no transcripts: set {_FOLDER} to a folder of JSONL files"
        return
    for path in sorted(Path(folder).glob("*.jsonl*")):
        for window in WINDOWS:
            line = _line(path, window)
            if line:
                yield line


def _line(path: Path, window: int) -> str:
    hits, tokens = dict.fromkeys(STRATEGIES, 0), dict.fromkeys(STRATEGIES, 0)
    wanted_names = points = 0
    for messages in _conversations(path):
        for at, needed in _points(messages):
            built = _at_the_same_tokens(messages[:at], window)
            if built is None:
                continue
            points += 1
            wanted_names += len(needed)
            for name, (text, size) in built.items():
                hits[name] += sum(one in text for one in needed)
                tokens[name] += size
    if not points:
        return ""
    ours, theirs = (100 * hits[name] / max(1, wanted_names) for name in hits)
    more = 100 * (tokens["priority"] / tokens["oldest-first"] - 1)
    return (
        f"{path.name.split('.')[0]:<14} at {window:>6,}: priority {ours:5.1f} %, "
        f"oldest-first {theirs:5.1f} %, "
        f"{ours - theirs:+5.1f} points ({points} requests, {wanted_names} names, {more:+.1f} % tokens)"
    )


def _conversations(path: Path) -> Iterator[list[Message]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield [Message.from_dict(message) for message in json.loads(line)["messages"]]


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


def _at_the_same_tokens(messages: Sequence[Message], window: int) -> dict[str, tuple[str, int]] | None:
    """Both prompts where something had to leave, the larger one in a window so small that it is no more."""
    built = {name: _prompt(messages, window, name) for name in STRATEGIES}
    if any(prompt is None or not prompt.report.trimmed for prompt in built.values()):
        return None
    least = min(prompt.token_count for prompt in built.values() if prompt)
    for name in STRATEGIES:
        room = window
        for _ in range(_ATTEMPTS):
            prompt = built[name]
            if prompt is None or prompt.token_count <= least * 1.02:
                break
            room -= max(100, prompt.token_count - least)
            built[name] = _prompt(messages, max(1_000, room), name)
    sides = {name: prompt for name, prompt in built.items() if prompt is not None}
    if len(sides) < len(STRATEGIES):
        return None
    return {
        name: ("\n".join(map(_text, prompt.messages)), prompt.token_count) for name, prompt in sides.items()
    }


def _prompt(messages: Sequence[Message], window: int, strategy: Any) -> FinalPrompt | None:
    config = ContextConfig(
        max_context_tokens=window,
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
