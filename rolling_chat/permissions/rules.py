"""Permission rules: a tool, and optionally the words of a command, the paths of changed files, or a host.

Their text in the settings:

    run_command                     every call of the tool; for one that changes files, see below
    run_command(git status *)       `git status` and whatever arguments follow
    run_command(make test)          exactly this command
    run_command(=ls *.py)           exactly this command; the sign is needed if the command contains a `*`
    edit_file(src/**)               files below `src`; for the tools that change files
    edit_file(*)                    files in the working folder itself
    fetch_url(docs.python.org)      pages of this host; `*.python.org` means its subdomains
    fetch_url(http://127.0.0.1:80)  exactly this; a host of the local network needs this form, with its port
    network(pip install *)          `pip install` has network in the sandbox; same form as for commands
    mcp__github__*                  every tool of the MCP server github; without the star, one tool

Rules for edit_file also apply to multi_edit, which makes several edits in one call. A path that is denied to
one of the tools that change files is denied to all of them. Neither a wildcard nor the tool's bare name
allows a change of a protected file, which decides what runs by itself: a rule must name it.
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
"""The name in rules that give commands network in the sandbox, in place of a tool's name."""

MCP_PREFIX = "mcp__"
"""The prefix of the names of MCP servers' tools: `mcp__SERVER__TOOL`."""

_OF_COMMANDS = frozenset({COMMAND_TOOL, NETWORK})

_RULE = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*\*?)(?:\((.*)\))?", re.DOTALL)
_MARKS = re.compile(r"['\"\\`]")
_EXPANSION = re.compile(r"\$\(\)|\$\{[\w@*]*\}|\$(?:[\d@*]|[A-Za-z_]\w*)")
_NOT_A_NAME = re.compile(r"[^\w./+-]+")

# No argument makes one of these run an arbitrary program or write a file; for git, see `_WRITES`.
# For all others, the exact command is remembered.
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
_MAY_BE_OPTION = ("-", "*", "?", "[")  # the beginnings of a pattern that may expand to an option

Reach: TypeAlias = Literal["tool", "prefix", "exact", "path", "host"]
Subject: TypeAlias = str | tuple[str, ...]
"""The subject of a call: a command, an address or a description; for file changes, the changed paths."""


@dataclass(frozen=True)
class PermissionRule:
    """A permission rule for a tool, commands with a common beginning, one exact command, paths or hosts.

    If `reach` is "path" or "host", `command` is the pattern of the paths or hosts.
    """

    tool: str
    reach: Reach = "tool"
    command: str = ""

    @property
    def text(self) -> str:
        """The rule as written in the settings."""
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
        """Return whether the rule is about a tool, by its name or a prefix of it."""
        return self.tool == tool or (self.tool.endswith("*") and tool.startswith(self.tool[:-1]))

    def is_known(self, tools: Collection[str]) -> bool:
        """Return whether the rule is about one of `tools` or an MCP server, which need not be configured."""
        return self.tool in tools or self.tool.startswith(MCP_PREFIX)

    @property
    def can_be_kept(self) -> bool:
        """Whether the rule can be written to the settings, which a command of several lines cannot."""
        return self.text.isprintable()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The literal words of the command; none if it is not a single simple command."""
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
        """The words to search for in a command that cannot be parsed with certainty."""
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
    """Parse a permission rule. Raises ValueError, whose text is the reason for the user."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise ValueError("is no rule")
    tool, inside = match[1], match[2]
    if tool.endswith("*") and not tool.startswith(MCP_PREFIX):
        raise ValueError(f"has a * in a tool's name, which only those of MCP servers take ({MCP_PREFIX}…)")
    return PermissionRule(tool) if inside is None else _with_pattern(tool, inside)


def _with_pattern(tool: str, inside: str) -> PermissionRule:
    """Return the rule for a tool with a pattern in brackets. Raises ValueError."""
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

    `exact_only` are the paths of the subject that no pattern with a star can allow.
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
    """Return whether a rule names an address by scheme, host and port, so that it may be a local one."""
    return any(rule.reach == "host" and rule.site.opens(address) for rule in rules)


def is_closed(rules: Iterable[PermissionRule], tool: str, subject: Subject) -> bool:
    """Return whether a call would fetch from the local network, and no rule names exactly that origin."""
    if tool != FETCH_TOOL or not isinstance(subject, str):
        return False
    address = parse_address(subject)
    return is_local(address) and not opens(rules, address)


def _allows_path(rule: PermissionRule, path: str, *, is_exact_only: bool) -> bool:
    """Return whether a rule allows a change of one path."""
    if rule.reach == "tool":
        return not is_exact_only and not is_protected(path)
    if is_exact_only and "*" in rule.command:
        return False
    return allows(rule.command, path)


def find_denial(rules: Iterable[PermissionRule], tool: str, subject: Subject) -> PermissionRule | None:
    """Return the rule that denies a call, if any; for an unparsable command, naming the program is enough."""
    own = (rule for rule in rules if _is_about(rule, tool) or _shares_paths(rule, tool))
    return next((rule for rule in own if _denies(rule, subject)), None)


def _is_about(rule: PermissionRule, tool: str) -> bool:
    return rule.is_about(tool) or rule.tool == _ruled_as(tool)


def _shares_paths(rule: PermissionRule, tool: str) -> bool:
    """Return whether a deny rule is about paths and the tool changes files."""
    return rule.reach == "path" and tool in FILE_TOOLS


def _ruled_as(tool: str) -> str:
    """Return the tool whose rules also apply to `tool`: those of edit_file for multi_edit."""
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
    # a program that may run others is denied if the denied one is named anywhere in the command
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
    """Return the first words that are safe to allow with any arguments, if any."""
    match command.literal:
        case [program, *_] if program in _PREFIX_PROGRAMS:
            return (program,)
        case [program, subcommand, *_] if subcommand in _PREFIX_SUBCOMMANDS.get(program, ()):
            return () if _may_write(command) else (program, subcommand)
        case _:
            return ()


def _may_write(part: SimpleCommand) -> bool:
    """Return whether a word of a git command may be the option that writes a file.

    A pattern may expand to it because of a file's name. Words after `--` count too, as in
    `git blame -S -- --output=x`.
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
    """Return whether the shell may expand a pattern to the wanted program, as in `/bin/r? x`."""
    first, *others = part.words
    if first.is_literal or not wanted:
        return False
    pattern = first.text.rpartition("/")[2]
    return fnmatchcase(wanted[0], pattern) and _in_order(wanted[1:], [word.text for word in others])


def _names_denied(rule: PermissionRule, subject: str) -> bool:
    """Return whether a command names what the rule denies, with quotes and expansions removed or split at."""
    return any(_mentions(_names(subject, instead), rule.names) for instead in ("", " "))


def _names(text: str, instead: str = "") -> tuple[str, ...]:
    """Return the names in a text, with every quote, backslash and plain expansion replaced by `instead`."""
    bare = _MARKS.sub(instead, _EXPANSION.sub(instead, text.replace("\\\n", "")))
    return tuple(name for name in _NOT_A_NAME.split(bare) if name)


def _mentions(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether the wanted names occur in a row; options may follow the first of them."""
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
    """Return a program's name normalized for file systems that ignore case, and for Windows's suffix."""
    return name.casefold().removesuffix(".exe")


def _in_order(wanted: Sequence[str], names: Sequence[str]) -> bool:
    left = iter(names)
    return all(name in left for name in wanted)
