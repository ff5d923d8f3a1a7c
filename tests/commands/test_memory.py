"""/memory lists what the model is told in every request, and opens it; /init lets the model draft it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rolling_chat.agent import Chat
from rolling_chat.commands import ParsedCommand, run_command
from rolling_chat.events import Permission, PermissionAnswer, PermissionRequest
from rolling_chat.messages import Json
from rolling_chat.providers.offline.offline_model import reply_to
from rolling_chat.settings.trust import FolderTrust
from tests.providers.offline.test_offline_model import SYSTEM, TOOLS
from tests.support.commands import PlainContext
from tests.support.tui import calls, make_chat, make_paths, says

DRAFT = calls("write_file", path="AGENTS.md", content="Be brief.\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def _context(folder: Path, *replies: object, picks: tuple[str | None, ...] = ()) -> PlainContext:
    chat = make_chat(folder.parent / "home", *replies, folder=folder)
    return PlainContext(chat, picks=list(picks))


async def _run(context: PlainContext, name: str) -> None:
    await run_command(ParsedCommand(name, ""), context)


def _answer(chat: Chat, permission: Permission) -> list[PermissionRequest]:
    asked: list[PermissionRequest] = []

    async def answer(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request)
        return PermissionAnswer(permission)

    chat.listener.ask = answer
    return asked


async def test_it_lists_what_is_read_what_is_not_and_what_could_be_there(folder: Path) -> None:
    (folder / "AGENTS.md").write_text("Be brief. @../x")
    context = _context(folder)
    await _run(context, "memory")
    assert [(choice.value, choice.note) for choice in context.offered] == [
        ("AGENTS.md", "not read: this folder is not trusted (/trust)"),
        ("your AGENTS.md", "not there yet"),
    ]
    context.chat.trust.trust(context.chat.trust.undecided())
    (folder.parent / "x").write_text("outside")
    await _run(context, "memory")
    assert context.offered[0].value == "AGENTS.md"
    assert context.offered[0].note.endswith("tokens in every request")
    assert len(context.warned) == 1
    assert "../x is not included in AGENTS.md" in context.warned[0]


async def test_a_file_that_the_user_writes_there_is_trusted(folder: Path) -> None:
    context = _context(folder, picks=("AGENTS.md",))

    async def edit_file(path: Path) -> bool:
        path.write_text("Be brief.")  # noqa: ASYNC240
        return True

    context.edit_file = edit_file  # type: ignore[method-assign]
    await _run(context, "memory")
    assert context.chat.session.instructions.text.endswith("Be brief.")


async def test_without_an_editor_the_text_is_shown(folder: Path) -> None:
    (folder / "AGENTS.md").write_text("Be brief.")
    context = _context(folder, picks=("AGENTS.md",))
    context.can_edit = False
    await _run(context, "memory")
    assert context.shown == [(str(folder / "AGENTS.md"), "Be brief.")]
    assert len(context.chat.trust.unread()) == 1


async def test_a_link_that_leads_nowhere_is_not_offered_to_be_written(folder: Path) -> None:
    (folder / "AGENTS.md").symlink_to(folder.parent / "elsewhere")
    context = _context(folder)
    await _run(context, "memory")
    assert [choice.value for choice in context.offered] == ["your AGENTS.md"]


async def test_a_draft_is_asked_about_and_used_once_it_is_written(folder: Path) -> None:
    context = _context(folder, DRAFT, says("Done."))
    asked = _answer(context.chat, Permission.ONCE)
    await _run(context, "init")
    assert [request.is_diff for request in asked] == [True]
    assert context.chat.session.instructions.text.endswith("Be brief.")
    assert FolderTrust(folder, make_paths(folder.parent / "home")).undecided() == ()
    assert context.said[-1].startswith("AGENTS.md is a part of every request")


async def test_a_draft_takes_over_what_it_replaces(folder: Path) -> None:
    (folder / "CLAUDE.md").write_text("Be brief.")
    context = _context(folder, says("No."))
    await _run(context, "init")
    assert "Take over what is right in CLAUDE.md" in context.chat.session.messages[0].text


async def test_a_refused_draft_trusts_nothing(folder: Path) -> None:
    context = _context(folder, DRAFT, says("Pity."))
    _answer(context.chat, Permission.NO)
    await _run(context, "init")
    (folder / "AGENTS.md").write_text("from elsewhere")
    assert len(FolderTrust(folder, make_paths(folder.parent / "home")).undecided()) == 1


async def test_a_file_that_somebody_else_puts_there_meanwhile_is_not_trusted(folder: Path) -> None:
    context = _context(folder, DRAFT, says("Done."))

    async def answer(_: PermissionRequest) -> PermissionAnswer:
        (folder / "AGENTS.md").write_text("from elsewhere")
        return PermissionAnswer(Permission.ONCE)

    context.chat.listener.ask = answer
    await _run(context, "init")
    assert len(context.chat.trust.undecided()) == 1


@pytest.mark.parametrize("policy", ["plan", "read-only"])
async def test_where_nothing_is_written_it_says_so(folder: Path, policy: str) -> None:
    context = _context(folder)
    context.chat.session.permissions.policy = policy  # type: ignore[assignment]
    await _run(context, "init")
    assert context.warned == [f"In the mode {policy} no file is written: change it with /mode."]


async def test_what_is_not_trusted_is_looked_at_first(folder: Path) -> None:
    (folder / "AGENTS.md").write_text("from elsewhere")
    context = _context(folder)
    await _run(context, "init")
    assert context.warned == ["There is an AGENTS.md that is not trusted: look at it with /trust first."]


def test_the_demo_drafts_from_the_files_that_it_sees() -> None:
    told: list[dict[str, Json]] = [SYSTEM, {"role": "user", "content": "Write an AGENTS.md for this folder."}]
    seen = []
    for result in ("README.md\nMakefile\nsrc/\n.git/", "# Parser", "Created AGENTS.md."):
        (made,) = reply_to(told, TOOLS).calls
        seen.append((made.name, json.loads(made.arguments)))
        function = {"name": made.name, "arguments": made.arguments}
        call = {"id": made.id, "type": "function", "function": function}
        told.append({"role": "assistant", "content": None, "tool_calls": [call]})
        told.append({"role": "tool", "tool_call_id": made.id, "content": result})
    assert [name for name, _ in seen] == ["list_files", "read_file", "write_file"]
    assert "- `src/`\n" in seen[2][1]["content"]
    assert "`make` builds." in seen[2][1]["content"]
    assert reply_to(told, TOOLS).text == "Created AGENTS.md."
