"""Complete command lines: names of commands, then their arguments."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.agent import ChatError
from rolling_chat.commands.base import Arguments, Choice, Command, CommandContext
from rolling_chat.commands.registry import complete, custom_commands, find_command

_log = logging.getLogger("rolling_chat.commands")

_MAX_OFFERED = 200  # choices; typing narrows longer lists


@dataclass(frozen=True, slots=True)
class Offer:
    """Completions of a command line; each `value` is the whole line.

    `runs`: Enter accepts the first of them even if the user has not selected it, because the typed text is
    only the beginning of something.
    """

    choices: tuple[Choice, ...] = ()
    runs: bool = False


class Completer:
    """Completes command lines, reading each list of choices once per line."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        self._lists: dict[tuple[str, str], Sequence[Choice]] = {}

    def offer(self, text: str) -> Offer:
        """Return the completions of `text`; none if it is not a command line or is complete."""
        if not text.startswith("/") or "\n" in text:
            self._lists.clear()
            return Offer()
        name, space, argument = text[1:].partition(" ")
        if not space:
            return _commands(complete(text, custom_commands(self._context.chat)), text)
        command = find_command(name.lower())
        if command is None or command.arguments is None:
            return Offer()
        *words, typed = argument.split(" ")
        before = " ".join(word for word in words if word)
        found = narrowed(self._choices(command.name, before, command.arguments), typed)
        if [choice.value for choice in found] == [typed]:
            return Offer()
        begin = text[: len(text) - len(typed)]
        lines = (Choice(begin + choice.value, choice.label, choice.note) for choice in found[:_MAX_OFFERED])
        return Offer(tuple(lines), runs=command.arguments.closed and bool(typed))

    def _choices(self, name: str, before: str, arguments: Arguments) -> Sequence[Choice]:
        key = (name, before)
        if key not in self._lists:
            try:
                self._lists[key] = arguments.choices(self._context, before)
            except ChatError as error:
                _log.warning("nothing to complete /%s with: %s", name, error)
                self._lists[key] = ()
        return self._lists[key]


def narrowed(choices: Sequence[Choice], typed: str) -> list[Choice]:
    """Return the choices that match `typed`: equal ones, then by prefix, content or spelling."""
    wanted = typed.lower()
    if not wanted:
        return list(choices)
    ranked = ((_rank(choice, wanted), choice) for choice in choices)
    matching = sorted((pair for pair in ranked if pair[0] is not None), key=lambda pair: pair[0] or 0)
    plain = [choice for rank, choice in matching if rank != _BY_SPELLING]
    return plain or [choice for _, choice in matching]


_BY_SPELLING = 4


def _rank(choice: Choice, wanted: str) -> int | None:
    value, label = choice.value.lower(), choice.label.lower()
    if value == wanted:
        return 0
    if value.startswith(wanted) or label.startswith(wanted):
        return 1
    if wanted in value or wanted in label:
        return 2
    if wanted in choice.note.lower():
        return 3
    letters = iter(value)
    return _BY_SPELLING if all(letter in letters for letter in wanted) else None


def _commands(found: Sequence[Command], text: str) -> Offer:
    if [command.name for command in found] == [text[1:]]:
        return Offer()
    lines = (Choice(f"/{command.name} ", command.signature, command.summary) for command in found)
    return Offer(tuple(lines), runs=True)
