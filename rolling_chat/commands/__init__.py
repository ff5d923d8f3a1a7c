"""Slash commands: one small module each, and the registry that help and completion read."""

from rolling_chat.commands.base import Choice, Column, Command, CommandContext, Table
from rolling_chat.commands.completing import Completer, Offer
from rolling_chat.commands.registry import (
    ParsedCommand,
    all_commands,
    complete,
    custom_commands,
    custom_lines,
    find_command,
    nearest_command,
    parse,
    run_command,
)

__all__ = [
    "Choice",
    "Column",
    "Command",
    "CommandContext",
    "Completer",
    "Offer",
    "ParsedCommand",
    "Table",
    "all_commands",
    "complete",
    "custom_commands",
    "custom_lines",
    "find_command",
    "nearest_command",
    "parse",
    "run_command",
]
