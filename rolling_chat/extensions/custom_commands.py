"""Slash commands of users and projects: Markdown files, sent with the arguments inserted in their text."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rolling_chat.extensions.front_matter import FrontMatterError, parse_markdown, read_regular_file
from rolling_chat.mentions import marked, without_marks
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.project_files import SHARED_FOLDERS, FileKind, command_files
from rolling_chat.settings.trust import FolderTrust
from rolling_chat.text import one_line, printable

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(?::[a-z0-9][a-z0-9_-]*)*")
_MAX_NAME, _MAX_DESCRIPTION, _MAX_HINT, _MAX_FIELD = 64, 200, 60, 500  # characters
_MAX_COMMANDS = 200  # in one of the user's folders
_MAX_SHELL = 20  # shell commands in one text
_SHELL = re.compile(r"!`([^`\n]+)`")
_ARGUMENT = re.compile(r"\$ARGUMENTS\b|\$[1-9](?!\d)")
_HOLE = "\0"  # placeholder for a shell command's output; no text contains it


@dataclass(frozen=True, slots=True)
class Expanded:
    """A command's text with its arguments: `parts`, between which the outputs of `shell` are inserted.

    Mentions with `@` are marked.
    """

    parts: tuple[str, ...]
    shell: tuple[str, ...]

    def joined(self, outputs: Sequence[str]) -> str:
        """Return the text with the outputs inserted, in which nothing is a mention."""
        between = (*map(without_marks, outputs), "")
        return "".join(itertools.chain.from_iterable(zip(self.parts, between, strict=True)))


@dataclass(frozen=True, slots=True)
class CustomCommand:
    """One command. `source` names its file for the user; `is_own`: it is the user's, not the project's.

    `hint` describes its arguments, `model` names the model that should answer it. `allowed_tools` is only its
    author's suggestion and permits nothing.
    """

    name: str
    description: str
    text: str
    source: str
    is_own: bool
    hint: str = ""
    model: str = ""
    allowed_tools: tuple[str, ...] = ()

    def expand(self, arguments: str) -> Expanded:
        """Insert the arguments in the text; placeholders and shell commands in them are not interpreted."""
        arguments = arguments.replace(_HOLE, "")
        words = _split(arguments)

        def filled(match: re.Match[str]) -> str:
            if match[0] == "$ARGUMENTS":
                return arguments
            number = int(match[0][1])
            return words[number - 1] if number <= len(words) else ""

        shell = [_ARGUMENT.sub(filled, command) for command in _SHELL.findall(self.text)[:_MAX_SHELL]]
        text = _SHELL.sub(_HOLE, self.text, count=_MAX_SHELL)
        has_place = _ARGUMENT.search(self.text) is not None
        text = _ARGUMENT.sub(filled, text) if has_place or not arguments else f"{text}\n\n{arguments}"
        return Expanded(tuple(marked(text).split(_HOLE)), tuple(shell))


@dataclass(frozen=True, slots=True)
class CustomCommands:
    """The custom commands of one session. `faults` are lines about unusable files."""

    all: tuple[CustomCommand, ...] = ()
    faults: tuple[str, ...] = ()


def read_custom_commands(trust: FolderTrust, paths: Paths) -> CustomCommands:
    """Read the user's own commands and the folder's trusted ones; on equal names, the nearest wins."""
    found: dict[str, CustomCommand] = {}
    faults: list[str] = []
    for parts, path, source, data in _sources(trust, paths, faults):
        try:
            command = _parse(
                parts, read_regular_file(path) if data is None else data, source, is_own=data is None
            )
        except FrontMatterError as error:
            faults.append(f"The command {source} is left out: {error}.")
            continue
        found[command.name] = command
    return CustomCommands(tuple(sorted(found.values(), key=lambda one: one.name)), tuple(faults))


def _sources(
    trust: FolderTrust, paths: Paths, faults: list[str]
) -> Iterator[tuple[Sequence[str], Path, str, bytes | None]]:
    """Yield each command's name parts, file, name of the file for the user, and content if already read."""
    for folder in paths.commands_dirs:
        files = list(itertools.islice(command_files(folder), _MAX_COMMANDS + 1))
        if len(files) > _MAX_COMMANDS:
            faults.append(
                f"Of {printable(str(folder), 200)} only the first {_MAX_COMMANDS} commands are used."
            )
        for path in files[:_MAX_COMMANDS]:
            yield path.relative_to(folder).parts, path, printable(str(path), 200), None
    for file in trust.contents(FileKind.COMMAND):
        parts = PurePosixPath(file.name).parts
        begin = next(at for at, part in enumerate(parts) if part in SHARED_FOLDERS) + 2
        yield parts[begin:], file.path, printable(file.name, 200), file.data


def _parse(parts: Sequence[str], data: bytes, source: str, *, is_own: bool) -> CustomCommand:
    """Parse a command's file. Raises FrontMatterError."""
    name = ":".join(parts).removesuffix(".md").lower()
    if len(name) > _MAX_NAME or _NAME.fullmatch(name) is None:
        raise FrontMatterError(
            f"“/{printable(name, 70)}” is not a valid name: letters, digits, “-”, “_”, at most {_MAX_NAME}"
        )
    file = parse_markdown(data)
    if not file.body:
        raise FrontMatterError("it is empty")
    first = one_line(file.body.partition("\n")[0].lstrip("# "), _MAX_DESCRIPTION)
    return CustomCommand(
        name,
        file.text("description", _MAX_DESCRIPTION) or first,
        file.body,
        source,
        is_own,
        hint=file.text("argument-hint", _MAX_HINT) or _shown_list(file.words("argument-hint", _MAX_HINT)),
        model=file.text("model", _MAX_FIELD),
        allowed_tools=file.words("allowed-tools", _MAX_FIELD),
    )


def _shown_list(words: Sequence[str]) -> str:
    """Return a hint such as `[file]`, which YAML parsed as a list."""
    return one_line(" ".join(f"[{word}]" for word in words), _MAX_HINT)


def _split(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:  # a quote that is never closed
        return arguments.split()
