"""Commands and skills of users and projects: run, completed, listed, and never in place of a built-in one."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Static

from rolling_chat.commands import Completer, custom_commands, custom_lines, parse, run_command
from rolling_chat.settings.paths import Paths
from rolling_chat.tui.dialogs.help_screen import HelpScreen
from tests.support.commands import PlainContext
from tests.support.tui import (
    MODEL,
    ScriptedProvider,
    make_app,
    make_chat,
    make_paths,
    reads,
    says,
    shown,
    tells,
    transcript,
    type_line,
    wait_until,
)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return make_paths(tmp_path)


def write(paths: Paths, name: str, text: str) -> None:
    path = paths.config_file.parent / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def skill(paths: Paths, name: str, body: str = "Do it.") -> None:
    write(paths, f"skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: What {name} does.\n---\n{body}")


async def run(context: PlainContext, line: str) -> None:
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context)


async def test_a_command_sends_its_text_with_the_arguments(paths: Paths, tmp_path: Path) -> None:
    write(paths, "commands/git/commit.md", "---\nargument-hint: [words]\n---\nCommit $ARGUMENTS.")
    provider = ScriptedProvider([says("done")])
    context = PlainContext(make_chat(tmp_path, provider=provider))
    await run(context, "/Git:Commit the lexer")
    said = context.chat.session.messages[0]
    assert provider.requests[0].messages[-1].text == said.text
    assert said.words == "/git:commit the lexer"
    assert "Commit the lexer." in said.text


async def test_built_in_commands_come_first_then_commands_then_skills(paths: Paths, tmp_path: Path) -> None:
    for name in ("help", "both", "mine"):
        write(paths, f"commands/{name}.md", f"Text of {name}.")
    for name in ("quit", "both", "pdf"):
        skill(paths, name)
    provider = ScriptedProvider([says("done"), says("done")])
    context = PlainContext(make_chat(tmp_path, provider=provider))
    assert [command.name for command in custom_commands(context.chat)] == ["both", "mine", "pdf"]
    assert custom_lines(context.chat) == [
        f"The command {tmp_path}/commands/help.md is left out: /help is a command of Rolling Chat.",
        f"/quit is a command of Rolling Chat: /skill quit uses the skill {tmp_path}/skills/quit/SKILL.md.",
    ]
    await run(context, "/help")
    await run(context, "/quit")
    assert context.done == ["help", "quit"]
    await run(context, "/both")
    assert "Text of both." in provider.requests[0].messages[-1].text
    await run(context, "/skill quit now")
    assert "The skill quit, which I call, says:\n\nDo it." in provider.requests[1].messages[-1].text


async def test_they_are_completed_and_a_typing_error_finds_them(paths: Paths, tmp_path: Path) -> None:
    write(paths, "commands/deploy.md", "---\ndescription: Ship it\nargument-hint: [where]\n---\nDeploy.")
    skill(paths, "pdf")
    context = PlainContext(make_chat(tmp_path))
    (offered,) = Completer(context).offer("/dep").choices
    assert (offered.value, offered.label, offered.note) == ("/deploy ", "/deploy [where]", "Ship it")
    assert [choice.label for choice in Completer(context).offer("/skill p").choices] == ["pdf"]
    await run(context, "/deplo")
    assert context.warned == ["There is no command /deplo; did you mean /deploy?"]


async def test_skills_are_listed_with_their_price_and_read(paths: Paths, tmp_path: Path) -> None:
    skill(paths, "pdf", body="Fill\x1b[2J it.")
    context = PlainContext(make_chat(tmp_path), picks=["pdf"])
    await run(context, "/skills")
    (choice,) = context.offered
    assert choice.note.endswith(" tokens · yours · What pdf does.")
    assert "What pdf does.\nfile: " in context.shown[0][1]
    assert context.shown[0][1].endswith("Fill␛[2J it.")
    await run(context, "/skill nope")
    assert context.warned == ["There is no skill “nope”; the skills are: pdf."]


async def test_where_there_are_no_skills_it_says_where_they_go(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    await run(context, "/skills")
    assert context.said[0].startswith("There are no skills. A skill is a folder with a SKILL.md")


async def test_a_command_of_the_users_chooses_the_model_for_one_turn(paths: Paths, tmp_path: Path) -> None:
    write(paths, "commands/big.md", "---\nmodel: openai/gpt-4.1\n---\nThink.")
    provider = ScriptedProvider([says("thought"), says("back")])
    context = PlainContext(make_chat(tmp_path, provider=provider))
    await run(context, "/big")
    assert provider.requests[0].model == "openai/gpt-4.1"
    assert context.chat.session.model == MODEL


async def test_a_command_of_a_project_does_not(paths: Paths, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / ".agents" / "commands").mkdir(parents=True)
    (folder / ".agents" / "commands" / "big.md").write_text("---\nmodel: openai/gpt-4.1\n---\nThink.")
    provider = ScriptedProvider([says("thought")])
    context = PlainContext(make_chat(tmp_path, provider=provider, folder=folder))
    context.chat.trust.trust(context.chat.trust.undecided())
    context.chat.session.read_instructions()
    await run(context, "/big")
    assert provider.requests[0].model == MODEL
    assert context.said == [f"/big names a model, which a project does not choose: {MODEL} answers."]


async def test_on_the_screen_they_are_in_help_and_in_the_transcript(paths: Paths, tmp_path: Path) -> None:
    write(paths, "commands/deploy.md", "---\ndescription: Ship it\n---\nDeploy everything.")
    write(paths, "commands/help.md", "Evil.")
    chat = make_chat(tmp_path, says("Shipped."))
    async with make_app(chat, tmp_path).run_test(size=(120, 150)) as pilot:
        await tells(pilot, "/help is a command of Rolling Chat.")  # wrapped wherever the file's path wants it
        await pilot.press("f1")
        await wait_until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        await wait_until(pilot, lambda: pilot.app.screen.query(Static).last().size.height)
        assert "Commands and skills of your own and of this folder" in shown(pilot)
        assert "Ship it" in shown(pilot)
        await pilot.press("escape")
        await wait_until(pilot, lambda: not isinstance(pilot.app.screen, HelpScreen))
        await type_line(pilot, "/deploy")
        await reads(pilot, "Shipped.")
        assert "/deploy" in transcript(pilot)
        assert "Deploy everything." not in transcript(pilot)
