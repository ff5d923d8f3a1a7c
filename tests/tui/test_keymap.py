"""The table of keys, and what settings make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.load import load_settings
from rolling_chat.settings.paths import find_paths
from rolling_chat.tui.dialogs.help_screen import HelpScreen
from rolling_chat.tui.keymap import ACTIONS, KEYS, Keymap
from tests.support.tui import idle, make_app, make_chat, screen_of, shown, transcript, wait_until

_TAKEN = "[keys] read: f5 is find's already; read keeps its keys."


def test_no_key_does_two_things() -> None:
    keys = [key for action in ACTIONS.values() for key in action.keys]
    fixed = [key for row in KEYS for key in row.fixed]
    assert len({*keys, *fixed}) == len(keys) + len(fixed)
    assert Keymap.of({name: action.keys for name, action in ACTIONS.items()}).warnings == ()


@pytest.mark.parametrize(
    ("wanted", "changed", "warning"),
    [
        ({"find": ["ctrl+t"]}, {"find": ("ctrl+t",)}, ""),
        ({"find": [" Ctrl+T", "F5"]}, {"find": ("ctrl+t", "f5")}, ""),
        ({"find": ["f6"], "read": ["ctrl+f"]}, {"find": ("f6",), "read": ("ctrl+f",)}, ""),
        ({"fnd": ["f5"]}, {}, "[keys] fnd: no such action; did you mean find?"),
        ({"find": ["f1"]}, {}, "[keys] find: f1 is help's already; find keeps its keys."),
        (
            {"find": ["f5"], "read": ["f5"]},
            {"find": ("f5",)},
            "[keys] read: f5 is find's already; read keeps its keys.",
        ),
        ({"quit": ["enter"]}, {}, "[keys] quit: enter cannot be changed; quit keeps its keys."),
        ({"quit": ["esc"]}, {}, "[keys] quit: esc cannot be changed; quit keeps its keys."),
        ({"quit": ["q"]}, {}, "[keys] quit: q is text; take a key such as ctrl+t or f5."),
        ({"quit": []}, {}, "[keys] quit: no key is given; it keeps its keys."),
    ],
)
def test_what_cannot_be_followed_is_one_line(
    wanted: dict[str, list[str]], changed: dict[str, tuple[str, ...]], warning: str
) -> None:
    keymap = Keymap.of(wanted)
    assert (keymap.changed, keymap.warnings) == (changed, (warning,) if warning else ())


def test_settings_take_a_key_or_a_list_of_keys(tmp_path: Path) -> None:
    paths = find_paths({"ROLLING_CHAT_HOME": str(tmp_path)})
    paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text('[keys]\nfind = "ctrl+t"\nread = ["f7", "f8"]\n')
    assert load_settings(paths, tmp_path, {}).keys == {"find": ("ctrl+t",), "read": ("f7", "f8")}
    assert load_settings(paths, tmp_path, {}, ["keys.find=f9"]).keys["find"] == ("f9",)
    paths.config_file.write_text("[keys]\nfind = 3\n")
    with pytest.raises(SettingsError, match="a text or a list of texts"):
        load_settings(paths, tmp_path, {})


async def test_a_changed_key_is_bound_hinted_and_explained(tmp_path: Path) -> None:
    keymap = Keymap.of({"help": ["f2"], "find": ["f9"], "nothing": ["f3"]})
    async with make_app(make_chat(tmp_path), tmp_path, keymap=keymap).run_test(size=(160, 40)) as pilot:
        await idle(pilot)
        assert "nothing: no such action" in transcript(pilot)
        await wait_until(pilot, lambda: "f2 help" in shown(pilot) and "f9 find" in shown(pilot))
        await pilot.press("ctrl+f", "f1")
        assert not screen_of(pilot).finding.is_open
        await pilot.press("f9")
        assert screen_of(pilot).finding.is_open
        await pilot.press("escape", "f2")
        await wait_until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        await pilot.press("f2")
        await wait_until(pilot, lambda: not isinstance(pilot.app.screen, HelpScreen))
