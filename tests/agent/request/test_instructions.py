from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path

import pytest

from rolling_chat.agent.request.instructions import Instructions, read_instructions, system_prompt
from rolling_chat.settings.trust import FolderTrust
from rolling_chat.tools.registry import choose_tools
from tests.support.tui import make_paths

START = datetime(2026, 3, 14, 12).timestamp()  # noqa: DTZ001  # local noon, as the prompt shows it


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "AGENTS.md").write_text("outside of the repository")
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    (root / "a" / "b").mkdir(parents=True)
    (root / "AGENTS.md").write_text("of the root")
    (root / "a" / "b" / "AGENTS.md").write_text("of b")
    return root


def test_the_prompt_tells_folder_date_platform_and_tools(tmp_path: Path) -> None:
    text = system_prompt(tmp_path, START, choose_tools("all"), "Be kind.")
    assert f"Working folder: {tmp_path}" in text
    assert "Date: Saturday, 14 March 2026" in text
    assert "Platform: " in text
    assert ", ".join(tool.name for tool in choose_tools("all")) in text
    assert text.endswith("\n\nBe kind.")


def test_the_prompt_stands_still_as_time_goes_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = system_prompt(tmp_path, START, (), "")
    monkeypatch.setattr(time, "time", lambda: START + 90 * 86_400)
    assert system_prompt(tmp_path, START, (), "") == before
    assert "tools" not in before


def read(folder: Path, max_bytes: int = 32_768, own: str = "") -> Instructions:
    """What is read of a folder that is trusted, with the user's own instructions, if any."""
    home = folder.parent / "home"
    paths = make_paths(home)
    if own:
        home.mkdir(exist_ok=True)
        paths.instructions_file.write_text(own)
    return read_instructions(FolderTrust(folder, paths, everything=True), paths.instructions_file, max_bytes)


def bodies(instructions: Instructions) -> list[str]:
    return [section.text.partition(":\n\n")[2] for section in instructions.sections]


def test_they_come_from_the_root_down_to_the_folder_after_the_users_own(repository: Path) -> None:
    found = read(repository / "a" / "b", own="of the user")
    assert bodies(found) == ["of the user", "of the root", "of b"]
    assert [section.name for section in found.sections] == ["your AGENTS.md", "AGENTS.md", "a/b/AGENTS.md"]
    assert f"Instructions from {repository}/AGENTS.md:\n\nof the root\n\nInstr" in found.text
    assert found.text.startswith("The person trusts the files below: they count")


def test_claude_md_is_read_where_there_is_no_agents_md(repository: Path) -> None:
    (repository / "CLAUDE.md").write_text("not this")
    (repository / "a" / "CLAUDE.md").write_text("but this")
    assert bodies(read(repository / "a")) == ["of the root", "but this"]


def test_without_a_repository_only_the_folders_own_count(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("above")
    (tmp_path / "plain").mkdir()
    assert read(tmp_path / "plain").text == ""
    assert bodies(read(tmp_path)) == ["above"]


def test_a_worktree_whose_git_is_a_file_is_a_repository(repository: Path) -> None:
    (repository / "a" / ".git").write_text("gitdir: elsewhere")
    assert bodies(read(repository / "a" / "b")) == ["of b"]


def test_what_is_too_long_is_cut_and_said_the_outermost_first(repository: Path) -> None:
    (repository / "AGENTS.md").write_text("ü" * 500)
    (repository / "a" / "b" / "AGENTS.md").write_text("x" * 900)
    found = read(repository / "a" / "b", max_bytes=1_000)
    outer, inner = bodies(found)
    assert inner == "x" * 900
    assert outer.startswith("ü" * 50 + "\n[cut: AGENTS.md goes beyond the 1,000 bytes")
    assert found.faults == ("AGENTS.md was cut: all instructions together take 1,000 bytes",)


def test_the_users_own_are_not_pushed_out(repository: Path) -> None:
    (repository / "a" / "b" / "AGENTS.md").write_text("x" * 2_000)
    assert bodies(read(repository / "a" / "b", max_bytes=1_000, own="mine"))[0] == "mine"


def test_a_link_that_leads_out_of_the_repository_is_none(repository: Path) -> None:
    (repository / "AGENTS.md").unlink()
    (repository / "AGENTS.md").symlink_to(repository.parent / "AGENTS.md")
    assert not read(repository).sections
    (repository / "README.md").write_text("inside")
    (repository / "AGENTS.md").unlink()
    (repository / "AGENTS.md").symlink_to("README.md")
    assert bodies(read(repository)) == ["inside"]


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "device"])
def test_what_is_no_file_is_none(kind: str, repository: Path) -> None:
    file = repository / "AGENTS.md"
    file.unlink()
    match kind:
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case _:
            file.symlink_to("AGENTS.md")
    assert read(repository) == Instructions()


def test_any_bytes_become_text(repository: Path) -> None:
    (repository / "AGENTS.md").write_bytes(b"caf\xe9\x00")
    assert read(repository).text.endswith("caf\ufffd\ufffd")


def test_an_at_sign_includes_a_file_relative_to_the_one_that_names_it(repository: Path) -> None:
    (repository / "a" / "style.md").write_text("Two blanks. See @more.md")
    (repository / "a" / "more.md").write_text("More.")
    (repository / "a" / "AGENTS.md").write_text("Follow @style.md, and\n- @../README.md.\n")
    (repository / "README.md").write_text("About.")
    found = read(repository / "a")
    assert [section.name for section in found.sections][1:] == [
        "a/AGENTS.md", "a/style.md", "a/more.md", "README.md",
    ]  # fmt: skip
    assert "/style.md, included by a/AGENTS.md:\n\nTwo blanks." in found.sections[2].text
    assert found.faults == ()


def test_code_mail_addresses_and_names_include_nothing(repository: Path) -> None:
    (repository / "x.md").write_text("never")
    lines = ["Mail a@x.md, ask @alice, write `@x.md` or ``a ` @x.md``."]
    lines += ["```py", "@x.md", "~~~", "@x.md", "````", "~~~", "@x.md", "~~~"]
    (repository / "AGENTS.md").write_text("\n".join(lines))
    found = read(repository)
    assert len(found.sections) == 1
    assert found.faults == ()


def test_files_that_include_each_other_are_read_once(repository: Path) -> None:
    (repository / "AGENTS.md").write_text("@b.md @AGENTS.md")
    (repository / "b.md").write_text("@AGENTS.md @b.md")
    assert bodies(read(repository)) == ["@b.md @AGENTS.md", "@AGENTS.md @b.md"]


def test_includes_go_five_files_deep(repository: Path) -> None:
    (repository / "AGENTS.md").write_text("@1.md")
    for number in range(1, 9):
        (repository / f"{number}.md").write_text(f"@{number + 1}.md")
    found = read(repository)
    assert len(found.sections) == 6
    assert found.faults == ("what 5.md includes is not read: 5 files deep is the most",)


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/hostname", "link", "door/secret", "~/secret", "a/../../secret"]
)
def test_nothing_outside_is_included(path: str, repository: Path) -> None:
    (repository.parent / "secret").write_text("hunter2")
    (repository / "link").symlink_to("../secret")
    (repository / "door").symlink_to("..")
    (repository / "AGENTS.md").write_text(f"@{path}")
    found = read(repository)
    assert bodies(found) == [f"@{path}"]
    assert len(found.faults) == (0 if path.startswith("~") else 1)


def test_a_file_includes_nothing_from_above_the_folders_whose_instructions_are_trusted(
    repository: Path,
) -> None:
    """A home folder may be a repository, too: what was unpacked in it must not reach all of it."""
    (repository / "AGENTS.md").unlink()
    (repository / "secret").write_text("hunter2")
    (repository / "a" / "more.md").write_text("More.")
    (repository / "a" / "AGENTS.md").write_text("@more.md @../secret")
    found = read(repository / "a")
    assert bodies(found) == ["@more.md @../secret", "More."]
    assert len(found.faults) == 1


def test_no_more_than_fifty_files_are_read(repository: Path) -> None:
    (repository / "AGENTS.md").write_text(" ".join(f"@i{number}.md" for number in range(90)))
    for number in range(90):
        (repository / f"i{number}.md").write_text("@AGENTS.md")
    found = read(repository)
    assert len(found.sections) == 50
    assert found.faults == ("no more than 50 files are read",)


@pytest.mark.parametrize("name", ["a" * 300, "b/" * 3_000, "x\x00y", "(" * 9_000, "\ud800"])
def test_a_mention_that_no_file_can_have_is_text(name: str, repository: Path) -> None:
    (repository / "AGENTS.md").write_text(f"@{name} @/ @.", errors="surrogatepass")
    assert len(read(repository).sections) == 1


def test_what_is_no_text_is_not_included(repository: Path) -> None:
    (repository / "x.png").write_bytes(b"\x89PNG\x00")
    os.mkfifo(repository / "pipe")
    (repository / "AGENTS.md").write_text("@x.png @pipe @a")
    found = read(repository)
    assert len(found.sections) == 1
    assert "x.png is not included: it is no text" in found.faults


def test_the_users_own_include_only_what_is_below_their_folder(repository: Path) -> None:
    (repository / "style.md").write_text("of the project")
    found = read(repository, own=f"@{repository}/style.md")
    assert bodies(found) == [f"@{repository}/style.md", "of the root"]
