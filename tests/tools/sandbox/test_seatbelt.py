"""The profile for macOS, by its text: no machine of ours runs it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rolling_chat.tools.sandbox.seatbelt import profile
from rolling_chat.tools.sandbox.walls import Walls

WALLS = Walls(Path("/Users/ada/src"), Path("/private/tmp/t"))
DEVICES = " ".join(
    f'(literal "/dev/{name}")' for name in ("null", "zero", "stdout", "stderr", "dtracehelper")
)
PROTECTED = " ".join(
    f'(subpath "/Users/ada/src/{name}")' for name in (".git/config", ".rolling-chat", "AGENTS.md")
)


def test_only_the_folder_and_the_temporary_one_are_written() -> None:
    assert profile(WALLS).splitlines() == [
        "(version 1)",
        "(allow default)",
        "(deny appleevent-send)",
        "(deny job-creation)",
        '(deny mach-lookup (global-name "com.apple.coreservices.launchservicesd"))',
        '(deny mach-lookup (global-name "com.apple.SecurityServer"))',
        "(deny network*)",
        "(deny file-write*)",
        '(allow file-write* (subpath "/private/tmp/t") (subpath "/Users/ada/src"))',
        f"(allow file-write* {DEVICES})",
    ]


def test_what_is_protected_is_denied_after_the_folder_is_allowed() -> None:
    folder = WALLS.folder
    walls = replace(
        WALLS,
        read_only=(folder / ".git/config",),
        stubs=(folder / ".rolling-chat",),
        newcomers=(folder / "AGENTS.md",),
        fixed=(folder / ".git",),
        hidden=(Path("/Users/ada/.ssh"),),
        has_network=True,
    )
    lines = profile(walls).splitlines()
    assert "(deny network*)" not in lines
    assert lines[-3:] == [
        f"(deny file-write* {PROTECTED})",
        '(deny file-write-unlink (literal "/Users/ada/src/.git"))',
        '(deny file-read* file-write* (subpath "/Users/ada/.ssh"))',
    ]


def test_a_working_folder_below_a_secret_one_is_open_alone() -> None:
    walls = replace(
        WALLS, folder=Path("/Users/ada/.ssh/x"), hidden=(Path("/Users/ada/.ssh"),), is_writable=False
    )
    lines = profile(walls).splitlines()
    assert lines[8:11] == [
        '(deny file-read-data (subpath "/Users/ada/.ssh"))',
        '(allow file-read* (subpath "/Users/ada/.ssh/x"))',
        '(allow file-write* (subpath "/private/tmp/t"))',
    ]


def test_a_name_cannot_end_its_text() -> None:
    walls = replace(WALLS, folder=Path('/Users/a") (allow file-write*) ("\\'))
    assert '(subpath "/Users/a\\") (allow file-write*) (\\"\\\\")' in profile(walls)
