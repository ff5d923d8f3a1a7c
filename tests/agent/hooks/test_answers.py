"""Whatever a hook writes is an answer or a fault, bounded and without control characters."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.agent.hooks.answers import MAX_TEXT, HookAnswer, read_answer
from rolling_chat.settings.hook_settings import EVENTS
from rolling_chat.tools.process import Ended, Output

FIELDS = (
    "decision",
    "reason",
    "continue",
    "stopReason",
    "systemMessage",
    "hookSpecificOutput",
    "additionalContext",
)
WORDS = st.sampled_from(["block", "deny", "allow"])
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=40), WORDS)


def nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3))


VALUES = st.recursive(LEAVES, nested, max_leaves=8)


def answer(event: str, output: bytes, errors: bytes = b"", code: int = 0) -> HookAnswer:
    out, err = Output(1_000), Output(1_000)
    out.add(output)
    err.add(errors)
    return read_answer(event, Ended(out, code, timed_out=False, left=()), err, 60)


@given(
    st.sampled_from(EVENTS), st.binary(max_size=200), st.binary(max_size=200), st.sampled_from([0, 1, 2, -9])
)
def test_any_bytes(event: str, output: bytes, errors: bytes, code: int) -> None:
    _require_sound(answer(event, output, errors, code))


@given(st.sampled_from(EVENTS), st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=7))
def test_any_json(event: str, data: dict[str, object]) -> None:
    _require_sound(answer(event, json.dumps(data).encode()))


def _require_sound(found: HookAnswer) -> None:
    assert found.decision in ("", "allow", "ask", "deny")
    for text in (found.reason, found.context):
        assert len(text) < MAX_TEXT + 100
        assert not any(ord(char) < 32 and char not in "\n\t" for char in text)
        text.encode("utf-8")
    for line in (found.message, found.fault):
        assert line.isprintable()
    assert not (found.fault and found.decision)


def test_what_is_too_long_says_so() -> None:
    out = Output(100_000)
    out.add(b"x" * 50_000)
    found = read_answer("UserPromptSubmit", Ended(out, 0, timed_out=False, left=()), Output(), 60)
    assert found.context.endswith(f"[… cut at {MAX_TEXT:,} characters]")
