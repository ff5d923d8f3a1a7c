"""Compute the offline model's reply, a pure function of its prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rolling_chat.messages import Json, JsonObject, Message, ToolCall
from rolling_chat.providers.offline.attached import describe_attached, split_attached
from rolling_chat.providers.offline.drafting import next_step, orders_a_draft
from rolling_chat.providers.offline.extractive_summary import asks_for_summary, extract_summary, marked_texts
from rolling_chat.providers.offline.matching import (
    best_matches,
    content_words,
    read_sentences,
    split_sentences,
)
from rolling_chat.providers.offline.orders import Action, Order, read_orders, read_questions
from rolling_chat.providers.offline.planning import (
    asks_for_plan,
    describe_plan,
    orders_the_plan,
    planned_before,
    without_note,
)

_INTRODUCTION = "I am the built-in demo: not a language model, only a search over this conversation."
_ABILITIES = (
    "I can list files, read FILE, search for TEXT, replace `OLD` with `NEW` in FILE and run `COMMAND`; "
    "I answer questions from what was said."
)
_NOTED = "Noted."
_NOTHING = "I find nothing about that in my prompt."
_OWN_SENTENCES = frozenset({_NOTED, _NOTHING, *re.split(r"(?<=\.) ", f"{_INTRODUCTION} {_ABILITIES}")})
_GREETING = re.compile(
    r"\W*(?:hello|hi|hey|help|good (?:morning|evening|day)|who are you|what can you do)\b", re.IGNORECASE
)
_AS_TEXT = re.compile(r"\b(?:write|make) (?:your|the) (?:tool )?calls? as text[:,.;]?\s*", re.IGNORECASE)
_MAX_LINES = 20
_RECALL_ID = re.compile(r"^r[1-9]\d*\b", re.MULTILINE)
_LINE_NUMBER = re.compile(r"^\s*\d+[:-] ", re.MULTILINE)
# the share of a question's weight that a sentence must contain to count as an answer
_LIKELY, _SURE = 0.5, 0.9

# For each action, the words that identify its tool; for each value, the names of its argument. Best first.
_TOOL_WORDS: Mapping[Action, tuple[str, ...]] = {
    "list": ("list_files", "list", "ls", "glob"),
    "read": ("read_file", "read", "cat"),
    "search": ("search_files", "grep", "search"),
    "run": ("run_command", "run", "bash", "shell", "exec"),
    "output": ("command_output",),
    "edit": ("edit_file",),
    "write": ("write_file",),
    "move": ("move_file",),
    "delete": ("delete_file",),
    "fetch": ("fetch_url",),
    "outline": ("outline",),
    "todo": ("todo",),
    "task": ("task",),
}
_PATH_NAMES = ("path", "file_path", "file", "filename", "folder", "directory", "dir")
_PATTERN_NAMES = ("pattern", "query", "regex", "text", "search")
_COMMAND_NAMES = ("command", "cmd", "script", "code")
_QUERY_NAMES = ("query", "search", "text", "pattern", "grep", "q")


@dataclass(frozen=True, slots=True)
class OfflineReply:
    """A text or tool calls."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


def reply_to(
    messages: Sequence[JsonObject], tools: Sequence[JsonObject] = (), *, may_call: bool = True
) -> OfflineReply:
    """Answer a prompt in OpenAI's format using only its own text.

    With `may_call` False, as for `tool_choice="none"`, it answers from the results it already has.
    """
    conversation = [Message.from_dict(message) for message in messages]
    system = "\n".join(message.text for message in conversation if message.role == "system")
    is_planning = asks_for_plan(next((one.text for one in reversed(conversation) if one.role == "user"), ""))
    rest = [without_note(message) for message in conversation if message.role != "system"]
    if not tools and asks_for_summary(system):
        return OfflineReply(extract_summary([message.text for message in rest]))
    turn_start = _turn_start(rest)
    asked, attached = split_attached(rest[turn_start].text if rest else "")
    if not tools and (marked := marked_texts(asked)):
        return OfflineReply(extract_summary(marked))
    turn = [message for message in rest[turn_start + 1 :] if message.role != "user"]
    added = [message.text for message in rest[turn_start + 1 :] if message.role == "user"]
    request = _AS_TEXT.sub("", asked)
    steps = [step for text in (request, *added) for step in read_orders(text)]
    if is_planning and steps:
        return OfflineReply(describe_plan(steps))
    if orders_the_plan(asked):
        steps = planned_before([message.text for message in rest[:turn_start] if message.role == "user"])
    offered = {str(tool["function"]["name"]): tool["function"] for tool in tools if "function" in tool}
    if may_call and orders_a_draft(asked):
        return _draft(turn, offered)
    if may_call and (calls := _next_calls(steps, turn, offered)):
        return OfflineReply(calls=calls) if request == asked else OfflineReply(as_text(calls))
    results = [message.text for message in turn if message.role == "tool"]
    if steps and results:
        remarks = [f"You said meanwhile: {text}" for text in added if not read_orders(text)]
        return OfflineReply("\n\n".join([_report(steps, results), *remarks]))
    if attached:
        return OfflineReply(describe_attached(asked, attached))
    return _answer(asked, system, rest[:turn_start], results, offered if may_call else {})


def _turn_start(messages: Sequence[Message]) -> int:
    """Return the index of the newest request; a user message directly below results belongs to their turn."""
    for index in range(len(messages) - 1, 0, -1):
        if messages[index].role == "user" and messages[index - 1].role not in {"tool", "user"}:
            return index
    return 0


def _draft(turn: Sequence[Message], offered: Mapping[str, JsonObject]) -> OfflineReply:
    """Return the next call for drafting AGENTS.md, or the outcome."""
    results = [message.text for message in turn if message.role == "tool"]
    order = next_step(results)
    call = _call_for(order, offered, f"draft_{len(results)}") if order is not None else None
    if call is None:
        return OfflineReply(results[-1] if results else _NOTHING)
    return OfflineReply(calls=(call,))


def _next_calls(
    steps: Sequence[tuple[Order, ...]], turn: Sequence[Message], offered: Mapping[str, JsonObject]
) -> tuple[ToolCall, ...]:
    """Return the calls of the first step that was not yet executed in this turn."""
    done = sum(1 for message in turn if message.tool_calls)
    if done >= len(steps) or (turn and turn[-1].role == "assistant"):
        return ()
    calls = (_call_for(order, offered, f"{done}_{index}") for index, order in enumerate(steps[done]))
    return tuple(call for call in calls if call is not None)


def as_text(calls: Sequence[ToolCall]) -> str:
    """Format calls as text, as small local models do."""
    written = (f'{{"name": "{call.name}", "arguments": {call.arguments}}}' for call in calls)
    return "\n".join(["I call a tool.\n", *(f"```json\n{text}\n```" for text in written)])


def _call_for(order: Order, offered: Mapping[str, JsonObject], suffix: str) -> ToolCall | None:
    name = next(
        (
            name
            for word in _TOOL_WORDS[order.action]
            for name in offered
            if word in name.lower().split("__")[-1]
        ),
        None,
    )
    if name is None:
        return None
    properties = _properties(offered[name])
    arguments: dict[str, Json] = {}
    match order.action:
        case "todo":
            _put(arguments, properties, ("items",), re.split(r"\s*,\s*", order.target))
        case "list" | "delete" | "outline":
            _put(arguments, properties, _PATH_NAMES, order.path)
        case "read":
            _put(arguments, properties, _PATH_NAMES, order.target)
            if order.start:
                _put(arguments, properties, ("start", "start_line", "offset"), order.start)
                _put(arguments, properties, ("end", "end_line"), order.end)
        case "search":
            _put(arguments, properties, _PATTERN_NAMES, order.target)
            _put(arguments, properties, _PATH_NAMES, order.path)
        case "run" | "fetch" | "output" | "task":
            _put(arguments, properties, (*_COMMAND_NAMES, "url", "id", "prompt"), order.target)
        case "edit":
            _put(arguments, properties, _PATH_NAMES, order.path)
            _put(arguments, properties, ("old",), order.target)
            _put(arguments, properties, ("new",), order.new)
        case "write":
            _put(arguments, properties, _PATH_NAMES, order.path)
            _put(arguments, properties, ("content",), order.new)
        case "move":
            _put(arguments, properties, _PATH_NAMES, order.path)
            _put(arguments, properties, ("to",), order.new)
    for names, value in _flags_and_tools(order):
        _put(arguments, properties, names, value)
    return ToolCall(f"call_offline_{suffix}", name, json.dumps(arguments, ensure_ascii=False))


def _flags_and_tools(order: Order) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Yield the flags of an order and the tools of a task, with their possible argument names."""
    if order.every:
        yield ("all", "end"), True
    if order.background:
        yield ("background",), True
    if order.action == "task" and order.new:
        yield ("tools",), re.split(r"\s*,\s*", order.new)


def _answer(
    asked: str,
    system: str,
    before: Sequence[Message],
    results: Sequence[str],
    offered: Mapping[str, JsonObject],
) -> OfflineReply:
    first = not any(message.role == "assistant" for message in before)
    opening = f"{_INTRODUCTION} " if first else ""
    if _GREETING.match(asked) and len(content_words(asked)) <= 2:
        return OfflineReply(f"{_INTRODUCTION} {_ABILITIES}")
    question = " ".join(read_questions(asked))
    if not question:
        return OfflineReply(f"{opening}{_NOTED}")
    sentences = [
        sentence
        for sentence in read_sentences(
            [system, *_statements_in(before), *_statements(asked), *_without_line_numbers(results)]
        )
        if sentence.text not in _OWN_SENTENCES
    ]
    can_recall = "recall" in offered
    # a partial match is enough only if recall cannot find a better one
    found = best_matches(question, sentences, min_share=_SURE if can_recall and not results else _LIKELY)
    if found:
        return OfflineReply(_as_lines([sentence.text for sentence in found]))
    if can_recall and (call := _recall(question, results, _properties(offered["recall"]))):
        return OfflineReply(calls=(call,))
    return OfflineReply(f"{opening}{_NOTHING}")


def _recall(question: str, results: Sequence[str], properties: Mapping[str, Json]) -> ToolCall | None:
    """Return a call that searches for the question's words, or next, one that reads the first match."""
    arguments: dict[str, Json] = {}
    if not results:
        _put(arguments, properties, _QUERY_NAMES, " ".join(content_words(question)) or question)
    elif len(results) == 1 and (named := _RECALL_ID.search(results[0])):
        _put(arguments, properties, ("id",), named.group())
    if not arguments:
        return None
    return ToolCall(
        f"call_offline_recall_{len(results)}", "recall", json.dumps(arguments, ensure_ascii=False)
    )


def _without_line_numbers(results: Sequence[str]) -> Iterator[str]:
    """Yield tool results without line numbers."""
    yield from (_LINE_NUMBER.sub("", result) for result in results)


def _statements_in(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the statements in the messages."""
    for message in messages:
        if message.role == "user":
            yield from _statements(message.text)
        else:
            yield message.text


def _statements(text: str) -> Iterator[str]:
    """Yield the statements in a user's message, without questions, which would only match themselves."""
    questions = set(read_questions(text))
    yield from (sentence for sentence in split_sentences(text) if sentence not in questions)


def _report(steps: Sequence[tuple[Order, ...]], results: Sequence[str]) -> str:
    """Format the results, each under its order, with a limited number of lines."""
    orders = [order for step in steps for order in step]
    parts = [
        _report_one(order, result) for order, result in zip(orders, results[-len(orders) :], strict=False)
    ]
    return "\n\n".join(parts)


def _report_one(order: Order, result: str) -> str:
    lines = [line for line in result.splitlines() if line.strip()]
    if order.question and not _asks_for_lines_only(order.question):
        found = best_matches(order.question, read_sentences(lines))
        if found:
            return f"In {order.target}:\n{_as_lines([sentence.text for sentence in found])}"
    title = {
        "list": f"Files in {order.path}:",
        "read": f"{order.target} begins with:",
        "search": f"Matches for {order.target}:",
        "run": f"Output of {order.target}:",
        "output": f"Output of {order.target}:",
        "edit": f"Change of {order.path}:",
        "write": f"Change of {order.path}:",
        "move": f"Move of {order.path}:",
        "delete": f"Deletion of {order.path}:",
        "fetch": f"{order.target}:",
        "outline": f"Outline of {order.path}:",
        "todo": "The list:",
        "task": "The task found:",
    }[order.action]
    kept = lines[-_MAX_LINES:] if order.action in ("run", "output") else lines[:_MAX_LINES]
    if not kept:
        return f"{title} nothing."
    more = len(lines) - len(kept)
    body = "\n".join(kept).replace("```", "ʼʼʼ")
    return f"{title}\n\n```\n{body}\n```" + (f"\n\n({more} more lines)" if more else "")


def _asks_for_lines_only(question: str) -> bool:
    """Return whether the words after a file's name ask only for lines, not for something in it."""
    return not set(content_words(re.sub(r"\d+", "", question))) - {"line"}


def _as_lines(found: Sequence[str]) -> str:
    return found[0] if len(found) == 1 else "\n".join(f"- {text.lstrip('-*• ')}" for text in found)


def _properties(function: JsonObject) -> Mapping[str, Json]:
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _put(
    arguments: dict[str, Json], properties: Mapping[str, Json], names: Sequence[str], value: Json
) -> None:
    """Set the first of `names` that the tool has as a parameter."""
    name = next((name for name in names if name in properties and name not in arguments), None)
    if name is not None:
        arguments[name] = value
