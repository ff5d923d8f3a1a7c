"""The tool skill tells a skill's text, and opens the files of its folder to read_file, and no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rolling_chat.extensions.skills import Skill, Skills
from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.read_file import ReadFile
from rolling_chat.tools.skill import UseSkill


@pytest.fixture
def skill(tmp_path: Path) -> Skill:
    folder = tmp_path / "skills" / "pdf"
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "fill.py").write_text("print('filled')\n")
    return Skill("pdf", "Fill forms.", folder.resolve(), "Run scripts/fill.py.", "pdf/SKILL.md", is_own=True)


@pytest.fixture
def skilled(context: ToolContext, skill: Skill) -> ToolContext:
    mine = replace(skill, name="mine", for_model=False)
    return replace(context, skills=Skills((skill, mine), listed=((skill, skill.row()),)))


async def test_it_tells_the_text_and_the_files(skilled: ToolContext) -> None:
    result = await UseSkill().run({"name": "pdf"}, skilled)
    assert result.text.startswith("Run scripts/fill.py.\n\n[The skill pdf is in ")
    assert result.text.endswith("scripts/fill.py]")


@pytest.mark.parametrize("name", ["other", "../pdf", "mine", "x" * 10_000])
async def test_there_are_no_others(name: str, skilled: ToolContext) -> None:
    with pytest.raises(ToolError, match=r"The skills are: pdf\.") as caught:
        await UseSkill().run({"name": name}, skilled)
    assert len(str(caught.value)) < 300


async def test_without_any_it_says_so(context: ToolContext) -> None:
    with pytest.raises(ToolError, match="The skills are: none"):
        await UseSkill().run({"name": "pdf"}, context)


async def test_read_file_reads_what_lies_in_the_skills_folder(skilled: ToolContext, skill: Skill) -> None:
    result = await ReadFile().run({"path": f"{skill.folder}/scripts/fill.py"}, skilled)
    assert "print('filled')" in result.text
    assert result.files[0].path == f"{skill.folder}/scripts/fill.py"


@pytest.mark.parametrize("path", ["{}/../secret", "{}/link", "{}/door/secret", "{}/loop", "{}2/secret"])
async def test_and_nothing_that_does_not(path: str, skilled: ToolContext, skill: Skill) -> None:
    for outside in (skill.folder.parent, skill.folder.with_name("pdf2")):
        outside.mkdir(exist_ok=True)
        (outside / "secret").write_text("hunter2")
    (skill.folder / "link").symlink_to("../secret")
    (skill.folder / "door").symlink_to("..")
    (skill.folder / "loop").symlink_to("loop")
    with pytest.raises(ToolError) as caught:
        await ReadFile().run({"path": path.format(skill.folder)}, skilled)
    assert "hunter2" not in str(caught.value)
