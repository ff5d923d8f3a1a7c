"""Run a chat in plain lines, from start to end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rolling_chat.agent import Chat, ChatError
from rolling_chat.agent.questions import NEVER, SHOW, TRUST, trust_question
from rolling_chat.commands import custom_lines, parse, run_command
from rolling_chat.mentions import marked
from rolling_chat.plain.commands import PlainCommands
from rolling_chat.plain.console import Console, EndOfInputError
from rolling_chat.plain.questions import ask
from rolling_chat.plain.turns import Turns
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.trust import FolderTrust
from rolling_chat.tools.background import BACKGROUND
from rolling_chat.tools.leftover_processes import CHILDREN, end_children


def run_plain(open_chat: Callable[[], Chat], trust: FolderTrust) -> Chat:
    """Chat in lines until the user quits; return the chat, which the caller closes."""
    return asyncio.run(_run(open_chat, trust))


async def _run(open_chat: Callable[[], Chat], trust: FolderTrust) -> Chat:
    console = Console()
    if sys.platform != "win32":
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, console.interrupt)
    with suppress(EndOfInputError):
        await _ask_for_trust(console, trust)
    chat = open_chat()
    turns = Turns(chat, console)
    commands = PlainCommands(chat, console, turns)
    console.write(f"Rolling Chat in {Path(chat.session.info.folder)}. /help lists the commands.")
    console.write(chat.session.model_line)
    for line in (*chat.session.notices, *custom_lines(chat)):
        console.write(line)
    if chat.session.conversation.recent:
        commands.reload()
    try:
        await _converse(chat, console, turns, commands)
    finally:
        await chat.session.summaries.stop()
        await BACKGROUND.end_all()
        await end_children(CHILDREN.left_running())
        await chat.disconnect()
    return chat


async def _converse(chat: Chat, console: Console, turns: Turns, commands: PlainCommands) -> None:
    """Read and handle lines until the user quits."""
    is_leaving = False
    while not commands.has_quit:
        try:
            line = await console.read("> ")
        except EndOfInputError:
            return
        if line is None:
            if is_leaving:
                return
            is_leaving = True
            console.write("Ctrl+C again, or Ctrl+D, quits.")
            continue
        is_leaving = False
        try:
            await _handle_line(line, chat, turns, commands)
        except EndOfInputError:
            return
        except ChatError as error:
            commands.say(str(error), warning=True)


async def _handle_line(line: str, chat: Chat, turns: Turns, commands: PlainCommands) -> None:
    parsed = parse(line)
    if parsed is not None:
        with suppress(ChatError):  # a command that needs the unreadable part reports it itself
            await chat.session.preview.ready()
        await run_command(parsed, commands)
    elif line.strip():
        text, commands.draft = f"{commands.draft}{line}", ""
        await turns.say(marked(text))
    else:
        await turns.carry_on()


async def _ask_for_trust(console: Console, trust: FolderTrust) -> None:
    """Ask about the folder's undecided files. An answer that cannot be saved counts as none."""
    files = trust.undecided()
    if not files:
        return
    while (answer := (await ask(console, trust_question(trust, files))).value) == SHOW:
        console.write(trust.shown(files))
    try:
        if answer == TRUST:
            trust.trust(files)
        elif answer == NEVER:
            trust.refuse(files)
    except SettingsError as error:
        trust.problem = str(error)
