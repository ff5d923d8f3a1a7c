"""Skills are found where the field keeps them, named at a bounded price, and skipped in a line if broken."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from rolling_chat.extensions.skills import Skills, read_skills
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


def write(folder: Path, name: str, front: str = "", body: str = "Do it.") -> Path:
    """A skill in a folder of skills; returns its own folder."""
    skill = folder / name
    skill.mkdir(parents=True, exist_ok=True)
    front = front or f"name: {name}\ndescription: What {name} does."
    (skill / "SKILL.md").write_text(f"---\n{front}\n---\n{body}\n")
    return skill


def read(project: Path, paths: Paths, most: int = 16_000, *, trusted: bool = True) -> Skills:
    return read_skills(FolderTrust(project, paths, everything=trusted), paths, most)


def test_they_come_from_the_project_and_the_user_and_the_nearest_wins(project: Path, paths: Paths) -> None:
    (project / "src").mkdir()
    for folder, text in {
        paths.config_file.parent / "skills": "of the program's folder",
        paths.shared_folder / "skills": "of the shared folder",
        project / ".claude" / "skills": "of the root, for another agent",
        project / ".agents" / "skills": "of the root",
        project / "src" / ".agents" / "skills": "of src",
    }.items():
        write(folder, "both", body=text)
        write(folder, text.replace(" ", "-").replace("'", "").replace(",", ""), body=text)
    write(project.parent / ".agents" / "skills", "above")
    found = read(project / "src", paths)
    assert found.faults == ()
    assert len(found.all) == 6
    assert found.find("both").text == "of src"
    assert found.find("both").is_own is False
    own = read(project / "src", paths, trusted=False)
    assert own.find("both").text == "of the program's folder"
    assert all(skill.is_own for skill in own.all)


def test_the_fields_of_the_format_are_kept(project: Path, paths: Paths) -> None:
    front = (
        "name: pdf\ndescription: Fill forms.\nlicense: MIT\ncompatibility: needs pdftk\n"
        "allowed-tools: Bash(pdftk *) Read\nmetadata:\n  author: ada"
    )
    write(project / ".agents" / "skills", "pdf", front)
    (skill,) = read(project, paths).all
    assert (skill.license, skill.compatibility) == ("MIT", "needs pdftk")
    assert skill.allowed_tools == ("Bash(pdftk *)", "Read")
    assert skill.metadata == {"author": "ada"}
    assert read(project, paths).text.endswith("\n- pdf: Fill forms.")


@pytest.mark.parametrize(
    ("front", "why"),
    [
        ("name: ../x\ndescription: d", "is not a valid name"),
        ("name: Help Me\ndescription: d", "is not a valid name"),
        (f"name: {'x' * 65}\ndescription: d", "is not a valid name"),
        ("name: a--b\ndescription: d", "is not a valid name"),
        ('name: "a\\nb"\ndescription: d', "is not a valid name"),
        ("name: x", "it has no description"),
        ("name: x\ndescription:", "it has no description"),
        ("name: {", "front matter is broken"),
    ],
)
def test_a_broken_one_is_skipped_with_one_line(front: str, why: str, project: Path, paths: Paths) -> None:
    write(project / ".agents" / "skills", "good")
    write(project / ".agents" / "skills", "broken", front)
    found = read(project, paths)
    assert [skill.name for skill in found.all] == ["good"]
    (line,) = found.faults
    assert line.startswith("The skill .agents/skills/broken/SKILL.md is left out: ")
    assert why in line
    assert line.isprintable()


def test_one_that_the_model_may_not_take_up_is_not_in_requests(project: Path, paths: Paths) -> None:
    front = "name: mine\ndescription: d\ndisable-model-invocation: true"
    write(project / ".agents" / "skills", "mine", front)
    found = read(project, paths)
    assert found.find("mine") is not None
    assert (found.listed, found.text) == ((), "")


def test_the_list_never_takes_more_than_its_room(project: Path, paths: Paths) -> None:
    for number in range(60):
        front = f"name: skill-{number:02}\ndescription: {'what it does ' * 40}"
        write(project / ".agents" / "skills", f"skill-{number:02}", front)
    for most, descriptions, names in ((100_000, 60, 60), (6_000, 10, 60), (500, 0, 45), (0, 0, 0)):
        found = read(project, paths, most)
        rows = [row for _, row in found.listed]
        assert sum(len(row) + 1 for row in rows) <= most
        assert (sum(":" in row for row in rows), len(rows)) == (descriptions, names)
        assert len(found.faults) == (descriptions < names) + (names < 60)
        assert len(found.all) == 60


def test_what_a_skill_says_names_its_files_and_none_that_a_link_leads_to(project: Path, paths: Paths) -> None:
    folder = write(paths.config_file.parent / "skills", "pdf", body="See reference.md.")
    (folder / "scripts").mkdir()
    for name in ("reference.md", "scripts/fill.py", ".hidden", "a\x1b[2J.md"):
        (folder / name).write_text("x")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "more").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    (skill,) = read(project, paths).all
    told = skill.full_text()
    assert told.startswith("See reference.md.\n\n[The skill pdf is in ")
    assert told.endswith("by their whole paths: a␛[2J.md, reference.md, scripts/fill.py]")


def test_a_project_cannot_open_more_than_the_skill_by_a_link(project: Path, paths: Paths) -> None:
    (project / "src").mkdir()
    (project / "SKILL.md").write_text("---\nname: root\ndescription: d\n---\nx")
    skills = project / ".agents" / "skills"
    skills.mkdir(parents=True)
    (skills / "root").symlink_to(project)
    (skills / "outside").symlink_to(project.parent)
    (project.parent / "SKILL.md").write_text("---\nname: outside\ndescription: d\n---\nx")
    found = read(project / "src", paths)
    assert found.all == ()
    (line,) = found.faults
    assert line.startswith(
        "The skill .agents/skills/root/SKILL.md is left out: its folder is a link to one that"
    )


def test_thousands_of_skills_of_the_users_are_the_first_ones(project: Path, paths: Paths) -> None:
    for number in range(250):
        write(paths.config_file.parent / "skills", f"s{number:03}")
    found = read(project, paths)
    assert len(found.all) == 200
    assert "only the first 200 skills are used" in found.faults[0]
