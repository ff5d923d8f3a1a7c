"""The rules that providers hold a prompt to, written down apart from the pipeline.

Shares no code with `rolling_chat`: it reads plain dictionaries in OpenAI's format, turns them into
each provider's own form as client libraries do, and says in words what that provider would refuse.
`broken_rules` is what all of them ask for; `RULES` has a checker a provider. With `wire` the copy that
is really sent is checked: forms of ids too, which are rewritten on the way out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

Message = Mapping[str, Any]
_ROLES = {"system", "user", "assistant", "tool"}


def broken_rules(messages: Sequence[Message]) -> list[str]:
    """Everything wrong with a prompt, in words; empty when a provider would take it."""
    return [*_roles(messages), *_pairing(messages), *_contents(messages)]


def broken_openai_rules(messages: Sequence[Message], *, wire: bool = False) -> list[str]:
    """What Chat Completions refuses."""
    problems = [*broken_rules(messages), *_fields(messages), *_parts(messages)]
    if not messages:
        problems.append("no message at all")
    if wire:
        problems += _ids(messages, re.compile(r".{1,40}", re.DOTALL), unique=False)
        problems += _names(messages, re.compile(r"[a-zA-Z0-9_-]{1,64}"))
    return problems


def broken_anthropic_rules(messages: Sequence[Message], *, wire: bool = False) -> list[str]:
    """What the Messages API refuses, of the form that a client makes of these messages.

    The system message goes into a field of its own; results become blocks of a user message;
    messages of one role that follow each other are one message.
    """
    problems = [*broken_rules(messages), *_arguments(messages)]
    turns = _anthropic_turns(messages)
    if not turns:
        return [*problems, "no message but the system's"]
    if turns[0][0] != "user":
        problems.append("the first message is not the user's")
    for place, (role, blocks) in enumerate(turns):
        uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
        answers = turns[place + 1][1] if place + 1 < len(turns) else []
        problems += _anthropic_answers(place, uses, answers)
        before = (
            {block["id"] for block in turns[place - 1][1] if block["type"] == "tool_use"} if place else set()
        )
        for block in blocks:
            if block["type"] == "tool_result" and block["tool_use_id"] not in before:
                problems.append(f"turn {place}: a result for {block['tool_use_id']}, not called just before")
            if block["type"] == "text" and not block["text"].strip():
                problems.append(f"turn {place}: a text block of white space ({role})")
        if uses and blocks[-1]["type"] != "tool_use":
            problems.append(f"turn {place}: text after the calls of one message")
    last_role, last_blocks = turns[-1]
    if (
        last_role == "assistant"
        and last_blocks[-1].get("text", "x") != last_blocks[-1].get("text", "x").rstrip()
    ):
        problems.append("the answer to be continued ends with white space")
    if wire:
        problems += _ids(messages, re.compile(r"[a-zA-Z0-9_-]+"), unique=True)
        problems += _names(messages, re.compile(r"[a-zA-Z0-9_-]{1,128}"))
    return problems


def broken_gemini_rules(messages: Sequence[Message], *, wire: bool = False) -> list[str]:
    """What generateContent refuses: parts by role, calls and responses side by side and equal in number.

    Ids never reach Gemini; names of functions do, and begin with a letter or an underscore.
    """
    problems = [*broken_rules(messages), *_arguments(messages)]
    turns = _gemini_turns(messages)
    if not turns:
        return [*problems, "no content but the system's"]
    if turns[0][0] != "user":
        problems.append("the first content is not the user's")
    if turns[-1][0] == "model":
        problems.append("the contents end with the model's, not with the user's or a function's response")
    for place, (role, parts) in enumerate(turns):
        calls = parts.count("call")
        follows = turns[place + 1] if place + 1 < len(turns) else ("", [])
        if calls and (follows[0] != "function" or len(follows[1]) != calls):
            problems.append(
                f"content {place}: {calls} calls, then {len(follows[1])} parts of {follows[0] or 'nothing'}"
            )
        if role == "function" and (not place or "call" not in turns[place - 1][1]):
            problems.append(f"content {place}: responses that no call stands before")
        if calls and not place:
            problems.append("content 0: a call that nobody asked for")
    if wire:
        problems += _names(messages, re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"))
    return problems


def broken_mistral_rules(messages: Sequence[Message], *, wire: bool = False) -> list[str]:
    """What mistral-common refuses: which role may follow which, and as many results as calls."""
    problems = broken_rules(messages)
    allowed = {
        "system": {"user", "assistant", "system"},
        "user": {"assistant", "system", "user"},
        "assistant": {"assistant", "user", "tool"},
        "tool": {"assistant", "tool"},
    }
    if not messages:
        return [*problems, "no message at all"]
    roles = [str(message.get("role")) for message in messages]
    if roles[0] not in {"system", "user"}:
        problems.append(f"the first message is the {roles[0]}'s")
    for place, (before, role) in enumerate(pairwise(roles), 1):
        if role not in allowed.get(before, set()):
            problems.append(f"{place}: unexpected role {role} after role {before}")
    if roles[-1] not in {"user", "tool"}:
        problems.append(f"the last message is the {roles[-1]}'s, not the user's or a tool's")
    if wire:
        problems += _ids(messages, re.compile(r"[a-zA-Z0-9]{9}"), unique=False)
        problems += _names(messages, re.compile(r"[a-zA-Z0-9_-]{1,64}"))
    return problems


RULES: Mapping[str, Callable[..., list[str]]] = {
    "openai": broken_openai_rules,
    "anthropic": broken_anthropic_rules,
    "gemini": broken_gemini_rules,
    "mistral": broken_mistral_rules,
}


def _roles(messages: Sequence[Message]) -> Iterator[str]:
    for place, message in enumerate(messages):
        role = message.get("role")
        if role not in _ROLES:
            yield f"{place}: no provider knows the role {role!r}"
        if role == "system" and place:
            yield f"{place}: a system message that is not the first"


def _pairing(messages: Sequence[Message]) -> Iterator[str]:
    waiting: list[str] = []
    for place, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            call = message.get("tool_call_id")
            if call in waiting:
                waiting.remove(call)
            else:
                yield f"{place}: a result for {call}, which no call before it asked for"
        elif waiting:
            yield f"{place}: {waiting} unanswered before a {role} message"
            waiting = []
        if role == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls") or []]
            if len(set(waiting)) < len(waiting):
                yield f"{place}: two calls of one message under one id"
        elif message.get("tool_calls"):
            yield f"{place}: calls in a {role} message"
    if waiting:
        yield f"end: {waiting} unanswered"


def _contents(messages: Sequence[Message]) -> Iterator[str]:
    for place, message in enumerate(messages):
        content = message.get("content")
        if not content and not message.get("tool_calls"):
            yield f"{place}: empty content"
        elif isinstance(content, list | tuple):
            for part in content:
                if not isinstance(part, Mapping) or not part.get("type"):
                    yield f"{place}: a part of the content that has no type"
                elif part["type"] == "text" and not part.get("text"):
                    yield f"{place}: an empty text part"
        elif content is not None and not isinstance(content, str):
            yield f"{place}: a content that is neither text nor a list of parts"


def _parts(messages: Sequence[Message]) -> Iterator[str]:
    """Images are the user's: neither instructions nor answers hold anything but text."""
    for place, message in enumerate(messages):
        if message.get("role") in {"system", "assistant"} and _others(message):
            yield f"{place}: {_others(message)} in a {message['role']} message"


def _fields(messages: Sequence[Message]) -> Iterator[str]:
    for place, message in enumerate(messages):
        calls = message.get("tool_calls")
        if calls is not None and not calls:
            yield f"{place}: an empty list of calls"
        for call in calls or []:
            function = call.get("function") or {}
            if call.get("type", "function") != "function" or not function.get("name"):
                yield f"{place}: a call of no function"
            if not isinstance(function.get("arguments"), str):
                yield f"{place}: arguments that are no text"
        if message.get("role") == "tool" and not isinstance(message.get("tool_call_id"), str):
            yield f"{place}: a result without an id"


def _arguments(messages: Sequence[Message]) -> Iterator[str]:
    """Anthropic and Gemini take the arguments as an object, so that they must be one."""
    for place, message in enumerate(messages):
        for call in message.get("tool_calls") or []:
            try:
                value = json.loads(call["function"]["arguments"] or "{}")
            except (ValueError, TypeError):
                value = None
            if not isinstance(value, dict):
                yield f"{place}: arguments that are no JSON object"


def _ids(messages: Sequence[Message], form: re.Pattern[str], *, unique: bool) -> Iterator[str]:
    seen: set[str] = set()
    for place, message in enumerate(messages):
        for call in message.get("tool_calls") or []:
            if not form.fullmatch(call["id"]):
                yield f"{place}: the id {call['id']!r} is not of the form {form.pattern}"
            if unique and call["id"] in seen:
                yield f"{place}: the id {call['id']!r} was used before"
            seen.add(call["id"])


def _names(messages: Sequence[Message], form: re.Pattern[str]) -> Iterator[str]:
    for place, message in enumerate(messages):
        for call in message.get("tool_calls") or []:
            if not form.fullmatch(call["function"]["name"]):
                yield f"{place}: the name {call['function']['name']!r} is not of the form {form.pattern}"


def _texts(message: Message) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content] if content else []
    return [str(part.get("text", "")) for part in content or [] if part.get("type") == "text"]


def _others(message: Message) -> list[str]:
    """The kinds of the parts that are no text."""
    content = message.get("content")
    if isinstance(content, str) or not content:
        return []
    return [str(part.get("type")) for part in content if part.get("type") != "text"]


def _anthropic_turns(messages: Sequence[Message]) -> list[tuple[str, list[dict[str, Any]]]]:
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for message in messages:
        if message.get("role") == "system":
            continue
        role = "assistant" if message.get("role") == "assistant" else "user"
        if not turns or turns[-1][0] != role:
            turns.append((role, []))
        blocks = turns[-1][1]
        if message.get("role") == "tool":
            blocks.append({"type": "tool_result", "tool_use_id": message.get("tool_call_id")})
            continue
        blocks += [{"type": "text", "text": text} for text in _texts(message)]
        blocks += [{"type": other} for other in _others(message)]
        blocks += [{"type": "tool_use", "id": call["id"]} for call in message.get("tool_calls") or []]
    return [(role, blocks or [{"type": "text", "text": ""}]) for role, blocks in turns]


def _anthropic_answers(
    place: int, uses: Sequence[str], answers: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """The results of a message's calls, all of them, open the next user message."""
    opening: list[str] = []
    for block in answers:
        if block["type"] != "tool_result":
            break
        opening.append(block["tool_use_id"])
    if missing := [use for use in uses if use not in opening]:
        yield f"turn {place}: {missing} not answered at the beginning of the next message"
    if len(set(opening)) < len(opening):
        yield f"turn {place}: a call that is answered twice"
    if any(block["type"] == "tool_result" for block in answers[len(opening) :]):
        yield f"turn {place + 1}: results after other blocks"


def _gemini_turns(messages: Sequence[Message]) -> list[tuple[str, list[str]]]:
    """Contents as (role, kinds of their parts); those of one role that follow each other are one."""
    turns: list[tuple[str, list[str]]] = []
    for message in messages:
        if message.get("role") == "system":
            continue
        role = {"assistant": "model", "tool": "function"}.get(str(message.get("role")), "user")
        if not turns or turns[-1][0] != role:
            turns.append((role, []))
        if role == "function":
            turns[-1][1].append("response")
            continue
        turns[-1][1].extend("text" for _ in _texts(message))
        turns[-1][1].extend(_others(message))
        turns[-1][1].extend("call" for _ in message.get("tool_calls") or [])
    return turns
