"""First requests: estimate and bound of recorded new conversations beside what their provider reported.

The records stay outside the project: `ROLLING_CHAT_USAGE_TRUTH` names a folder of `usage_truth*.jsonl*`
files, one request a line: `{provider, model, messages, tools, reported_input_tokens, source}`. Left out are
those whose tools were not recorded, or whose texts were cut after the fact. Counted apart are those with what
no text shows: a schema for the answer, thinking, files or pictures, a server's own tools, by the name of the
record; and those where an exact encoding proves that more was sent than was recorded.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rolling_chat.context import estimate_tokens, prompt_bound
from rolling_chat.context.families import family_of

_FOLDER = "ROLLING_CHAT_USAGE_TRUTH"
_UNDER, _MEDIAN = 0.01, 0.05  # the goals: u below what was reported, error of the estimate
_LARGE = 200  # tokens: below it a few of framing are a tenth
_CUT = re.compile(r"more characters truncated|\[truncated\]|… truncated")
_HIDDEN = re.compile(
    r"schema|structured|object|native_output|data_model|data_extraction|response_format|decimal|parse|guardrail"
    r"|thinking|reasoning|multimodal|media|image|audio|document|citations|parallel_chat|parallel-|task_budget"
    r"|handoffs|count-tokens|staged|configured|cache_read|cached_tokens|cache-tokens|cache_count|search|web"
    r"|native_tools|code_execution|computer|deferred|structured-|binary|uploaded|file|googleadk|google-tool"
    r"|from_other_model",
    re.IGNORECASE,
)
_EXACT = 8  # tokens by which an exact encoding may be off in framing


@dataclass(frozen=True)
class First:
    """One first request: its family, estimate, upper bound, and what was reported; `hidden` as above."""

    family: str
    estimate: int
    bound: int
    reported: int
    hidden: bool

    @property
    def error(self) -> float:
        """How far the estimate is off, as a share of the report."""
        return abs(self.estimate - self.reported) / self.reported


def run() -> Iterator[str]:
    """A line for every family, and one for all."""
    folder = os.environ.get(_FOLDER)
    if not folder:
        yield f"no first requests: set {_FOLDER} to a folder with usage_truth*.jsonl files"
        return
    by_family: dict[str, list[First]] = defaultdict(list)
    for path in sorted(Path(folder).glob("usage_truth*.jsonl*")):
        for one in _firsts(path):
            by_family[one.family].append(one)
    for family, found in sorted(by_family.items()):
        yield f"{family:<18} {_line(found)}"
    everything = [one for found in by_family.values() for one in found]
    if everything:
        yield f"{'all':<18} {_line(everything)}"
        large = [one for one in everything if one.reported >= _LARGE]
        yield f"{f'of {_LARGE} and more':<18} {_line(large)}"
    yield f"goals: u below in at most {100 * _UNDER:.0f} %, median error {100 * _MEDIAN:.0f} %"
    yield "not to be known: instructions of a server that no request shows, and reasoning that it keeps"


def _line(found: Sequence[First]) -> str:
    shown = [one for one in found if not one.hidden]
    if not shown:
        return f"{len(found):>4} requests, all of them with something hidden"
    errors = sorted(one.error for one in shown)
    median, most = (errors[min(len(errors) - 1, int(share * len(errors)))] for share in (0.5, 0.95))
    return (
        f"{len(shown):>4} requests, error median {100 * median:.1f} %, 95th percentile {100 * most:.1f} %, "
        f"u below {_under(shown)}; with {len(found) - len(shown)} that hide something {_under(found)}"
    )


def _under(found: Sequence[First]) -> str:
    below = sum(one.bound < one.reported for one in found)
    return f"{below} ({100 * below / len(found):.1f} %)"


def _firsts(path: Path) -> Iterator[First]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if _CUT.search(line):
                continue
            record = json.loads(line)
            roles = {message["role"] for message in record["messages"]}
            is_whole = record["tools"] is None or isinstance(record["tools"], list)
            if is_whole and "assistant" not in roles and record["messages"]:
                yield _first(record)


def _first(record: dict[str, Any]) -> First:
    messages, model, tools = record["messages"], record["model"], record["tools"] or None
    reported, family = int(record["reported_input_tokens"]), family_of(model)
    estimate = estimate_tokens(messages, model, tools)
    is_exact = family.name.startswith("openai") and not tools
    hidden = bool(_HIDDEN.search(record["source"].split(":", 1)[1].replace("spec/fixtures", "")))
    hidden = hidden or (is_exact and reported - estimate > _EXACT)
    return First(family.name, estimate, prompt_bound(messages, tools=tools, model=model), reported, hidden)
