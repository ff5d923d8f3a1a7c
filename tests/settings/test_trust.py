"""Nothing of a folder is read before the user trusts it; settings are trusted as they are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.folders import change_record, read_record, record_file
from rolling_chat.settings.load import load_settings
from rolling_chat.settings.project_files import PROJECT_FILE, FileKind
from rolling_chat.settings.trust import FolderTrust
from tests.support.tui import make_paths


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with instructions and settings."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "AGENTS.md").write_text("Be brief.")
    (folder / PROJECT_FILE).parent.mkdir()
    (folder / PROJECT_FILE).write_text("theme = 'daylight'\n")
    return folder


def trust_of(folder: Path) -> FolderTrust:
    return FolderTrust(folder, make_paths(_home(folder)))


def theme_of(folder: Path, trust: FolderTrust) -> str:
    return load_settings(make_paths(_home(folder)), folder, {}, trust=trust).theme


def names(files: object) -> list[str]:
    return [file.name for file in files]  # type: ignore[attr-defined]


def _home(folder: Path) -> Path:
    project = next((parent for parent in folder.parents if parent.name == "project"), folder)
    return project.parent / "home"


def test_a_folder_without_such_files_is_never_asked_about(tmp_path: Path) -> None:
    trust = trust_of(tmp_path / "plain")
    assert (trust.undecided(), trust.unread(), trust.line) == ((), (), "")


def test_nothing_is_used_before_it_is_trusted_and_then_it_is(project: Path) -> None:
    trust = trust_of(project)
    assert names(trust.undecided()) == [".rolling-chat/config.toml", "AGENTS.md"]
    assert trust.instructions() == ()
    assert theme_of(project, trust) == "midnight"
    assert trust.line.startswith("Not read: .rolling-chat/config.toml, AGENTS.md (this folder is not trusted")
    trust.trust(trust.undecided())
    for now in (trust, trust_of(project)):
        assert names(now.instructions()) == ["AGENTS.md"]
        assert theme_of(project, now) == "daylight"
        assert (now.undecided(), now.line) == ((), "")


def test_what_is_not_trusted_is_not_even_opened(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> bytes:
        raise AssertionError("it was read")

    monkeypatch.setattr("rolling_chat.settings.trust.read_inside", refused)
    trust = trust_of(project)
    assert len(trust.undecided()) == 2
    assert theme_of(project, trust) == "midnight"


def test_changed_settings_are_asked_about_again_and_what_changed_is_shown(project: Path) -> None:
    trust = trust_of(project)
    trust.trust(trust.undecided())
    (project / PROJECT_FILE).write_text("theme = 'contrast'\n")
    (project / "AGENTS.md").write_text("Be verbose.")
    trust = trust_of(project)
    assert names(trust.undecided()) == [".rolling-chat/config.toml"]
    assert names(trust.instructions()) == ["AGENTS.md"]
    assert theme_of(project, trust) == "midnight"
    shown = trust.shown(trust.undecided())
    assert "-theme = 'daylight'" in shown
    assert "+theme = 'contrast'" in shown


def test_what_was_shown_is_what_is_trusted_and_used(project: Path) -> None:
    trust = trust_of(project)
    asked = trust.undecided()
    assert "daylight" in trust.shown(asked)
    (project / PROJECT_FILE).write_text("theme = 'contrast'\n")  # while the user decides
    trust.trust(asked)
    assert theme_of(project, trust) == "daylight"
    assert names(trust_of(project).undecided()) == [".rolling-chat/config.toml"]


def test_who_refused_is_asked_about_other_files_only(project: Path) -> None:
    trust = trust_of(project)
    trust.refuse(trust.undecided())
    assert trust_of(project).undecided() == ()
    assert len(trust_of(project).unread()) == 2
    (project / "src").mkdir()
    (project / "src" / "CLAUDE.md").write_text("x")
    assert names(trust_of(project / "src").undecided()) == ["src/CLAUDE.md"]


def test_trust_can_be_taken_back(project: Path) -> None:
    trust = trust_of(project)
    trust.trust(trust.undecided())
    trust.refuse(trust.instructions())
    assert trust_of(project).instructions() == ()


def test_a_folder_that_took_the_place_of_another_inherits_nothing(project: Path) -> None:
    trust = trust_of(project)
    trust.trust(trust.undecided())
    moved = project.rename(project.parent / "moved")
    (project / ".git").mkdir(parents=True)
    (project / "AGENTS.md").write_text("Obey me.")
    assert names(trust_of(project).undecided()) == ["AGENTS.md"]
    assert len(FolderTrust(moved, make_paths(project.parent / "home")).undecided()) == 2


def test_a_link_to_a_folder_is_that_folder(project: Path) -> None:
    trust = trust_of(project)
    trust.trust(trust.undecided())
    link = project.parent / "link"
    link.symlink_to(project)
    assert FolderTrust(link, make_paths(project.parent / "home")).undecided() == ()


def test_a_repository_inside_another_is_asked_about_for_itself(project: Path) -> None:
    trust = trust_of(project)
    trust.trust(trust.undecided())
    inner = project / "vendor" / "inner"
    (inner / ".git").mkdir(parents=True)
    (inner / "AGENTS.md").write_text("x")
    trust = FolderTrust(inner, make_paths(project.parent / "home"))
    assert names(trust.undecided()) == ["AGENTS.md"]
    assert trust.instructions() == ()


def test_answers_are_private_and_their_damage_is_one_line(project: Path) -> None:
    trust = trust_of(project)
    trust.trust(trust.undecided())
    file = record_file(make_paths(project.parent / "home"), project)
    assert file.stat().st_mode & 0o777 == 0o600
    whole = file.read_text()
    for damage in (
        "][",
        whole.replace("[contents", "[other"),
        whole.replace("instructions = [", "instructions = [7, "),
    ):
        file.write_text(damage)
        trust = trust_of(project)
        assert trust.problem.startswith(str(file))
        assert "\n" not in trust.problem
        assert len(trust.undecided()) == 2
        with pytest.raises(SettingsError):
            trust.trust(trust.undecided())


def test_answers_of_several_processes_are_all_kept(project: Path) -> None:
    paths = make_paths(project.parent / "home")

    def add(number: int) -> None:
        change_record(
            paths, project, lambda record: replace(record, allow=(*record.allow, f"run_command(x{number})"))
        )

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, range(12)))
    assert len(read_record(paths, project).allow) == 12


def test_where_answers_cannot_be_kept_it_is_one_line(project: Path) -> None:
    home = project.parent / "home"
    home.mkdir()
    (home / "folders").write_text("a file")
    trust = trust_of(project)
    with pytest.raises(SettingsError) as caught:
        trust.trust(trust.undecided())
    assert str(caught.value).isprintable()
    assert len(trust.unread()) == 2


def test_settings_that_a_project_may_never_make_stay_a_warning(project: Path) -> None:
    (project / PROJECT_FILE).write_text("model = 'x/y'\n[agent]\napprovals = 'all'\n")
    trust = trust_of(project)
    trust.trust(trust.undecided())
    settings = load_settings(make_paths(project.parent / "home"), project, {}, trust=trust)
    assert (settings.model, settings.agent.approvals) == ("", "ask")
    assert len(settings.warnings) == 2


@pytest.fixture
def laden(project: Path) -> Path:
    """A repository that brings along a file of each kind, and a working folder in it."""
    for name, text in {
        ".agents/skills/pdf/SKILL.md": "---\nname: pdf\ndescription: d\n---\n",
        ".agents/skills/notes.txt": "no skill",
        ".claude/commands/git/commit.md": "Commit.",
        ".agents/hooks.json": '{"hooks": {}}',
        ".mcp.json": '{"mcpServers": {}}',
        "src/.agents/commands/test.md": "Test.",
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    return project


BY_CONTENT = [
    ".agents/skills/pdf/SKILL.md", ".claude/commands/git/commit.md", ".agents/hooks.json", ".mcp.json",
]  # fmt: skip


def test_each_kind_is_asked_about_by_its_name(laden: Path) -> None:
    found = {file.name: file.kind for file in trust_of(laden / "src").undecided()}
    assert found == {
        "AGENTS.md": FileKind.INSTRUCTIONS,
        ".agents/skills/pdf/SKILL.md": FileKind.SKILL,
        ".claude/commands/git/commit.md": FileKind.COMMAND,
        "src/.agents/commands/test.md": FileKind.COMMAND,
        ".agents/hooks.json": FileKind.HOOKS,
        ".mcp.json": FileKind.MCP_SERVERS,
    }


@pytest.mark.parametrize("name", BY_CONTENT)
def test_what_can_run_code_is_trusted_as_it_reads(name: str, laden: Path) -> None:
    trust = trust_of(laden)
    asked = trust.undecided()
    kind = next(file.kind for file in asked if file.name == name)
    assert trust.contents(kind) == ()
    before = (laden / name).read_bytes()
    trust.trust(asked)
    assert [file.data for file in trust_of(laden).contents(kind)] == [before]
    (laden / name).write_text("touch made")
    again = trust_of(laden)
    assert names(again.undecided()) == [name]
    assert again.contents(kind) == ()
    assert f"── {name} has changed" in again.shown(again.undecided())
    assert "+touch made" in again.shown(again.undecided())


def test_during_a_run_only_what_is_read_again_is_compared_again(laden: Path) -> None:
    trust = trust_of(laden)
    trust.trust(trust.undecided())
    for name in BY_CONTENT:
        (laden / name).write_text("other")
    trust.look_again()
    assert names(trust.unread()) == [".claude/commands/git/commit.md", ".agents/skills/pdf/SKILL.md"]
    assert [file.data for file in trust.contents(FileKind.HOOKS)] == [b'{"hooks": {}}']


def test_what_was_shown_is_trusted_also_if_it_is_compared_again_meanwhile(laden: Path) -> None:
    trust = trust_of(laden)
    asked = trust.undecided()
    trust.shown(asked)
    (laden / ".claude/commands/git/commit.md").write_text("touch made")
    trust.look_again()
    trust.trust(asked)
    assert trust.contents(FileKind.COMMAND)[0].data == b"Commit."
    trust.look_again()
    assert names(trust.unread()) == [".claude/commands/git/commit.md"]


def test_what_leads_out_of_the_repository_is_not_the_projects(laden: Path) -> None:
    outside = laden.parent / "outside"
    (outside / "evil").mkdir(parents=True)
    (outside / "evil" / "SKILL.md").write_text("x")
    (outside / "evil.md").write_text("x")
    (laden / ".agents" / "skills" / "link").symlink_to(outside / "evil")
    (laden / ".agents" / "skills" / "loop").symlink_to("loop")
    (laden / ".agents" / "commands").symlink_to(outside)
    (laden / ".claude" / "commands" / "evil.md").symlink_to(outside / "evil.md")
    (laden / ".claude" / "commands" / "again").symlink_to(".")
    (laden / "src" / ".mcp.json").symlink_to("/dev/zero")
    assert not [file.name for file in trust_of(laden / "src").undecided() if "evil" in file.name]
    assert len(trust_of(laden / "src").undecided()) == 6


def test_a_folder_of_thousands_of_skills_is_told_in_a_line(laden: Path) -> None:
    for number in range(300):
        folder = laden / ".agents" / "skills" / f"s{number}"
        folder.mkdir()
        (folder / "SKILL.md").write_text("x")
    trust = trust_of(laden)
    assert len(trust.unread()) <= 205
    assert trust.line.count("SKILL.md") <= 6
    assert "more (this folder is not trusted" in trust.line


def test_the_users_own_folder_of_skills_is_not_the_projects(laden: Path) -> None:
    paths = replace(make_paths(_home(laden)), shared_folder=laden / ".agents")
    kinds = {file.kind for file in FolderTrust(laden, paths).undecided()}
    assert FileKind.SKILL not in kinds
    assert FileKind.HOOKS not in kinds
