"""The shells' completions: up to date, and what each shell offers by them."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from rolling_chat.cli.subcommands import SHELLS
from tests.support.program import Program

ROOT = Path(__file__).resolve().parents[2]


def test_they_are_what_the_parser_makes_today() -> None:
    maker = ROOT / ".ci" / "make_completions.py"
    spec = importlib.util.spec_from_file_location("make_completions", maker)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shipped = {path.name: path.read_text(encoding="utf-8") for path in module.FOLDER.iterdir()}
    assert shipped == module.completions(), "run .ci/make_completions.py"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_the_script_of_a_shell(program: Program, shell: str) -> None:
    ran = program("completion", shell)
    assert ran.code == 0
    assert "sessions" in ran.out
    assert not ran.err


def test_an_unknown_shell_is_named_with_those_there_are(program: Program) -> None:
    ran = program("completion", "tcl")
    assert ran.code == 2
    assert "choose from 'bash', 'zsh', 'fish'" in ran.err


def test_bash_offers_commands_actions_and_options() -> None:
    assert {"sessions", "doctor", "completion"} <= _by_bash("")
    assert _by_bash("sessions", "ex") == {"export"}
    assert "--approvals" in _by_bash("--app")
    assert _by_bash("completion", "z") == {"zsh"}


def test_fish_offers_actions_with_what_they_do() -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    script = ROOT / "rolling_chat" / "cli" / "completions" / "rolling-chat.fish"
    line = f"source {script}; complete -C 'rolling-chat sessions ex'"
    ran = subprocess.run(["fish", "-N", "-c", line], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\t")[0] == "export"


def _by_bash(*words: str) -> set[str]:
    """Return what bash offers for the last word."""
    script = ROOT / "rolling_chat" / "cli" / "completions" / "rolling-chat.bash"
    line = " ".join(f"'{word}'" for word in ("rolling-chat", *words))
    code = (
        f"source {script}; compopt() {{ :; }}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; "
        '_shtab_rolling_chat rolling-chat "${COMP_WORDS[COMP_CWORD]}"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())
