"""Skills and commands in real turns: what the model is told, its price, and what runs with permission."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.agent import Chat, Runtime
from rolling_chat.agent.turn.attaching import Insertion
from rolling_chat.events import Noticed, Permission, PermissionAnswer, PermissionRequest, ToolEnded
from rolling_chat.mentions import MARK
from rolling_chat.messages import Ending
from tests.support.agent import Opened, call, calls, collect, of_kind, says


def write(runtime_or_folder: Path, name: str, text: str) -> Path:
    path = runtime_or_folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def skill(
    runtime: Runtime, name: str = "pdf", body: str = "Fill it.", description: str = "Fill forms."
) -> Path:
    text = f"---\nname: {name}\ndescription: {description}\n---\n{body}"
    return write(runtime.paths.config_file.parent / "skills", f"{name}/SKILL.md", text)


async def insertion(chat: Chat, text: str, arguments: str = "") -> Insertion:
    """What a command with that text adds."""
    folder = chat.trust.folder
    write(folder, ".agents/commands/it.md", text)
    chat.session.extensions.read()
    (command,) = chat.session.extensions.commands
    return await chat.session.extensions.insert_command(command, arguments)


async def test_requests_name_the_skills_and_the_tool_reads_one(opened: Opened) -> None:
    chat, runtime, provider = opened(calls(call("skill", '{"name": "pdf"}')), says("filled"))
    path = skill(runtime)
    write(path.parent, "reference.md", "x")
    (ended,) = of_kind(await collect(chat.send("fill it")), ToolEnded)
    system = provider.requests[0].messages[0].text
    assert system.endswith("\n- pdf: Fill forms.")
    assert any(tool["function"]["name"] == "skill" for tool in provider.requests[0].tools)
    assert ended.message.text.startswith("Fill it.\n\n[The skill pdf is in ")
    assert "reference.md" in ended.message.text
    ((name, tokens),) = chat.session.skill_sizes()
    assert (name, tokens) == ("pdf", chat.session.state.sizes.estimator.count_text("- pdf: Fill forms."))


async def test_without_skills_nothing_of_a_request_changes(opened: Opened) -> None:
    chat, _, provider = opened(says("ok"))
    await collect(chat.send("hello"))
    assert "skill(" not in provider.requests[0].messages[0].text
    assert all(tool["function"]["name"] != "skill" for tool in provider.requests[0].tools)


async def test_a_model_that_is_not_offered_the_tool_is_not_told_of_skills(opened: Opened) -> None:
    chat, runtime, provider = opened(says("ok"), tools=("read_file",))
    skill(runtime)
    await collect(chat.send("hello"))
    assert "pdf" not in provider.requests[0].messages[0].text
    assert chat.session.skill_sizes() == ()


async def test_the_list_changes_with_the_next_turn_and_never_within_one(opened: Opened) -> None:
    def written() -> None:
        skill(runtime, "new")

    chat, runtime, provider = opened([written, *calls(call("list_files", "{}"))], says("ok"), says("ok"))
    skill(runtime)
    await collect(chat.send("one"))
    first, second = (request.messages[0].text for request in provider.requests)
    assert first == second
    await collect(chat.send("two"))
    assert "- new:" in provider.requests[2].messages[0].text


async def test_a_broken_skill_is_told_once(opened: Opened) -> None:
    chat, runtime, _ = opened(says("ok"))
    skill(runtime, description="")
    first, second = [of_kind(await collect(chat.send("go")), Noticed) for _ in range(2)]
    assert ["is left out: it has no description" in notice.text for notice in first] == [True]
    assert second == []


async def test_a_skill_that_the_user_calls_goes_below_their_words(opened: Opened) -> None:
    chat, runtime, provider = opened(says("ok"))
    write(runtime.folder, "secret", "hunter2")
    skill(runtime, body=f"Never attach @/etc/passwd.{MARK}secret")
    chat.session.read_instructions()
    inserted = await chat.session.extensions.insert_skill(chat.session.extensions.skills[0])
    await collect(chat.send("/skill pdf form.pdf", [inserted]))
    said = chat.session.messages[0]
    assert provider.requests[0].messages[-1].text == said.text
    assert said.words == "/skill pdf form.pdf"
    assert "The skill pdf, which I call, says:\n\nNever attach @/etc/passwd.secret" in said.text
    assert "hunter2" not in said.text
    assert [one.mention for one in said.attachments] == [
        str(runtime.paths.config_file.parent / "skills/pdf/SKILL.md")
    ]


async def test_files_that_a_command_mentions_are_attached(opened: Opened) -> None:
    chat, _, provider = opened(says("ok"))
    write(chat.trust.folder, "a.py", "print('of a')")
    inserted = await insertion(chat, "Look at @a.py.")
    await collect(chat.send("/it", [inserted]))
    said = chat.session.messages[0]
    assert provider.requests[0].messages[-1].text == said.text
    assert "Look at @a.py." in said.text
    assert "print('of a')" in said.text
    assert [one.mention for one in said.attachments] == [".agents/commands/it.md", "a.py"]


async def test_a_shell_line_runs_only_with_permission(opened: Opened) -> None:
    asked: list[PermissionRequest] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request)
        return PermissionAnswer(Permission.NO if "made" in request.detail else Permission.ONCE)

    chat, _, _ = opened(says("ok"), sandbox="off")
    chat.listener.ask = ask
    inserted = await insertion(chat, "One !`echo $1` two !`touch made` three.", "hello")
    assert [request.detail for request in asked] == ["echo hello", "touch made"]
    assert asked[0].title.startswith("Allow run_command, for /it?")
    assert (
        "One hello\n[exit code 0] two [`touch made` was not run: the user refused it] three." in inserted.text
    )
    assert not (chat.trust.folder / "made").exists()


@pytest.mark.parametrize("policy", ["ask", "read-only", "plan"])
async def test_where_nobody_can_be_asked_a_shell_line_is_left_out(policy: str, opened: Opened) -> None:
    chat, _, _ = opened(says("ok"), approvals=policy)
    inserted = await insertion(chat, "One !`touch made` two.")
    assert "[`touch made` was not run. Not run: " in inserted.text
    assert not (chat.trust.folder / "made").exists()


async def test_what_a_shell_line_writes_is_capped_and_mentions_nothing(opened: Opened) -> None:
    chat, _, provider = opened(says("ok"), approvals="all", sandbox="off", window=400_000)
    write(chat.trust.folder, "secret", "hunter2")
    inserted = await insertion(chat, "It says !`echo @secret; head -c 300000 /dev/zero | tr '\\\\0' x`.")
    assert len(inserted.text) < 31_000
    await collect(chat.send("/it", [inserted]))
    assert "hunter2" not in provider.requests[0].messages[-1].text


async def test_a_files_allowed_tools_give_no_permission(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(call("run_command", '{"command": "touch made"}')), says("ok"))
    text = "---\nname: pdf\ndescription: d\nallowed-tools: run_command Bash(*)\n---\nx"
    write(runtime.paths.config_file.parent / "skills", "pdf/SKILL.md", text)
    (ended,) = of_kind(await collect(chat.send("go")), ToolEnded)
    assert ended.message.ending is Ending.REFUSED
    inserted = await insertion(chat, "---\nallowed-tools: Bash(touch *)\n---\n!`touch made`")
    assert "was not run" in inserted.text
