"""Hypothesis strategies for conversations, and short ways to write them in tests."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import strategies as st

from rolling_chat.messages import picture_part
from rolling_chat.pictures import data_uri
from tests.support.pictures import bomb, png

WORDS = st.text(alphabet=st.sampled_from('abc de fgh\n0123{}",:é中😀'), min_size=1, max_size=120).filter(
    str.strip
) | st.integers(1, 400).map(lambda size: "some words of a log line 0x1f\n" * size)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str, *calls: tuple[str, str]) -> dict[str, Any]:
    """An assistant message; `calls` are (id, tool name)."""
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
            for call_id, name in calls
        ]
    return message


def tool(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


@st.composite
def turns(draw: st.DrawFn) -> list[dict[str, Any]]:
    """One turn: a request, some iterations of one to three calls, perhaps an answer."""
    messages = [user(draw(WORDS))]
    for number in range(draw(st.integers(0, 4))):
        ids = [f"c{number}_{at}" for at in range(draw(st.integers(1, 3)))]
        messages.append(assistant(draw(st.just("") | WORDS), *((one, "read_file") for one in ids)))
        messages.extend(tool(one, draw(WORDS)) for one in ids)
    if draw(st.booleans()):
        messages.append(assistant(draw(WORDS)))
    return messages


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A well-formed conversation with its system message first."""
    messages = [{"role": "system", "content": "You are a careful assistant."}]
    for turn in draw(st.lists(turns(), min_size=1, max_size=8)):
        messages.extend(turn)
    return messages


@st.composite
def torn_conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A conversation from which messages were lost at random: orphans, gaps, an assistant first."""
    messages = draw(conversations())
    lost = draw(st.sets(st.integers(1, len(messages)), max_size=len(messages) // 2))
    return [message for at, message in enumerate(messages) if at not in lost]


MODELS = st.sampled_from([None, "gpt-4o", "anthropic/claude-sonnet-4-5", "demo/offline", "nobody/knows"])
ESTIMATORS = ["auto", "auto", "ratio", "chars", "bytes", "cl100k_base", "o200k_base"]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 40}}
# of unknown size, small, large
PICTURES = [
    IMAGE,
    picture_part(data_uri("image/png", png(30, 20))),
    picture_part(data_uri("image/png", bomb(3_000))),
]
SIGNED = {"thinking_blocks": [{"type": "thinking", "thinking": "hm, hm", "signature": "c2lnbmVk" * 20}]}


class _World:
    """Writes turns as the world sends them: images, names, steering, parallel calls, odd arguments.

    A seed a turn keeps drawing cheap, and lets Hypothesis take whole turns out of a counterexample.
    """

    _ODD_TEXTS = ("", " ", "\n\n", "ok", "[goes on]", "[no result was recorded]", "é中😀 " * 9)
    _ODD_ARGUMENTS = (
        "",
        "not json",
        "[1, 2]",
        '{"path": "a.py", "start": 1}',
        '{"x": "\\ud800"}',
        '{"a":' * 40 + "1" + "}" * 40,
    )

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def turn(self) -> list[dict[str, Any]]:
        one_in = self._one_in
        request: dict[str, Any] = user(self.text())
        if one_in(6):
            request["content"] = self._parts()
        if one_in(6):
            request["name"] = "ann"
        messages = [request]
        for number in range(self._random.randint(0, 5)):
            messages += self._iteration(number % 3)
            if one_in(6):
                messages.append({**user(self.text()), "turn": "same"})
        if one_in(2):
            messages.append(assistant(self.text()))
        if one_in(12):
            messages.append({"role": "system", "content": self.text()})
        return messages

    def text(self) -> str:
        if self._one_in(4):
            return self._random.choice(self._ODD_TEXTS)
        line = self._random.choice(
            ["some words of a log line 0x1f\n", "prose that goes on ", '{"a": 1, "b": [2]}', "a.py: get_x() "]
        )
        return line * int(1.5 ** self._random.uniform(0, 11))

    def _iteration(self, number: int) -> list[dict[str, Any]]:
        ids = [f"c{number}_{at}" for at in range(self._random.choice([1, 1, 2, 4]))]
        tools = ["read_file", "write_file", "edit_file", "run_command", "list_files", "todo"]
        names = [self._random.choice(tools) for _ in ids]
        message = assistant(self.text(), *zip(ids, names, strict=True))
        for call in message["tool_calls"]:
            is_todo = call["function"]["name"] == "todo"
            call["function"]["arguments"] = self._todo() if is_todo else self._arguments()
        if self._one_in(4):
            message |= SIGNED
        results = [tool(one, self.text()) for one in ids]
        for name, result in zip(names, results, strict=True):
            if self._one_in(2):
                result["name"] = name
            if self._one_in(8):
                result["content"] = self._parts()
        self._random.shuffle(results)
        return [message, *results]

    def _arguments(self) -> str:
        if self._one_in(4):
            return self._random.choice(self._ODD_ARGUMENTS)
        path = self._random.choice(["a.py", "b.py"])
        if self._one_in(4):
            return json.dumps({"path": ".", "command": self._random.choice(["make", f"rm {path}", "ls"])})
        return json.dumps({"path": path, "content": self.text()} if self._one_in(2) else {"path": path})

    def _todo(self) -> str:
        marks = self._random.choices(["[ ] ", "[>] ", "[x] "], k=self._random.randint(0, 12))
        return json.dumps(
            {"items": [f"{mark}step {at} {self.text()[:250]}" for at, mark in enumerate(marks)]}
        )

    def _parts(self) -> list[dict[str, Any]]:
        return [
            self._random.choice(PICTURES) if self._one_in(2) else {"type": "text", "text": self.text()}
            for _ in range(self._random.randint(1, 3))
        ]

    def _one_in(self, number: int) -> bool:
        return self._random.randrange(number) == 0


WINDOWS = st.integers(200, 4_000) | st.integers(200, 50_000)
_SEEDS = st.integers(0, 2**32)


@st.composite
def wild_conversations(draw: st.DrawFn, *, ends_with_request: bool = False) -> list[dict[str, Any]]:
    """Anything that a program may hand over: odd contents, signed reasoning, and perhaps torn."""
    messages: list[dict[str, Any]] = []
    if draw(st.integers(0, 7)):
        messages.append(
            {"role": "system", "content": draw(_SEEDS.map(lambda seed: _World(seed).text()[:2_000]))}
        )
    for seed in draw(st.lists(_SEEDS, min_size=1, max_size=6)):
        messages += _World(seed).turn()
    if draw(st.integers(0, 2)) == 0:
        lost = draw(st.sets(st.integers(0, len(messages)), max_size=4))
        messages = [message for at, message in enumerate(messages) if at not in lost]
    if ends_with_request and (not messages or messages[-1]["role"] == "assistant"):
        messages.append(user("and now?"))
    return messages


@st.composite
def context_settings(draw: st.DrawFn, windows: st.SearchStrategy[int] = WINDOWS) -> dict[str, Any]:
    """Every key of ContextConfig, most of them as they come out of the box most of the time."""
    chosen = draw(st.sets(st.sampled_from(sorted(_KEYS)), max_size=7))
    return {"max_context_tokens": draw(windows), **{key: draw(_KEYS[key]) for key in sorted(chosen)}}


_KEYS: dict[str, st.SearchStrategy[Any]] = {
    "reserved_output_tokens": st.integers(0, 20_000),
    "safety_margin": st.floats(0, 0.5),
    "max_history_tokens": st.integers(0, 30_000),
    "preserve_recent_turns": st.integers(0, 8),
    "usage_threshold": st.floats(0.1, 1),
    "trim_to": st.floats(0.05, 1),
    "trim_strategy": st.sampled_from(["priority", "priority-based", "age", "oldest-first"]),
    "summarize": st.sampled_from(["off", "extract", "model"]),
    "max_tool_result_tokens": st.integers(1, 10_000),
    "tool_result_truncation": st.sampled_from(["auto", "auto", "head", "tail", "both"]),
    "tool_result_keep_first": st.integers(0, 4),
    "tool_result_keep_last": st.integers(0, 6),
    "tool_result_masking": st.sampled_from(["auto", "exact", "steps"]),
    "token_estimator": st.sampled_from(ESTIMATORS),
    "tools": st.fixed_dictionaries({"run_command": st.sampled_from(["auto", "head", "tail", "both"])}),
    "prompt_cache": st.booleans(),
    "input_limit": st.integers(0, 30_000),
    "max_output_tokens": st.integers(0, 10_000),
    "todo": st.booleans(),
    "notes": st.booleans(),
    "room": st.booleans(),
    "recall": st.booleans(),
    "omitted_names": st.sampled_from([0.02, 0.05, 0.05, 0.3]),
}


def requests_of(messages: list[dict[str, Any]], most: int = 5) -> list[int]:
    """The lengths of the branch at which a model was called, and its whole length: `most` of them,
    evenly spread."""
    called = [end for end in range(1, len(messages)) if messages[end]["role"] == "assistant"]
    ends = [*called, len(messages)] if messages else []
    step = max(1, -(-len(ends) // most))
    return ends[::-1][::step][::-1]


def nested(depth: int) -> list[Any]:
    """Lists inside each other."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


# by name: who prints an example must be able to
_UNWRITABLE = {"digits": 10**5_000, "deep": nested(400), "deeper": nested(5_000)}
_TEXT = st.text(st.characters(codec=None) | st.characters(categories=["Cs"]), max_size=5)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**300, 10**310)
    | st.floats()
    | _TEXT
    | st.sampled_from(sorted(_UNWRITABLE)).map(lambda name: _UNWRITABLE[name])
)
JUNK = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
"""Anything that could stand in JSON, and some of what only Python can hold."""

_ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "User", ""])
_IDS = st.sampled_from(["a", "b", "", 7, None]) | JUNK
_PARTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["text", "image_url"]) | JUNK,
        "text": _TEXT | JUNK,
        "image_url": JUNK,
    },
)
_FUNCTIONS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["read_file", "write_file"]) | JUNK,
        "arguments": st.sampled_from(['{"path": "a"}', ""]) | JUNK,
    },
)
_CALLS = st.fixed_dictionaries(
    {}, optional={"id": _IDS, "type": st.just("function") | JUNK, "function": _FUNCTIONS | JUNK}
)
MESSAGE_LIKE = st.fixed_dictionaries(
    {},
    optional={
        "role": _ROLES | JUNK,
        "content": WORDS | st.lists(_PARTS | JUNK, max_size=3) | JUNK,
        "tool_calls": st.lists(_CALLS | JUNK, max_size=3) | JUNK,
        "tool_call_id": _IDS,
        "name": JUNK,
        "turn": st.just("same") | JUNK,
        "thinking_blocks": JUNK,
        "vendor": JUNK,
    },
)
"""Dictionaries that look like messages, with anything in any field."""
