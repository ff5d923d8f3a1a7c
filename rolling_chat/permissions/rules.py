"""Permission rules: a tool, and for run_command the words of a command, for changes of files their paths.

As text, which is how settings hold them:

    run_command                     every call of the tool; for one that changes files, see below
    run_command(git status *)       `git status` and whatever arguments follow
    run_command(make test)          exactly this command
    run_command(=ls *.py)           exactly this command; the sign is needed where the command holds a `*`
    edit_file(src/**)               files below `src`; for the tools that change files
    edit_file(*)                    files in the working folder itself
    fetch_url(docs.python.org)      pages of this host; `*.python.org` those of the hosts below
    fetch_url(http://127.0.0.1:80)  exactly this; a host of the local network must be named so, with its port
    network(pip install *)          `pip install` has network in the sandbox; written like those of commands
    mcp__github__*                  every tool of the MCP server github; without the star, one tool

What is said of edit_file holds for multi_edit, too: it is several edits in one call. A path that is denied
to one of the tools that change files is denied to all of them. Neither a wildcard nor the tool's bare name
allows a change of what decides what runs by itself: a rule must name it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal, TypeAlias

from rolling_chat.permissions.path_patterns import (
    FILE_TOOLS,
    allows,
    denies,
    is_pattern,
    is_protected,
    pattern_for,
)
from rolling_chat.permissions.shell import SimpleCommand, UnreadableCommandError, split_command
from rolling_chat.web_addresses import SitePattern, WebAddress, is_local, parse_address, parse_pattern

COMMAND_TOOL = "run_command"
FETCH_TOOL = "fetch_url"
NETWORK = "network"
"""Stands where rules name a tool: which commands have network in the sandbox, not which may run."""

MCP_PREFIX = "mcp__"
"""How the names of the tools of MCP servers begin: `mcp__SERVER__TOOL`."""

_OF_COMMANDS = frozenset({COMMAND_TOOL, NETWORK})

_RULE = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*\*?)(?:\((.*)\))?", re.DOTALL)
_MARKS = re.compile(r"['\"\\`]")
_EXPANSION = re.compile(r"\$\(\)|\$\{[\w@*]*\}|\$(?:[\d@*]|[A-Za-z_]\w*)")
_NOT_A_NAME = re.compile(r"[^\w./+-]+")

# No argument makes one of these run a program of the caller's choice, or write a file; for git see `_WRITES`.
# Everything else is remembered as the exact command.
_PREFIX_PROGRAMS = frozenset(
    [
        "basename",
        "cat",
        "cksum",
        "cmp",
        "cut",
        "date",
        "df",
        "diff",
        "dirname",
        "du",
        "echo",
        "egrep",
        "false",
        "fgrep",
        "grep",
        "head",
        "id",
        "jq",
        "ls",
        "md5sum",
        "nl",
        "pwd",
        "readlink",
        "realpath",
        "sha1sum",
        "sha256sum",
        "stat",
        "tac",
        "tail",
        "tr",
        "true",
        "uname",
        "wc",
        "which",
        "whoami",
    ]
)
_PREFIX_SUBCOMMANDS = {
    "git": frozenset(
        [
            "add",
            "blame",
            "commit",
            "describe",
            "diff",
            "log",
            "ls-files",
            "rev-parse",
            "shortlog",
            "show",
            "status",
        ]
    )
}
# These subcommands of git write to any file that an option names.
_WRITING_SUBCOMMANDS = frozenset(["blame", "diff", "log", "shortlog", "show"])
_WRITES = "--output"
_MAY_BE_OPTION = ("-", "*", "?", "[")  # how a pattern begins that may become an option

Reach: TypeAlias = Literal["tool", "prefix", "exact", "path", "host"]
Subject: TypeAlias = str | tuple[str, ...]
"""What a call is about: a command, an address, a description; for changes of files, the paths that change."""


@dataclass(frozen=True)
class PermissionRule:
    """A permission rule: for a tool, for commands that begin with certain words, one exact command, or paths.

    `command` is the pattern of the paths where the reach is "path", and of the hosts where it is "host".
    """

    tool: str
    reach: Reach = "tool"
    command: str = ""

    @property
    def text(self) -> str:
        """Format the rule as it is written in the settings."""
        match self.reach:
            case "tool":
                return self.tool
            case "prefix":
                return f"{self.tool}({self.command} *)"
            case "path" | "host":
                return f"{self.tool}({self.command})"
            case _:
                is_plain = "*" not in self.command and self.command.strip() == self.command
                sign = "" if is_plain and not self.command.startswith("=") else "="
                return f"{self.tool}({sign}{self.command})"

    def is_about(self, tool: str) -> bool:
        """Return whether the rule is about a tool, by its name or by how that begins."""
        return self.tool == tool or (self.tool.endswith("*") and tool.startswith(self.tool[:-1]))

    def is_known(self, tools: Collection[str]) -> bool:
        """Return whether the rule is about one of `tools`, or about an MCP server: these come and go."""
        return self.tool in tools or self.tool.startswith(MCP_PREFIX)

    @property
    def can_be_kept(self) -> bool:
        """Whether the rule can be written to the settings: a command of several lines cannot."""
        return self.text.isprintable()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The literal words of the command; none where it is no single simple command."""
        try:
            first, *others = split_command(self.command)
        except UnreadableCommandError:
            return ()
        is_whole = not others and len(first.literal) == len(first.words)
        return first.literal if is_whole else ()

    @cached_property
    def site(self) -> SitePattern:
        """The hosts that the rule names."""
        return parse_pattern(self.command)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The words to look for in a command that cannot be parsed for certain."""
        return _names(self.command)

    def covers(self, part: SimpleCommand) -> bool:
        """Return whether the rule applies to one simple command of a compound one."""
        if not self.words:
            return False
        return part.begins_with(self.words) if self.reach == "prefix" else part.is_exactly(self.words)

    def allows(self, part: SimpleCommand) -> bool:
        """Return whether an allow rule permits one simple command of a compound one."""
        return self.covers(part) and (self.reach == "exact" or not _may_write(part))


def parse_rule(text: str) -> PermissionRule:
    """Parse a permission rule. Raises ValueError whose text tells the user the reason."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise ValueError("is no rule")
    tool, inside = match[1], match[2]
    if tool.endswith("*") and not tool.startswith(MCP_PREFIX):
        raise ValueError(f"has a * in a tool's name, which only those of MCP servers take ({MCP_PREFIX}…)")
    return PermissionRule(tool) if inside is None else _with_pattern(tool, inside)


def _with_pattern(tool: str, inside: str) -> PermissionRule:
    """Return the rule for a tool with what is in its brackets. Raises ValueError."""
    if tool in FILE_TOOLS:
        if not is_pattern(inside.strip()):
            raise ValueError("must have a path below the working folder, such as src/**")
        return PermissionRule(tool, "path", inside.strip())
    if inside.strip() == "*":
        return PermissionRule(tool)
    if tool == FETCH_TOOL:
        return _about_host(inside.strip())
    if tool not in _OF_COMMANDS:
        raise ValueError(
            f"has a pattern, which only {COMMAND_TOOL}, {FETCH_TOOL} and the tools that change files take"
        )
    if inside.startswith("="):
        return _exact(inside[1:], tool)
    inside = inside.strip()
    if inside.endswith((" *", "\t*")):
        rule = PermissionRule(tool, "prefix", inside[:-1].strip())
        if not rule.words or "*" in rule.command:
            raise ValueError("must have plain words before the *")
        return rule
    if "*" in inside:
        raise ValueError("needs a blank before a * at its end, or = in front of an exact command")
    return _exact(inside, tool)


def propose_rule(tool: str, subject: Subject, exact_only: Collection[str] = ()) -> PermissionRule:
    """Return the rule that the answer "Always" adds for a call; `exact_only` as for `is_allowed`."""
    if isinstance(subject, tuple):
        return PermissionRule(_ruled_as(tool), "path", pattern_for(subject, exact_only))
    if tool == FETCH_TOOL:
        return PermissionRule(tool, "host", parse_address(subject).site)
    if tool != COMMAND_TOOL:
        return PermissionRule(tool)
    try:
        first, *others = split_command(subject)
    except UnreadableCommandError:
        return _exact(subject)
    prefix = _safe_prefix(first)
    if others or not prefix:
        return _exact(subject)
    return PermissionRule(COMMAND_TOOL, "prefix", " ".join(prefix))


def is_allowed(
    rules: Iterable[PermissionRule], tool: str, subject: Subject, exact_only: Collection[str] = ()
) -> bool:
    """Return whether rules allow a call; every part of a compound command must be allowed by itself.

    `exact_only` are those paths of the subject that no pattern with a star allows, whatever it names.
    """
    own = [rule for rule in rules if _is_about(rule, tool)]
    if isinstance(subject, tuple):
        return bool(subject) and all(
            any(_allows_path(rule, path, is_exact_only=path in exact_only) for rule in own)
            for path in subject
        )
    if any(rule.reach == "tool" for rule in own):
        return True
    if tool == FETCH_TOOL:
        address = parse_address(subject)
        return any(rule.site.allows(address) for rule in own)
    if any(rule.reach == "exact" and rule.command == subject for rule in own):
        return True
    try:
        parts = split_command(subject) if own else ()
    except UnreadableCommandError:
        return False
    return bool(parts) and all(any(rule.allows(part) for rule in own) for part in parts)


def opens(rules: Iterable[PermissionRule], address: WebAddress) -> bool:
    """Return whether a rule names an address by scheme, host and port: it may be on the local network."""
    return any(rule.reach == "host" and rule.site.opens(address) for rule in rules)


def is_closed(rules: Iterable[PermissionRule], tool: str, subject: Subject) -> bool:
    """Return whether a call would fetch from the local network, and no rule names exactly that origin."""
    if tool != FETCH_TOOL or not isinstance(subject, str):
        return False
    address = parse_address(subject)
    return is_local(address) and not opens(rules, address)


def _allows_path(rule: PermissionRule, path: str, *, is_exact_only: bool) -> bool:
    """Whether a rule allows a change of one path."""
    if rule.reach == "tool":
        return not is_exact_only and not is_protected(path)
    if is_exact_only and "*" in rule.command:
        return False
    return allows(rule.command, path)


def find_denial(rules: Iterable[PermissionRule], tool: str, subject: Subject) -> PermissionRule | None:
    """Return the rule that denies a call, if any; an unparsable command need only name the program."""
    own = (rule for rule in rules if _is_about(rule, tool) or _shares_paths(rule, tool))
    return next((rule for rule in own if _denies(rule, subject)), None)


def _is_about(rule: PermissionRule, tool: str) -> bool:
    return rule.is_about(tool) or rule.tool == _ruled_as(tool)


def _shares_paths(rule: PermissionRule, tool: str) -> bool:
    """Whether a deny rule is about paths, and the tool one of those that change files."""
    return rule.reach == "path" and tool in FILE_TOOLS


def _ruled_as(tool: str) -> str:
    """Return the tool whose rules hold for a tool as well as its own: several edits are edits."""
    return "edit_file" if tool == "multi_edit" else tool


def _denies(rule: PermissionRule, subject: Subject) -> bool:
    if rule.reach == "tool" or rule.command == subject:
        return True
    if isinstance(subject, tuple):
        return any(denies(rule.command, path) for path in subject)
    if rule.reach == "host":
        return rule.site.denies(parse_address(subject))
    try:
        parts = split_command(subject)
    except UnreadableCommandError:
        return _names_denied(rule, subject)
    if any(rule.covers(part) or _may_become(part, rule.names) for part in parts):
        return True
    # a program that may run others is denied by what is named anywhere in the command
    return not all(_safe_prefix(part) for part in parts) and _names_denied(rule, subject)


def _about_host(pattern: str) -> PermissionRule:
    try:
        parse_pattern(pattern)
    except ValueError:
        raise ValueError("must have a host, such as docs.python.org or http://127.0.0.1:8000") from None
    return PermissionRule(FETCH_TOOL, "host", pattern)


def _exact(command: str, tool: str = COMMAND_TOOL) -> PermissionRule:
    if not command.strip():
        raise ValueError("names no command")
    return PermissionRule(tool, "exact", command)


def _safe_prefix(command: SimpleCommand) -> tuple[str, ...]:
    """Return the first words that are safe to allow with any arguments; none if there are none."""
    match command.literal:
        case [program, *_] if program in _PREFIX_PROGRAMS:
            return (program,)
        case [program, subcommand, *_] if subcommand in _PREFIX_SUBCOMMANDS.get(program, ()):
            return () if _may_write(command) else (program, subcommand)
        case _:
            return ()


def _may_write(part: SimpleCommand) -> bool:
    """Whether a word of a git command may be the option that writes a file.

    A file's name may make a pattern one. What follows `--` counts, too: `git blame -S -- --output=x`.
    """
    match part.literal:
        case ["git", subcommand, *_] if subcommand in _WRITING_SUBCOMMANDS:
            return any(
                word.text.startswith(_WRITES if word.is_literal else _MAY_BE_OPTION)
                for word in part.words[2:]
            )
        case _:
            return False


def _may_become(part: SimpleCommand, wanted: Sequence[str]) -> bool:
    """Whether the shell may put the wanted program in place of a pattern: `/bin/r? x`."""
    first, *others = part.words
    if first.is_literal or not wanted:
        return False
    pattern = first.text.rpartition("/")[2]
    return fnmatchcase(wanted[0], pattern) and _in_order(wanted[1:], [word.text for word in others])


def _names_denied(rule: PermissionRule, subject: str) -> bool:
    """Whether a command names what the rule denies, by either reading of its quotes and expansions."""
    return any(_mentions(_names(subject, instead), rule.names) for instead in ("", " "))


def _names(text: str, instead: str = "") -> tuple[str, ...]:
    """Split a text into the names in it, with `instead` of every quote, backslash and plain expansion."""
    bare = _MARKS.sub(instead, _EXPANSION.sub(instead, text.replace("\\\n", "")))
    return tuple(name for name in _NOT_A_NAME.split(bare) if name)


def _mentions(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the wanted names occur in a row; options may follow the first of them."""
    if not wanted:
        return False
    program = _program(wanted[0])
    for index, name in enumerate(names):
        if program not in (_program(name), _program(name.rpartition("/")[2])):
            continue
        rest = names[index + 1 :]
        if tuple(rest[: len(wanted) - 1]) == tuple(wanted[1:]):
            return True
        if rest and rest[0].startswith("-") and _in_order(wanted[1:], rest):
            return True
    return False


def _program(name: str) -> str:
    """A program's name as file systems compare it that ignore case, and as Windows completes it."""
    return name.casefold().removesuffix(".exe")


def _in_order(wanted: Sequence[str], names: Sequence[str]) -> bool:
    left = iter(names)
    return all(name in left for name in wanted)
