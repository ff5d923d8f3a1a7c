"""The programs that we start ourselves are never those that the working folder brought along."""

from __future__ import annotations

import ast
import os
import sys
import webbrowser
from pathlib import Path

import pytest

import rolling_chat
from rolling_chat.programs import find_program, trusted_path
from rolling_chat.tools import ToolContext
from rolling_chat.tools.run_command import RunCommand
from rolling_chat.tools.search_files import SearchFiles
from rolling_chat.tui.terminal import clipboard, external

pytestmark = pytest.mark.skipif(os.name == "nt", reason="programs are scripts with an x bit here")
MARK = "it-ran"
SPAWNERS = (".create_subprocess_exec", "subprocess.run", "Popen", "check_output", "execvp")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, which is the process's own, with programs of all the names that we look for."""
    folder = tmp_path / "work"
    for place in (folder, folder / "bin", folder / "node_modules" / ".bin"):
        place.mkdir(parents=True)
        for name in ("rg", "bash", "tmux", "ps", "less", "nano", "ed", "xdg-open", "www-browser"):
            make_program(place / name, f": > {folder / MARK}")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(params=["./node_modules/.bin", ".", "", "bin", "absolute", "linked", "linked programs"])
def search_path(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> str:
    """A PATH whose first entry leads into the working folder, one way or another."""
    first = request.param
    if first == "absolute":
        first = str(folder / "bin")
    elif first == "linked":
        (tmp_path / "link").symlink_to(folder / "bin")
        first = str(tmp_path / "link")
    elif first == "linked programs":
        (tmp_path / "tools").mkdir()
        for program in (folder / "bin").iterdir():
            (tmp_path / "tools" / program.name).symlink_to(program)
        first = str(tmp_path / "tools")
    return f"{first}{os.pathsep}{os.environ['PATH']}"


def make_program(file: Path, line: str) -> None:
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)


@pytest.mark.parametrize("name", ["rg", "bash", "tmux", "ps", "less", "nano"])
def test_a_program_of_the_folder_is_not_found(folder: Path, search_path: str, name: str) -> None:
    found = find_program(name, {"PATH": search_path}, folder)
    assert found is None or not Path(found).resolve().is_relative_to(folder)
    assert find_program(name, {"PATH": search_path}) == found, "the process's own folder counts by default"


async def test_searching_and_running_start_none_of_them(
    folder: Path, search_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", search_path)
    context = ToolContext(folder, {"PATH": search_path})
    (folder / "a.txt").write_text("needle\n")
    assert (await SearchFiles().run({"pattern": "needle"}, context)).text == "a.txt:1:needle"
    assert "[exit code 0]" in (await RunCommand().run({"command": "true"}, context)).text
    assert not (folder / MARK).exists()


async def test_inside_a_command_the_path_is_the_users(folder: Path) -> None:
    context = ToolContext(folder, {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"})
    await RunCommand().run({"command": "xdg-open"}, context)
    assert (folder / MARK).exists()


async def test_copying_starts_no_tmux_of_the_folder(folder: Path, search_path: str) -> None:
    environ = {"PATH": search_path.split(os.pathsep, maxsplit=1)[0], "TMUX": "x"}
    assert not await clipboard._copy_to_tmux("x", environ)
    assert not (folder / MARK).exists()


@pytest.mark.parametrize("named", ["nano", "./nano", "bin/nano"])
def test_an_editor_of_the_folder_is_refused_with_what_to_do(search_path: str, named: str) -> None:
    environ = {"PATH": search_path.split(os.pathsep, maxsplit=1)[0], "EDITOR": named}
    with pytest.raises(external.ExternalError, match=r"outside the working folder.*EDITOR"):
        external._command(environ, "editor")


def test_an_absolute_editor_is_the_users_choice(folder: Path) -> None:
    chosen = str(folder / "bin" / "ed")
    assert external._command({"EDITOR": f"{chosen} -w"}, "editor") == [chosen, "-w"]


@pytest.mark.parametrize("entry", ["./node_modules/.bin", ".", ""])
def test_a_browser_of_the_folder_is_not_found(
    folder: Path, entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", entry)
    with trusted_path():
        assert webbrowser.GenericBrowser("www-browser").open("http://a.example") is False
    assert os.environ["PATH"] == entry
    assert not (folder / MARK).exists()


def test_the_systems_programs_are_found_in_a_folder_that_holds_them() -> None:
    assert find_program("sh", {"PATH": "/usr/bin:/bin"}, Path("/")) in {"/usr/bin/sh", "/bin/sh"}
    assert find_program("sh", {"PATH": "/usr/bin"}, Path("/usr/bin")) is None


def test_nothing_else_looks_for_programs_or_starts_one_by_its_bare_name() -> None:
    faults = []
    for file in Path(rolling_chat.__file__).parent.rglob("*.py"):
        tree = ast.parse(file.read_text())
        on_trusted_path = {call for part in ast.walk(tree) if _trusts_path(part) for call in ast.walk(part)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or node in on_trusted_path:
                continue
            called = ast.unparse(node.func)
            if called in {"shutil.which", "which", "os.system", "os.popen", "webbrowser.open"} or (
                called.endswith(
                    (".create_subprocess_exec", "subprocess.run", "Popen", "check_output", "execvp")
                )
                and node.args
                and _first(node.args[0])
            ):
                faults.append(f"{file.name}:{node.lineno}")
    assert not faults


def _trusts_path(node: ast.AST) -> bool:
    """Whether a node is `with trusted_path():`, within which a browser may be looked for."""
    return isinstance(node, ast.With) and any(
        ast.unparse(item.context_expr) == "trusted_path()" for item in node.items
    )


def _first(argument: ast.expr) -> bool:
    """Whether a call's program is written out, relative to PATH."""
    if isinstance(argument, ast.List | ast.Tuple) and argument.elts:
        argument = argument.elts[0]
    return isinstance(argument, ast.Constant) and not Path(str(argument.value)).is_absolute()


def test_the_interpreter_is_found_by_an_absolute_path() -> None:
    home, name = os.path.split(os.path.realpath(sys.executable))
    assert find_program(name, {"PATH": home}) == str(Path(home, name))
