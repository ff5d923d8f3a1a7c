"""An agent by rule: it sees one prompt as the wire gets it, answers or calls tools, and remembers nothing.

What it knows is in that prompt, or in what tools bring into the next one. A fact that it sees it takes from
where it is newest, the history before the summary. For one that it does not see it asks `recall`, in the
words of the request, and if that brings nothing in other words; of several messages that it is shown it
believes the latest. A result that is not whole it reads on, by the id that is named in it or by a search in
the file. It never guesses: what it does not find it does not know.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from tests.benchmarks.long_run.reading import Hit, facts_said, facts_shown, hits_of, is_shortened, recall_id
from tests.benchmarks.long_run.tasks import Need, Task, understand
from tests.benchmarks.long_run.words import BY_KEY, ODDITIES

_MAX_OPENED = 4  # messages that are read for one fact after a search
_SUMMARY = "Summary of earlier conversation:"

Arguments: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the agent makes."""

    name: str
    arguments: Arguments

    @property
    def text(self) -> str:
        """The arguments as they are sent."""
        return json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Answer:
    """A final answer."""

    text: str


@dataclass(frozen=True, slots=True)
class _Done:
    """A call that stands in the prompt, with its result."""

    name: str
    arguments: str
    result: str


@dataclass(frozen=True)
class Prompt:
    """A request as the agent sees it: the messages of the wire, and the names of the tools."""

    messages: Sequence[Mapping[str, Any]]
    tools: frozenset[str]

    @cached_property
    def request(self) -> str:
        """The newest message of the user."""
        return next((str(one["content"]) for one in reversed(self.messages) if one["role"] == "user"), "")

    @cached_property
    def _split(self) -> int:
        """Where this turn begins."""
        indexes = range(len(self.messages) - 1, -1, -1)
        return next((at for at in indexes if self.messages[at]["role"] == "user"), 0)

    @cached_property
    def done(self) -> list[_Done]:
        """The calls of this turn that stand in the prompt."""
        return list(_calls(self.messages[self._split :]))

    @cached_property
    def before(self) -> list[_Done]:
        """The calls of earlier turns that stand in the prompt."""
        return list(_calls(self.messages[: self._split]))

    @cached_property
    def summary(self) -> str:
        """The summary, if the system message has one."""
        system = str(self.messages[0]["content"]) if self.messages[0]["role"] == "system" else ""
        return system.partition(_SUMMARY)[2]

    def result_of(self, call: Call) -> str | None:
        """Return what a call of this turn brought, None if it was not made."""
        return next(
            (one.result for one in self.done if (one.name, one.arguments) == (call.name, call.text)), None
        )

    def visible(self, key: tuple[str, ...]) -> str:
        """Return the newest value of a fact that was said or shown in the history; empty if there is none."""
        results = {id(one): done for one, done in _results(self.messages)}
        for message in reversed(self.messages):
            if message["role"] == "tool":
                done = results.get(id(message))
                facts = facts_shown(done.result, done.arguments) if done and done.name != "recall" else ()
            elif message["role"] == "system":
                continue
            else:
                facts = facts_said(str(message["content"] or ""))
            if found := [one.value for one in facts if one.key == key]:
                return found[-1]
        return ""


def _results(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], _Done]]:
    """Yield the results among messages, each with the call that it answers."""
    calls: dict[str, tuple[str, str]] = {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            function = call["function"]
            calls[call["id"]] = (function["name"], function["arguments"])
        if message["role"] == "tool" and (known := calls.get(message["tool_call_id"])):
            yield message, _Done(*known, str(message["content"]))


def _calls(messages: Sequence[Mapping[str, Any]]) -> Iterator[_Done]:
    yield from (done for _, done in _results(messages))


def call_id(prompt: Prompt, call: Call, number: int) -> str:
    """Return an id that no other call of a session has, and that is the same whenever it is made."""
    parts = f"{prompt.request} {len(prompt.done)} {number} {call.name} {call.text}"
    return f"call_{hashlib.sha256(parts.encode()).hexdigest()[:20]}"


@dataclass(frozen=True, slots=True)
class Agent:
    """The rule. Without `recalls` it does not ask for what it does not see."""

    recalls: bool = True

    def act(self, prompt: Prompt) -> Answer | Call:
        """Return the next step in the newest turn of a prompt."""
        task = understand(prompt.request)
        if task is None:
            return Answer("Noted.")
        if task.first:
            read = Call("read_file", {"path": task.first})
            if prompt.result_of(read) is None:
                return read
        found: list[str] = []
        for need in task.needs:
            known = prompt.visible(need.key) or _of_summary(need, prompt) or self._look_for(need, prompt)
            if isinstance(known, Call):
                return known
            if not known:
                return Answer(f"I do not know that: I found nothing about {need.words[0]}.")
            found.append(known)
        return _STEPS[task.verb](self, prompt, task, found)

    def can_recall(self, prompt: Prompt) -> bool:
        """Whether it may ask for what it does not see."""
        return self.recalls and "recall" in prompt.tools

    # -- what was said or shown before

    def _look_for(self, need: Need, prompt: Prompt) -> str | Call:
        """Return the value of a fact that is not to be seen, the call that looks for it, or nothing."""
        if not self.can_recall(prompt):
            return ""
        if call := _masked(need, prompt):
            return call
        for words in need.words:
            search = Call("recall", {"search": words})
            result = prompt.result_of(search)
            if result is None:
                return search
            found = _in_hits(need, result, prompt)
            if found:
                return found
        return ""

    # -- steps in files

    def read_on(
        self, prompt: Prompt, call: Call, pattern: str, path: str, *, first: bool = False
    ) -> str | Call:
        """Return what a call brought, or the next call to see its lines of a `pattern`.

        `first`: it is the first of them that counts, so that nothing may be missing before it.
        """
        result = prompt.result_of(call)
        if result is None:
            return call
        match = re.search(pattern, result)
        if not is_shortened(result) or (match and not (first and is_shortened(result[: match.start()]))):
            return result
        if self.can_recall(prompt) and (named := recall_id(result)):
            more = Call("recall", {"id": named, "mode": "grep", "pattern": pattern})
        else:
            more = Call("search_files", {"pattern": pattern, "path": path})
        brought = prompt.result_of(more)
        return more if brought is None else "\n".join(one.text for one in hits_of(brought)) or brought


def _of_summary(need: Need, prompt: Prompt) -> str:
    return ([one.value for one in facts_said(prompt.summary) if one.key == need.key] or [""])[-1]


def _masked(need: Need, prompt: Prompt) -> Call | None:
    """Return the call that reads a result which the history names, but does not show."""
    if need.key[0] != "seen":
        return None
    for done in reversed(prompt.before):
        if (
            _is_about(need, done.arguments)
            and is_shortened(done.result)
            and (named := recall_id(done.result))
        ):
            call = Call("recall", {"id": named, "mode": "grep", "pattern": _pattern(need)})
            if prompt.result_of(call) is None:
                return call
    return None


def _pattern(need: Need) -> str:
    match need.key:
        case ("seen", "request", *_):
            return "ERROR"
        case ("seen", "p99", _, endpoint):
            return f"{endpoint} "
        case ("seen", "reporter", *_):
            return "Reported by"
        case _:
            return need.key[-1]


def _is_about(need: Need, text: str) -> bool:
    """Whether a text names what was looked at when a fact was shown."""
    of = {"p99": r"(measured/|load test of )", "request": "", "reporter": ""}[need.key[1]]
    return re.search(rf"{of}(?<![\w-]){re.escape(need.key[2])}(?![\w-])", text) is not None


def _in_hits(need: Need, result: str, prompt: Prompt) -> str | Call:
    """Return the value that the newest of some hits states, or the call that opens one which may."""
    hits = sorted(hits_of(result), key=lambda hit: hit.number, reverse=True)
    if need.key[0] != "seen":
        return next((one.value for hit in hits for one in reversed(hit.facts) if one.key == need.key), "")
    for number in _worth_opening(need, hits):
        call = Call("recall", {"id": f"r{number}", "mode": "grep", "pattern": _pattern(need)})
        read = prompt.result_of(call)
        if read is None:
            opened = sum(one.name == "recall" and '"grep"' in one.arguments for one in prompt.done)
            return call if opened < _MAX_OPENED else ""
        for hit in hits_of(read):
            shown = facts_shown(hit.text, _call_text(need))
            if value := next((one.value for one in shown if one.key == need.key), ""):
                return value
    return ""


def _call_text(need: Need) -> str:
    """The arguments that the call of a result had which was opened because it is about this."""
    return (
        f"measured/{need.key[2]}.txt" if need.key[1] == "p99" else f"tickets/{need.key[2]}.md {need.key[2]}"
    )


def _worth_opening(need: Need, hits: Sequence[Hit]) -> list[int]:
    """Return the results that hits lead to: those about the thing, after a call, before an answer."""
    numbers = []
    for hit in hits:
        if not _is_about(need, f"{hit.head} {hit.text}"):
            continue
        if hit.is_result:
            numbers.append(hit.number)
        elif hit.head.startswith("assistant calling"):
            numbers.append(hit.number + 1)
        elif hit.head.startswith("user"):
            numbers.append(hit.number + 2)
        else:
            numbers.append(hit.number - 1)
    return list(dict.fromkeys(numbers))


def _tell(_agent: Agent, _prompt: Prompt, task: Task, found: Sequence[str]) -> Answer:
    said = []
    for need, value in zip(task.needs, found, strict=True):
        match need.key:
            case ("decided", service, key):
                said.append(f"The {BY_KEY[key].names[0]} of {service} is {value}.")
            case ("needle", family, thing):
                text = ODDITIES[int(family)].says.format(thing=thing, value=value)
                said.append(f"{text[0].upper()}{text[1:]}.")
            case (_, "reporter", ticket):
                said.append(f"{ticket} was reported by {value}.")
            case (_, "p99", service, endpoint):
                said.append(f"The p99 of {endpoint} was {value} ms when {service} was measured.")
            case (_, _, path):
                said.append(f"The first error in {path} names the request {value}.")
    return Answer(" ".join(said))


def _lookup(agent: Agent, prompt: Prompt, task: Task, _found: Sequence[str]) -> Answer | Call:
    line = _line(agent, prompt, task)
    if isinstance(line, Call):
        return line
    if not line:
        return Answer(f"I find no `{task.about}` in {task.path}.")
    value = line.partition("=")[2].strip()
    return Answer(f"`{task.about}` in {task.path} is set to {value}.")


def _line(agent: Agent, prompt: Prompt, task: Task) -> str | Call:
    """Return the line of a key in a file of settings."""
    read = Call("read_file", {"path": task.path})
    text = agent.read_on(prompt, read, rf"{task.about} = ", task.path)
    if isinstance(text, Call):
        return text
    match = re.search(rf"(?<![\w-]){re.escape(task.about)} = .*", text)
    return match[0] if match else ""


def _edit(agent: Agent, prompt: Prompt, task: Task, found: Sequence[str]) -> Answer | Call:
    value = found[0] if found else task.value
    edits = [done for done in prompt.done if done.name == "edit_file"]
    if edits:
        return Answer(f"I set `{task.about}` in {task.path} to {value}.")
    line = _line(agent, prompt, task)
    if isinstance(line, Call):
        return line
    if not line:
        return Answer(f"I find no `{task.about}` in {task.path}.")
    quote = '"' if '"' in line else ""
    new = f"{task.about} = {quote}{value}{quote}"
    if new == line:
        return Answer(f"`{task.about}` in {task.path} is {value} already.")
    return Call("edit_file", {"path": task.path, "old": line, "new": new})


def _trace(agent: Agent, prompt: Prompt, task: Task, _found: Sequence[str]) -> Answer | Call:
    text = agent.read_on(prompt, Call("read_file", {"path": task.path}), "ERROR", task.path, first=True)
    if isinstance(text, Call):
        return text
    match = re.search(r"ERROR \[([\w.]+)\] (E\d+)", text)
    if match is None:
        return Answer(f"I see no error in {task.path}.")
    return Answer(f"The first error in {task.path} is in the module {match[1]}, with the code {match[2]}.")


def _search(agent: Agent, prompt: Prompt, task: Task, _found: Sequence[str]) -> Answer | Call:
    call = Call("search_files", {"pattern": f"def {task.about}\\b", "path": task.path})
    result = prompt.result_of(call)
    if result is None:
        return call
    match = re.search(r"^(\S+):(\d+):", result, re.MULTILINE)
    if match is None:
        return Answer(f"I find no definition of `{task.about}` in {task.path}.")
    read = Call("read_file", {"path": match[1]})
    if prompt.result_of(read) is None:
        return read
    return Answer(f"`{task.about}` is defined in {match[1]}, line {match[2]}.")


def _measure(agent: Agent, prompt: Prompt, task: Task, _found: Sequence[str]) -> Answer | Call:
    call = Call("run_command", {"command": f"cat {task.path}"})
    text = agent.read_on(prompt, call, f"{task.about} ", task.path)
    if isinstance(text, Call):
        return text
    match = re.search(rf"{re.escape(task.about)}  .*p99 (\d+) ms", text)
    if match is None:
        return Answer(f"I see no {task.about} in {task.path}.")
    return Answer(f"The p99 of {task.about} is {match[1]} ms.")


def _ticket(agent: Agent, prompt: Prompt, task: Task, _found: Sequence[str]) -> Answer | Call:
    text = agent.read_on(prompt, Call("read_file", {"path": task.path}), "Affected version", task.path)
    if isinstance(text, Call):
        return text
    match = re.search(r"Affected version: (\S+)", text)
    return Answer(f"{task.path} affects version {match[1]}." if match else f"{task.path} names no version.")


_Step: TypeAlias = Callable[[Agent, Prompt, Task, Sequence[str]], Answer | Call]
_STEPS: Mapping[str, _Step] = {
    "tell": _tell,
    "write": _edit,
    "edit": _edit,
    "lookup": _lookup,
    "trace": _trace,
    "search": _search,
    "measure": _measure,
    "ticket": _ticket,
    "nothing": lambda *_: Answer("I have read it. Noted."),
}
