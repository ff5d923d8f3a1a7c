"""What a small model still knows of eight facts after 25 turns of other matter, by the memory that it has.

`REMEMBERED_ADDRESS` names a server with one model, such as `http://127.0.0.1:8091/v1`, or with the one of
`REMEMBERED_MODEL`; `REMEMBERED_FOLDER` is where every answer is written, and from where a run that was
stopped goes on. `REMEMBERED_WINDOW` is the window (4,096), `REMEMBERED_TOOL_CALLS` the model's setting
`tool_calls` ("text").

The talk is held once, with replies of at most 80 tokens. Each memory is then given the same talk, word for
word, makes its own summaries with the real model, and is asked for each fact where the talk ended. A line
says how many were answered, and how many were in the first and in the last prompt of the question.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from rolling_chat.providers.protocol import ProviderError
from rolling_chat.providers.served import served_model
from tests.benchmarks.remembered.asking import Arm, Asked, Tried, talk, try_arm
from tests.benchmarks.remembered.facts import FACTS, MATTER, TOLD, Fact

_ADDRESS, _FOLDER = "REMEMBERED_ADDRESS", "REMEMBERED_FOLDER"

ARMS = (
    Arm("right after", at_once=True),
    Arm("neither"),
    Arm("summaries", summarize="model"),
    Arm("recall", recall=True),
    Arm("both", summarize="model", recall=True),
    Arm("summaries by rule", summarize="extract"),
)


def run() -> Iterator[str]:
    """Yield two lines for each memory: what was answered, and what the summary kept."""
    address, folder = os.environ.get(_ADDRESS, ""), os.environ.get(_FOLDER, "")
    if not address:
        yield f"not run: set {_ADDRESS} to the address of a server with a model"
        return
    if not folder:
        yield f"not run: set {_FOLDER} to a folder for the answers; on a small machine it takes hours"
        return
    try:
        model = served_model(address, os.environ.get("REMEMBERED_MODEL", ""), os.environ)
    except ProviderError as error:
        yield f"not run: {error}"
        return
    window = int(os.environ.get("REMEMBERED_WINDOW", "4096"))
    asked = Asked(model, address, window, os.environ.get("REMEMBERED_TOOL_CALLS", "text"))
    yield from run_all(asked, Path(folder))


def run_all(
    asked: Asked,
    folder: Path,
    arms: Sequence[Arm] = ARMS,
    told: Sequence[str] = TOLD,
    matter: Sequence[str] = MATTER,
) -> Iterator[str]:
    """Hold the talk and try every arm. Raises ValueError where the folder is of another run."""
    folder.mkdir(parents=True, exist_ok=True)
    _check(folder / "run.json", asked)
    yield f"{asked.model}, window {asked.window:,}, replies of at most {asked.cap} tokens; in {folder}"
    said = (*told, *matter)
    replies = asyncio.run(talk(folder, asked, said))
    whole = list(zip(said, replies, strict=True))
    for arm in arms:
        part = whole[: len(told)] if arm.at_once else whole
        yield from lines_of(arm, asyncio.run(try_arm(folder, asked, arm, part, FACTS)), FACTS)


def _check(path: Path, asked: Asked) -> None:
    # the address may be another one the next time
    header = json.dumps({key: value for key, value in asdict(asked).items() if key != "address"})
    if not path.exists():
        path.write_text(header, encoding="utf-8")
    if path.read_text(encoding="utf-8") != header:
        raise ValueError(f"{path.parent} is of another run: {path.read_text(encoding='utf-8')}")


def lines_of(arm: Arm, tried: Tried, facts: Sequence[Fact]) -> Iterator[str]:
    """Yield what an arm came to."""
    answers = tried.answers
    right, first, last = (
        sum(getattr(one, key) for one in answers) for key in ("is_right", "in_first", "in_last")
    )
    seconds = sum(one.seconds for one in answers) / max(1, len(answers))
    missed = ", ".join(one.fact for one in answers if not one.is_right) or "none"
    yield (
        f"{arm.name:<18} {right} of {len(answers)} answered; in the prompt {first}, at last {last}; "
        f"{sum(one.recalls for one in answers)} recalls; {seconds:.0f} s a question; missed: {missed}"
    )
    if arm.summarize != "off":
        kept = sum(fact.is_in(tried.summary) for fact in facts)
        yield (
            f"{'':<18} the summary has {kept} of {len(facts)}, in {len(tried.summary):,} characters after "
            f"{tried.passes} questions"
        )
    for notice in tried.notices:
        yield f"{'':<18} {notice}"
