"""/memory: list the instruction files that the model reads, and those that it does not; open one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.commands.base import Choice, Command, CommandContext
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.project_files import FileKind
from rolling_chat.text import exact, one_line
from rolling_chat.tools.sandbox.sandbox import NEWCOMERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAX_SHOWN = 200_000  # characters of a file to show if there is no editor
_MAX_NAME = 60


def _choices(context: CommandContext) -> Iterator[tuple[Path, Choice]]:
    """Yield the files that are in the prompt, those that are not trusted, and those that could be written."""
    chat = context.chat
    seen: set[Path] = set()
    sections = zip(chat.session.instructions.sections, chat.session.instruction_sizes(), strict=True)
    for section, (name, tokens) in sections:
        seen.add(section.path)
        yield section.path, _choice(name, f"{figures.tokens(tokens)} tokens in every request")
    for file in chat.trust.unread():
        if file.kind is FileKind.INSTRUCTIONS:
            seen.add(file.path)
            yield file.path, _choice(file.name, "not read: this folder is not trusted (/trust)")
    new = {chat.own_instructions: f"your {chat.own_instructions.name}", chat.folder_instructions: "AGENTS.md"}
    for path, name in new.items():
        if path not in seen and not path.exists() and not path.is_symlink():
            yield path, _choice(name, "not there yet")


def _choice(name: str, note: str) -> Choice:
    shown = one_line(exact(name), _MAX_NAME)
    return Choice(shown, shown, note)


async def _run(context: CommandContext, _argument: str) -> None:
    session = context.chat.session
    session.read_instructions()
    for fault in session.instructions.faults:
        context.say(one_line(exact(fault), 200), warning=True)
    files = list(_choices(context))
    total = sum(tokens for _, tokens in session.instruction_sizes())
    title = f"Instructions: {figures.tokens(total)} tokens in every request; choose one to open"
    chosen = await context.pick(title, [choice for _, choice in files])
    path = next((path for path, choice in files if choice.value == chosen), None)
    if path is not None:
        await _open(context, path)


async def _open(context: CommandContext, path: Path) -> None:
    text = _read(path)
    NEWCOMERS.spare(path)
    if not await context.edit_file(path):
        if text:
            context.show_text(one_line(exact(str(path))), text)
        return
    try:
        if not text:
            context.chat.trust.trust_written(path)
    except SettingsError as error:
        context.say(str(error), warning=True)
    context.chat.session.read_instructions()
    context.refresh_report()


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_SHOWN)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"It cannot be read: {error.strerror}."


MEMORY = Command("memory", "", "List the instruction files (AGENTS.md) and open one in your editor", _run)
