"""Hooks come from the user's settings and a trusted project's file, in the form that agents share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rolling_chat.extensions.hooks import Hooks, read_hooks
from rolling_chat.settings.hook_settings import Hook, HookSettings
from rolling_chat.settings.trust import FolderTrust
from tests.support.hooks import hooked
from tests.support.tui import make_paths


def read(
    tmp_path: Path, data: object, settings: HookSettings | None = None, *, trusted: bool = True
) -> Hooks:
    """The hooks of a folder with that file."""
    file = tmp_path / "project" / ".agents" / "hooks.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    trust = FolderTrust(file.parent.parent, make_paths(tmp_path / "home"), everything=trusted)
    return read_hooks(settings or HookSettings(), trust)


def test_the_users_come_before_the_projects(tmp_path: Path) -> None:
    theirs = {"hooks": [{"type": "command", "command": "theirs", "timeout": 5, "statusMessage": "x"}]}
    data = {"hooks": {"Stop": [{"matcher": "*", **theirs}, {"command": "bare", "onFailure": "block"}]}}
    found = read(tmp_path, data, hooked(Stop={"command": "mine", "matcher": "x", "on_failure": "block"}))
    assert found.by_event == {
        "Stop": (
            Hook("mine", "x", blocks_on_failure=True),
            Hook("theirs", timeout=5, is_own=False),
            Hook("bare", blocks_on_failure=True, is_own=False),
        )
    }
    assert found.faults == ()


def test_without_trust_there_are_the_users_alone(tmp_path: Path) -> None:
    data = {"hooks": {"Stop": [{"command": "theirs"}]}}
    assert not read(tmp_path, data, trusted=False)
    assert read(tmp_path, data, hooked(Stop="mine"), trusted=False).by_event == {"Stop": (Hook("mine"),)}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("[", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "it is not JSON"),
        ('{"hooks": []}', 'it has no table "hooks"'),
        ("[]", 'it has no table "hooks"'),
        (" " * 300_000, "it is larger than"),
        ({"hooks": {"SubagentStop": []}}, "there is no event SubagentStop here"),
        ({"hooks": {"\x1b[2J": []}}, "there is no event ␛[2J here"),
        ({"hooks": {"Stop": 7}}, "Stop is not a list"),
        ({"hooks": {"Stop": [7]}}, "is not a table"),
        ({"hooks": {"Stop": [{"hooks": 7}]}}, "is not a table"),
        ({"hooks": {"Stop": [{"hooks": [7]}]}}, "is not a table"),
        ({"hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}}, "its type is prompt"),
        ({"hooks": {"Stop": [{"command": ""}]}}, "command must be a text"),
        ({"hooks": {"Stop": [{"command": "x\0y"}]}}, "command must be a text"),
        ({"hooks": {"Stop": [{"command": "x", "timeout": 0}]}}, "timeout must be"),
        ({"hooks": {"Stop": [{"command": "x", "timeout": 1e400}]}}, "timeout must be"),
        ({"hooks": {"Stop": [{"command": "x", "matcher": "("}]}}, "matcher is no regular expression"),
    ],
)
def test_what_is_wrong_is_a_line_and_the_rest_is_used(data: object, said: str, tmp_path: Path) -> None:
    if isinstance(data, dict) and isinstance(data["hooks"].get("Stop", []), list):
        data["hooks"].setdefault("Stop", []).append({"command": "good"})
    found = read(tmp_path, data)
    (line,) = found.faults
    assert said in line
    assert line.isprintable()
    assert [hook.command for hook in found.by_event.get("Stop", ())] == (
        ["good"] if "good" in str(data) else []
    )


def test_thousands_of_hooks_are_the_first_ones(tmp_path: Path) -> None:
    found = read(tmp_path, {"hooks": {"Stop": [{"command": f"c{number}"} for number in range(2_000)]}})
    assert len(found.by_event["Stop"]) == 50
