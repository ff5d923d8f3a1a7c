"""All slash commands in the order of the help; parse, complete and run them."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rolling_chat.agent import ChatError
from rolling_chat.commands.branches import BRANCHES
from rolling_chat.commands.compact import COMPACT
from rolling_chat.commands.context import CONTEXT
from rolling_chat.commands.copy import COPY
from rolling_chat.commands.cost import COST
from rolling_chat.commands.custom import added_commands, shadowed_lines
from rolling_chat.commands.diff import DIFF
from rolling_chat.commands.effort import EFFORT
from rolling_chat.commands.exclude import EXCLUDE
from rolling_chat.commands.export import EXPORT
from rolling_chat.commands.files import FILES
from rolling_chat.commands.fork import FORK
from rolling_chat.commands.help import HELP
from rolling_chat.commands.hooks import HOOKS
from rolling_chat.commands.include import INCLUDE
from rolling_chat.commands.init import INIT
from rolling_chat.commands.lost import LOST
from rolling_chat.commands.mcp import MCP
from rolling_chat.commands.memory import MEMORY
from rolling_chat.commands.mode import MODE
from rolling_chat.commands.model import MODEL
from rolling_chat.commands.new import NEW
from rolling_chat.commands.notes import NOTES
from rolling_chat.commands.paste import PASTE
from rolling_chat.commands.permissions import PERMISSIONS
from rolling_chat.commands.pin import PIN
from rolling_chat.commands.processes import PROCESSES
from rolling_chat.commands.quit import QUIT
from rolling_chat.commands.recall import RECALL
from rolling_chat.commands.redo import REDO
from rolling_chat.commands.rename import RENAME
from rolling_chat.commands.resume import RESUME
from rolling_chat.commands.retry import RETRY
from rolling_chat.commands.rewind import REWIND
from rolling_chat.commands.rolling_context import ROLLING_CONTEXT
from rolling_chat.commands.run import RUN
from rolling_chat.commands.search import SEARCH
from rolling_chat.commands.server_prompts import prompt_commands
from rolling_chat.commands.sessions import SESSIONS
from rolling_chat.commands.share import SHARE
from rolling_chat.commands.skill import SKILL
from rolling_chat.commands.skills import SKILLS
from rolling_chat.commands.summary import SUMMARY
from rolling_chat.commands.theme import THEME
from rolling_chat.commands.trust import TRUST
from rolling_chat.commands.undo import UNDO
from rolling_chat.commands.unpin import UNPIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolling_chat.agent import Chat
    from rolling_chat.commands.base import Command, CommandContext

_COMMANDS: tuple[Command, ...] = (
    ROLLING_CONTEXT,
    CONTEXT,
    COST,
    COMPACT,
    SUMMARY,
    LOST,
    PIN,
    UNPIN,
    EXCLUDE,
    INCLUDE,
    RECALL,
    NOTES,
    FILES,
    DIFF,
    RUN,
    PROCESSES,
    PASTE,
    MODE,
    PERMISSIONS,
    MCP,
    TRUST,
    MEMORY,
    INIT,
    SKILL,
    SKILLS,
    HOOKS,
    MODEL,
    EFFORT,
    UNDO,
    REDO,
    REWIND,
    RETRY,
    BRANCHES,
    FORK,
    NEW,
    SESSIONS,
    SEARCH,
    RESUME,
    RENAME,
    SHARE,
    EXPORT,
    COPY,
    THEME,
    HELP,
    QUIT,
)

_NAMES = frozenset(command.name for command in _COMMANDS)
_MIN_INSIDE = 3  # characters to search within names; fewer are in every second name


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """A slash command line, split into name and argument."""

    name: str
    argument: str


def all_commands() -> tuple[Command, ...]:
    """Return all commands, in the order of the help."""
    return _COMMANDS


def custom_commands(chat: Chat) -> tuple[Command, ...]:
    """Return the commands that users, projects and MCP servers add, without those whose names are taken."""
    added = added_commands(chat, _NAMES)
    return (*added, *prompt_commands(chat, _NAMES | {command.name for command in added}))


def custom_lines(chat: Chat) -> list[str]:
    """Return lines about added commands that cannot be called because a built-in one has the same name."""
    return shadowed_lines(chat, _NAMES)


def find_command(name: str, custom: Sequence[Command] = ()) -> Command | None:
    """Return the command with this name, given without slash; `custom` are the added ones."""
    return next((command for command in (*_COMMANDS, *custom) if command.name == name), None)


def parse(text: str) -> ParsedCommand | None:
    """Split a command line into name and argument; return None if it is a message.

    A command is a single line that begins with a slash and a word. A path (`/etc/hosts is missing`) or a
    second slash (`//`) makes it a message. `!ls` is `/run ls`. Names of custom commands may contain colons
    (`/git:commit`).
    """
    line = text.strip()
    if "\n" in line or not line.startswith(("/", "!")):
        return None
    if line.startswith("!"):
        return ParsedCommand("run", line[1:].strip()) if line.strip("! ") else None
    name, _, argument = line[1:].partition(" ")
    if not name or not all(char.isalnum() or char in "-_:" for char in name):
        return None
    return ParsedCommand(name.lower(), argument.strip())


def complete(text: str, custom: Sequence[Command] = ()) -> tuple[Command, ...]:
    """Return the commands that complete `text`, while its name is being typed."""
    if not text.startswith("/") or any(char.isspace() for char in text):
        return ()
    typed, commands = text[1:].lower(), (*_COMMANDS, *custom)
    first = [command for command in commands if command.name.startswith(typed)]
    if len(typed) < _MIN_INSIDE:
        return tuple(first)
    inside = [command for command in commands if typed in command.name and command not in first]
    return (*first, *inside)


def nearest_command(name: str, custom: Sequence[Command] = ()) -> Command | None:
    """Return the command whose name is most similar to `name`, if any."""
    names = [command.name for command in (*_COMMANDS, *custom)]
    close = get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    starts = [known for known in names if name and known.startswith(name.lower())]
    found = starts or close
    return find_command(found[0], custom) if found else None


async def run_command(parsed: ParsedCommand, context: CommandContext, *, busy: bool = False) -> None:
    """Run a command; report in one line if it is unknown or fails."""
    custom = custom_commands(context.chat)
    command = find_command(parsed.name, custom)
    if command is None:
        context.say(unknown_command(parsed.name, custom), warning=True)
        return
    if busy and not command.while_busy:
        context.say(f"/{command.name} waits until the answer is complete; esc stops it.", warning=True)
        return
    try:
        outcome = command.run(context, parsed.argument)
        if outcome is not None:
            await outcome
    except ChatError as error:
        context.say(str(error), warning=True)


# names in other programs, for which the most similar name here may do something else
_CALLED_ELSEWHERE = {
    "clear": "did you mean /new? This session is kept.",
    "reset": "did you mean /new? This session is kept.",
    "exit": "did you mean /quit?",
    "usage": "/cost shows what the session has cost; rolling-chat usage shows all of them.",
    "tokens": "/context shows what the next request costs.",
    "status": "/context shows the model and the next request; rolling-chat doctor shows the rest.",
    "config": "rolling-chat doctor names the settings file and what is wrong in it.",
    "settings": "rolling-chat doctor names the settings file and what is wrong in it.",
    "doctor": "run rolling-chat doctor in a shell.",
    "compress": "did you mean /compact?",
    "history": "did you mean /sessions?",
    "models": "did you mean /model?",
}


def unknown_command(name: str, custom: Sequence[Command] = ()) -> str:
    """Return a line that says that there is no such command, and what to use instead."""
    if name in _CALLED_ELSEWHERE:
        return f"There is no command /{name}; {_CALLED_ELSEWHERE[name]}"
    near = nearest_command(name, custom)
    hint = f"did you mean /{near.name}?" if near else "/help lists all of them."
    return f"There is no command /{name}; {hint}"
