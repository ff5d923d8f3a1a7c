from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from rolling_chat.agent import Chat
from rolling_chat.commands import ParsedCommand, run_command
from rolling_chat.permissions.rules import parse_rule
from rolling_chat.settings.folders import FolderRecord, change_record
from rolling_chat.settings.schema import AgentSettings, PermissionSettings, Settings
from tests.support.commands import PlainContext
from tests.support.tui import MODEL, make_chat, make_paths

RULES = PermissionSettings(allow=("run_command(ls *)",), deny=("run_command(rm *)",))
STATUS = "run_command(git status *)"


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    settings = Settings(model=MODEL, agent=AgentSettings(permissions=RULES))
    chat = make_chat(tmp_path, settings=settings, folder=tmp_path)
    chat.session.permissions.session += [parse_rule(STATUS), parse_rule("run_command(a\nb)")]
    return chat


async def _run(chat: Chat, argument: str = "", *picks: str) -> PlainContext:
    context = PlainContext(chat, picks=list(picks))
    await run_command(ParsedCommand("permissions", argument), context)
    return context


async def test_it_lists_the_rules_of_settings_and_session(chat: Chat) -> None:
    context = await _run(chat)
    assert list(context.tables[0].rows) == [
        ("run_command(rm *)", "deny", "settings"),
        ("run_command(ls *)", "allow", "settings"),
        (STATUS, "allow", "this session"),
        ("run_command(a b)", "allow", "this session"),
    ]


async def test_an_added_rule_holds_for_the_session(chat: Chat) -> None:
    context = await _run(chat, "add network(pip install *)")
    assert context.said == ["Added network(pip install *) for this session."]
    assert chat.session.permissions.lets_out("pip install x")


@pytest.mark.parametrize("rule", ["", "network(* x)", "nothing", "read_file(x)"])
async def test_what_is_no_rule_is_not_added(chat: Chat, rule: str) -> None:
    before = list(chat.session.permissions.session)
    await _run(chat, f"add {rule}")
    assert chat.session.permissions.session == before


@pytest.mark.parametrize("picked", [True, False])
async def test_a_removed_rule_allows_nothing(chat: Chat, picked: bool) -> None:
    context = await (_run(chat, "remove", STATUS) if picked else _run(chat, f"remove {STATUS}"))
    assert context.said == [f"Removed {STATUS}: it asks again."]
    assert parse_rule(STATUS) not in chat.session.permissions.session


async def test_a_kept_rule_is_in_the_users_settings_once(chat: Chat, tmp_path: Path) -> None:
    file = make_paths(tmp_path).config_file
    file.write_text("# mine\n[agent.permissions]\nallow = ['run_command(ls *)']\n")
    await _run(chat, f"keep {STATUS}")
    assert tomllib.loads(file.read_text())["agent"]["permissions"]["allow"] == ["run_command(ls *)", STATUS]
    assert file.read_text().startswith("# mine\n")
    assert parse_rule(STATUS) in chat.session.permissions.allow
    assert parse_rule(STATUS) not in chat.session.permissions.session


@pytest.mark.parametrize(
    "argument", ["remove nothing", "keep run_command(x *)", "keep run_command(a\nb)", "forget"]
)
async def test_what_cannot_be_done_is_one_line(chat: Chat, argument: str) -> None:
    context = await _run(chat, argument)
    assert len(context.warned) == 1
    assert "\n" not in context.warned[0]
    assert len(chat.session.permissions.session) == 2


async def test_rules_of_the_folder_are_listed_and_can_be_removed_or_kept(chat: Chat, tmp_path: Path) -> None:
    permissions = chat.session.permissions
    change_record(
        make_paths(tmp_path),
        tmp_path,
        lambda _: FolderRecord(
            allow=("run_command(make)", "run_command(=a\nb)"), deny=("run_command(dd *)",)
        ),
    )
    permissions.read_folder()
    context = await _run(chat)
    rows = list(context.tables[0].rows)
    assert ("run_command(dd *)", "deny", "this folder") in rows
    assert ("run_command(make)", "allow", "this folder") in rows
    assert ("run_command(=a b)", "allow", "this folder") in rows or (
        "run_command(a b)",
        "allow",
        "this folder",
    ) in rows
    await _run(chat, "remove run_command(make)")
    permissions.read_folder()
    assert [rule.command for rule in permissions.folder] == ["a\nb"]
    context = await _run(chat, "remove", "nothing")
    assert [choice.note for choice in context.offered] == ["this session", "this folder"]
