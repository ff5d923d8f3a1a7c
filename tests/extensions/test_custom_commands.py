"""Command files become commands; arguments, mentions and shell lines are taken from the file alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.extensions.custom_commands import CustomCommand, CustomCommands, read_custom_commands
from rolling_chat.mentions import MARK
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.trust import FolderTrust
from tests.support.tui import make_paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return replace(make_paths(tmp_path / "home"), shared_folder=tmp_path / "user" / ".agents")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


def write(folder: Path, name: str, text: str = "Do it.") -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def read(project: Path, paths: Paths, *, trusted: bool = True) -> CustomCommands:
    return read_custom_commands(FolderTrust(project, paths, everything=trusted), paths)


def command(text: str) -> CustomCommand:
    return CustomCommand("x", "d", text, "x.md", is_own=True)


def test_folders_are_namespaces_and_the_nearest_wins(project: Path, paths: Paths) -> None:
    write(paths.config_file.parent / "commands", "review.md", "mine")
    write(paths.shared_folder / "commands", "git/Commit.md", "shared")
    write(project / ".claude" / "commands", "git/commit.md", "of another agent")
    write(project / ".agents" / "commands", "git/commit.md", "of the project")
    write(project / ".agents" / "commands", "notes.txt", "no command")
    found = read(project, paths)
    assert {one.name: one.text for one in found.all} == {"git:commit": "of the project", "review": "mine"}
    assert {one.name: one.text for one in read(project, paths, trusted=False).all} == {
        "git:commit": "shared",
        "review": "mine",
    }


def test_the_front_matter_describes_it(project: Path, paths: Paths) -> None:
    front = "description: Fix an issue\nargument-hint: [number] [words]\nmodel: x/y\nallowed-tools: Read"
    text = f"---\n{front}\n---\nFix $1."
    write(project / ".agents" / "commands", "fix.md", text)
    write(project / ".agents" / "commands", "plain.md", "# Say hello\n\nHello.")
    fix, plain = read(project, paths).all
    assert (fix.description, fix.hint, fix.model, fix.allowed_tools) == (
        "Fix an issue", "[number] [words]", "x/y", ("Read",),
    )  # fmt: skip
    assert (plain.description, plain.hint) == ("Say hello", "")


@pytest.mark.parametrize(
    "name", ["de ploy.md", "../x.md", "\x1b]0;pwned\x07.md", "-x.md", f"{'x' * 70}.md", "ü.md"]
)
def test_a_name_that_cannot_be_typed_is_skipped_with_a_line(name: str, project: Path, paths: Paths) -> None:
    write(project / ".agents" / "commands" / "sub", name)
    found = read(project, paths)
    assert ".." in name or len(found.faults) == 1
    assert all(line.isprintable() for line in found.faults)
    assert [one.name for one in found.all] == (["x"] if ".." in name else [])


def test_an_empty_and_a_broken_file_are_skipped_with_a_line(project: Path, paths: Paths) -> None:
    write(project / ".agents" / "commands", "empty.md", "---\ndescription: d\n---\n")
    write(project / ".agents" / "commands", "broken.md", "---\n[\n---\nx")
    found = read(project, paths)
    assert found.all == ()
    assert [line.partition(": ")[0] for line in found.faults] == [
        "The command .agents/commands/broken.md is left out",
        "The command .agents/commands/empty.md is left out",
    ]


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("Fix $ARGUMENTS now.", "the lexer", "Fix the lexer now."),
        ("$2 before $1", '"one two" three', "three before one two"),
        ("$1 and $3.", "one", "one and ."),
        ("No place.", "more words", "No place.\n\nmore words"),
        ("No place.", "", "No place."),
        ("$1", "$2 two", "$2"),
        ("$1", "un'closed", "un'closed"),
        ("costs $10", "x", "costs $10\n\nx"),
    ],
)
def test_arguments_take_their_places_once(text: str, arguments: str, expected: str) -> None:
    expanded = command(text).expand(arguments)
    assert expanded.joined([]) == expected


def test_mentions_and_shell_lines_come_from_the_file_and_not_from_outputs() -> None:
    expanded = command("See @a.py and !`git diff $1` of `@b.py`.").expand("main")
    assert expanded.shell == ("git diff main",)
    assert expanded.joined([f"@c.py {MARK}d.py"]) == f"See {MARK}a.py and @c.py d.py of `@b.py`."


def test_a_shell_line_in_the_arguments_is_text() -> None:
    expanded = command("Do $ARGUMENTS").expand("!`touch made`")
    assert (expanded.shell, expanded.joined([])) == ((), "Do !`touch made`")


@given(st.text(max_size=80))
def test_whatever_the_arguments_are_they_run_nothing_and_stay_one_text(arguments: str) -> None:
    expanded = command("Do $ARGUMENTS, !`ls`, $1.").expand(arguments)
    assert expanded.shell == ("ls",)
    assert len(expanded.parts) == 2
    assert expanded.joined(["out"]).count("out") >= 1
    assert command("!`echo $ARGUMENTS`").expand(arguments).shell == (f"echo {arguments.replace(chr(0), '')}",)
