"""The folder's own files are asked about before the chat opens; Enter amid typing trusts nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from rolling_chat.agent import Chat
from rolling_chat.settings.load import load_settings
from rolling_chat.settings.project_files import PROJECT_FILE
from rolling_chat.settings.themes import load_themes
from rolling_chat.settings.trust import FolderTrust
from rolling_chat.tui.dialogs.trust_screen import TrustScreen
from rolling_chat.tui.screens.chat_screen import ChatScreen
from rolling_chat.tui.start import StartingApp
from tests.support.tui import draft, make_chat, make_paths, reads, shown, wait_until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / ".rolling-chat").mkdir(parents=True)
    (folder / "AGENTS.md").write_text("Be\x1b[2J brief.")
    (folder / PROJECT_FILE).write_text("theme = 'daylight'\nkeys.find = 'ctrl+t'\n")
    return folder


def starting(folder: Path, trust: FolderTrust) -> StartingApp:
    home = folder.parent / "home"

    def open_chat() -> Chat:
        settings = load_settings(make_paths(home), folder, {}, trust=trust)
        return make_chat(home, folder=folder, settings=settings)

    return StartingApp(
        open_chat, trust=trust, theme="midnight", themes=load_themes(home), paths=make_paths(home)
    )


async def asked(pilot: Pilot[None]) -> None:
    await wait_until(pilot, lambda: isinstance(pilot.app.screen, TrustScreen))
    await reads(pilot, "Trust this folder?", "AGENTS.md: instructions", "enter answer")


async def opened(pilot: Pilot[None]) -> None:
    await wait_until(pilot, lambda: isinstance(pilot.app.screen, ChatScreen) and pilot.app.screen.is_mounted)


async def test_trusting_uses_the_settings_of_the_folder_at_once(folder: Path) -> None:
    trust = FolderTrust(folder, make_paths(folder.parent / "home"))
    app = starting(folder, trust)
    async with app.run_test(size=(100, 30)) as pilot:
        await asked(pilot)
        await pilot.press("3", "enter")
        await opened(pilot)
        assert app.theme == "daylight"
        assert trust.undecided() == ()
        assert len(FolderTrust(folder, make_paths(folder.parent / "home")).trusted()) == 2


async def test_esc_goes_on_without_and_says_so(folder: Path) -> None:
    trust = FolderTrust(folder, make_paths(folder.parent / "home"))
    app = starting(folder, trust)
    async with app.run_test(size=(100, 30)) as pilot:
        await asked(pilot)
        await pilot.press("escape")
        await opened(pilot)
        await reads(pilot, "Not read: .rolling-chat/config.toml, AGENTS.md")
        assert app.theme == "midnight"
        assert len(trust.undecided()) == 2


async def test_what_is_typed_before_it_is_asked_is_no_answer(folder: Path) -> None:
    trust = FolderTrust(folder, make_paths(folder.parent / "home"))
    async with starting(folder, trust).run_test(size=(100, 30)) as pilot:
        await wait_until(pilot, lambda: isinstance(pilot.app.screen, TrustScreen))
        await pilot.press(*"fix 3rd", "enter")
        assert isinstance(pilot.app.screen, TrustScreen)
        await asked(pilot)
        await pilot.press("escape")
        await opened(pilot)
        await wait_until(pilot, lambda: draft(pilot) == "fix 3rd")
        assert len(trust.undecided()) == 2


async def test_the_files_are_shown_without_their_escapes_and_asked_about_again(folder: Path) -> None:
    trust = FolderTrust(folder, make_paths(folder.parent / "home"))
    async with starting(folder, trust).run_test(size=(100, 30)) as pilot:
        await asked(pilot)
        await pilot.press("2", "enter")
        await reads(pilot, "theme = 'daylight'", "brief.")
        assert "\x1b" not in shown(pilot)
        (folder / PROJECT_FILE).write_text("theme = 'contrast'\n")  # after it was shown
        await pilot.press("escape")
        await asked(pilot)
        await pilot.press("3", "enter")
        await opened(pilot)
        assert pilot.app.theme == "daylight"


async def test_never_is_kept(folder: Path) -> None:
    paths = make_paths(folder.parent / "home")
    async with starting(folder, FolderTrust(folder, paths)).run_test(size=(40, 12)) as pilot:
        await wait_until(pilot, lambda: isinstance(pilot.app.screen, TrustScreen))
        await reads(pilot, "enter answer")
        await pilot.press("4", "enter")
        await opened(pilot)
    assert FolderTrust(folder, paths).undecided() == ()


async def test_every_kind_is_named_and_many_of_one_kind_are_counted(folder: Path) -> None:
    for number in range(40):
        skill = folder / ".agents" / "skills" / f"skill-{number:02}"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text("x")
    (folder / ".agents" / "hooks.json").write_text("{}")
    trust = FolderTrust(folder, make_paths(folder.parent / "home"))
    async with starting(folder, trust).run_test(size=(100, 44)) as pilot:
        await asked(pilot)
        await reads(
            pilot,
            ".agents/skills/skill-00/SKILL.md: a skill",
            "and 34 more of this kind",
            ".agents/hooks.json: hooks, which run commands by themselves",
        )
        await pilot.press("escape")
