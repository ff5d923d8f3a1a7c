"""Changes of files in a turn: shown, asked about, and then made exactly so."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rolling_chat.agent import Chat
from rolling_chat.events import (
    Outcome,
    Permission,
    PermissionAnswer,
    PermissionRequest,
    ToolEnded,
    ToolStarted,
)
from rolling_chat.messages import SHOWN, Ending, ToolCall
from rolling_chat.process_identity import machine_mark
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import PermissionSettings
from rolling_chat.tools.editing import PreparedEdit
from tests.support.agent import Opened, assert_well_formed, call, calls, collect, of_kind, says
from tests.support.patience import PATIENCE_SECONDS

DIFF = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2"


def editing(id: str = "c1", **arguments: object) -> ToolCall:
    return call("edit_file", json.dumps({"path": "a.txt", "old": "two", "new": "2", **arguments}), id)


def writing(path: str, content: str, id: str = "c1") -> ToolCall:
    return call("write_file", json.dumps({"path": path, "content": content}), id)


class Asked:
    """Answers every question alike, after something else has happened."""

    def __init__(self, permission: Permission = Permission.ONCE, meanwhile: object = None) -> None:
        self.permission, self.meanwhile = permission, meanwhile
        self.requests: list[PermissionRequest] = []

    async def __call__(self, request: PermissionRequest) -> PermissionAnswer:
        self.requests.append(request)
        if callable(self.meanwhile):
            self.meanwhile()
        return PermissionAnswer(self.permission)


def _file(folder: Path, text: str = "one\ntwo\n") -> Path:
    file = folder / "a.txt"
    file.write_text(text)
    return file


def _results(chat: Chat) -> list[str]:
    return [message.text for message in chat.session.messages if message.role == "tool"]


async def test_the_question_shows_the_diff_that_is_then_made(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(editing()), says("ok"))
    file = _file(runtime.folder)
    chat.listener.ask = ask = Asked(meanwhile=lambda: seen.append(file.read_text()))
    seen: list[str] = []
    events = await collect(chat.send("go"))
    (request,) = ask.requests
    assert (request.title, request.detail, request.is_diff) == ("Allow edit_file?", DIFF, True)
    assert request.rule.text == "edit_file(*)"
    assert seen == ["one\ntwo\n"]
    assert file.read_text() == "one\n2\n"
    (ended,) = of_kind(events, ToolEnded)
    assert ended.message.text == "Edited a.txt: +1 -1"
    assert ended.message.extras == {SHOWN: DIFF}
    assert_well_formed(chat, runtime)


async def test_no_model_is_ever_sent_what_only_the_screen_shows(opened: Opened) -> None:
    chat, runtime, provider = opened(calls(editing()), says("ok"), approvals="all")
    _file(runtime.folder)
    await collect(chat.send("go"))
    await collect(chat.send("and now?"))
    assert len(provider.requests) == 3
    for request in provider.requests:
        wire = json.dumps(provider.wire_form(request))
        assert "@@" not in wire
        assert SHOWN not in json.loads(wire)[-1]


async def test_the_diff_is_still_there_after_a_restart(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(editing()), says("ok"), approvals="all")
    _file(runtime.folder)
    await collect(chat.send("go"))
    (result,) = (message for message in runtime.store.branch(chat.session.info.id) if message.role == "tool")
    assert result.extras == {SHOWN: DIFF}


async def test_a_no_changes_nothing(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(editing()), says("ok"))
    file = _file(runtime.folder)
    chat.listener.ask = Asked(Permission.NO)
    await collect(chat.send("go"))
    assert file.read_text() == "one\ntwo\n"
    assert _results(chat)[0].startswith("Not run: the user refused this call.")


async def test_a_file_that_changes_while_the_question_is_open_is_not_written(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(editing()), says("ok"))
    file = _file(runtime.folder)
    chat.listener.ask = Asked(meanwhile=lambda: file.write_text("theirs: two\n"))
    (ended,) = of_kind(await collect(chat.send("go")), ToolEnded)
    assert file.read_text() == "theirs: two\n"
    assert ended.message.ending is Ending.FAILED
    assert "was changed by somebody else: nothing was changed. Read it again." in ended.message.text
    assert not ended.message.extras


async def test_what_cannot_be_prepared_asks_nothing(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(editing(old="three"), writing("../x", "x", "c2")), says("ok"))
    _file(runtime.folder)
    chat.listener.ask = ask = Asked()
    events = await collect(chat.send("go"))
    assert ask.requests == []
    assert of_kind(events, ToolStarted) == []
    assert [event.message.ending for event in of_kind(events, ToolEnded)] == [Ending.FAILED] * 2
    assert "`old` is not in a.txt" in _results(chat)[0]


async def test_always_allows_the_folder_but_nothing_that_decides_what_runs(opened: Opened) -> None:
    made = [writing("src/a", "x", "1"), writing("src/deep/b", "x", "2"), writing("src/AGENTS.md", "x", "3"),
            writing("b", "x", "4"), writing("b2", "x", "5")]  # fmt: skip
    chat, runtime, _ = opened(calls(*made), says("ok"))
    chat.listener.ask = ask = Asked(Permission.SESSION)
    await collect(chat.send("go"))
    assert [request.rule.text for request in ask.requests] == [
        "write_file(src/**)", "write_file(src/AGENTS.md)", "write_file(*)",
    ]  # fmt: skip
    assert (runtime.folder / "b2").exists()


@pytest.mark.parametrize(
    ("approvals", "asked"), [("ask", ["src/a", ".git/x"]), ("edits", [".git/x"]), ("all", [])]
)
async def test_the_policy_says_which_changes_are_asked_about(
    approvals: str, asked: list[str], opened: Opened
) -> None:
    chat, runtime, _ = opened(
        calls(writing("src/a", "x", "1"), writing(".git/x", "x", "2")), says("ok"), approvals=approvals
    )
    chat.listener.ask = ask = Asked()
    await collect(chat.send("go"))
    assert [json.loads(request.call.arguments)["path"] for request in ask.requests] == asked
    assert [(runtime.folder / path).exists() for path in ("src/a", ".git/x")] == [True, True]


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".Git/config", "AGENTS.md", "x/agents.md", ".rolling-chat/x"]
)
async def test_edits_never_lets_pass_what_decides_what_runs_by_itself(path: str, opened: Opened) -> None:
    chat, runtime, _ = opened(calls(writing(path, "x")), says("ok"), approvals="edits")
    await collect(chat.send("go"))  # nobody to ask
    assert not (runtime.folder / path).exists()


async def test_edits_asks_about_commands_all_the_same(opened: Opened) -> None:
    chat, _, _ = opened(calls(call("run_command", '{"command": "touch x"}')), says("ok"), approvals="edits")
    chat.listener.ask = ask = Asked(Permission.NO)
    await collect(chat.send("go"))
    assert len(ask.requests) == 1


async def test_a_link_into_a_protected_folder_is_protected(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(writing("door/x", "x")), says("ok"), approvals="edits")
    (runtime.folder / ".git").mkdir()
    (runtime.folder / "door").symlink_to(".git")
    await collect(chat.send("go"))
    assert not (runtime.folder / ".git" / "x").exists()


@pytest.mark.parametrize(
    "path", ["mine/config.toml", "mine/sessions.db", "mine/drafts/x", "mine/themes/x", "MINE/config.toml"]
)
async def test_edits_never_lets_pass_the_programs_own_files(path: str, opened: Opened) -> None:
    chat, runtime, _ = opened(calls(writing(path, "x")), says("ok"), approvals="edits")
    paths = find_paths({"ROLLING_CHAT_HOME": str(runtime.folder / "mine")})
    runtime.paths = paths
    await collect(chat.send("go"))  # nobody to ask
    assert not (runtime.folder / path).exists()


@pytest.mark.parametrize("rule", ["write_file", "write_file(**)", "write_file(mine/**)"])
async def test_no_wildcard_reaches_the_programs_own_files(rule: str, opened: Opened) -> None:
    rules = PermissionSettings(allow=(rule,))
    made = [writing("mine/config.toml", "x", "1"), writing("mine2/a", "x", "2")]
    chat, runtime, _ = opened(calls(*made), says("ok"), permissions=rules)
    runtime.paths = find_paths({"ROLLING_CHAT_HOME": str(runtime.folder / "mine")})
    await collect(chat.send("go"))  # nobody to ask
    assert not (runtime.folder / "mine" / "config.toml").exists()
    assert (runtime.folder / "mine2" / "a").exists() is not rule.endswith("mine/**)")


async def test_what_lies_in_a_protected_folder_is_protected_from_inside_it_too(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(writing("a.txt", "x")), says("ok"), approvals="edits")
    runtime.folder = runtime.folder / ".config" / "editor"
    runtime.folder.mkdir(parents=True)
    await collect(chat.send("go"))
    assert not (runtime.folder / "a.txt").exists()


async def test_read_only_refuses_every_change(opened: Opened) -> None:
    made = [editing("1"), writing("b", "x", "2"), call("delete_file", '{"path": "a.txt"}', "3"),
            call("move_file", '{"path": "a.txt", "to": "c"}', "4")]  # fmt: skip
    chat, runtime, _ = opened(calls(*made), says("ok"), approvals="read-only")
    chat.listener.ask = ask = Asked()
    file = _file(runtime.folder)
    events = await collect(chat.send("go"))
    assert ask.requests == []
    assert [event.message.ending for event in of_kind(events, ToolEnded)] == [Ending.REFUSED] * 4
    assert file.read_text() == "one\ntwo\n"


async def test_a_rule_that_denies_a_path_wins_over_the_policy_all(opened: Opened) -> None:
    rules = PermissionSettings(deny=("edit_file(*.TXT)",))
    chat, runtime, _ = opened(calls(editing()), says("ok"), approvals="all", permissions=rules)
    file = _file(runtime.folder)
    await collect(chat.send("go"))
    assert file.read_text() == "one\ntwo\n"
    assert "the permission rule edit_file(*.TXT) denies this" in _results(chat)[0]


async def test_over_a_file_is_written_only_after_it_was_read_as_it_is_now(opened: Opened) -> None:
    chat, runtime, _ = opened(
        calls(writing("a.txt", "1\n", "c1")),
        calls(call("read_file", '{"path": "a.txt"}', "c2")),
        calls(writing("a.txt", "2\n", "c3")),
        calls(writing("a.txt", "3\n", "c4")),
        says("ok"),
        calls(writing("a.txt", "4\n", "c5")),
        says("ok"),
        approvals="all",
    )
    file = _file(runtime.folder)
    await collect(chat.send("go"))
    first, _, second, third = _results(chat)
    assert "was not read in this session" in first
    assert (second, third) == ("Wrote a.txt: +1 -2", "Wrote a.txt: +1 -1")
    file.write_text("theirs\n")
    await collect(chat.send("again"))
    assert "has changed since it was read" in _results(chat)[-1]
    assert file.read_text() == "theirs\n"


@pytest.mark.parametrize(
    ("seen", "is_written"),
    [
        ([call("read_file", '{"path": "a.txt", "start": 1, "end": 1}', "r1")], False),
        ([editing("e1")], False),
        ([call("read_file", '{"path": "a.txt"}', "r1"), editing("e1")], True),
        (
            [
                call("read_file", '{"path": "a.txt"}', "r1"),
                call("read_file", '{"path": "a.txt", "start": 1, "end": 1}', "r2"),
            ],
            True,
        ),
    ],
    ids=["a part", "an edit alone", "whole, then an edit", "whole, then a part"],
)
async def test_over_lines_that_the_model_never_saw_nothing_is_written(
    seen: list[ToolCall], is_written: bool, opened: Opened
) -> None:
    chat, runtime, _ = opened(calls(*seen, writing("a.txt", "new\n", "w1")), says("ok"), approvals="all")
    file = _file(runtime.folder)
    await collect(chat.send("go"))
    assert (file.read_text() == "new\n") is is_written
    assert is_written or "read it first, all of it" in _results(chat)[-1]
    assert {state.action for state in await chat.session.files.states()} <= {
        "read",
        "written",
        "read and written",
    }


async def test_files_name_what_was_written_and_deleted(opened: Opened) -> None:
    chat, runtime, _ = opened(
        calls(writing("b.txt", "x", "c1"), call("delete_file", '{"path": "a.txt"}', "c2")),
        says("ok"),
        approvals="all",
    )
    _file(runtime.folder)
    await collect(chat.send("go"))
    touched = {
        (Path(use.touch.path).name, use.touch.action) for use in runtime.store.files(chat.session.info.id)
    }
    assert touched == {("b.txt", "written"), ("a.txt", "written")}


async def test_a_stop_while_a_change_is_made_waits_for_it_and_reports_it(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    make = PreparedEdit.make

    def slow(edit: PreparedEdit, context: object) -> object:
        begun.set()
        go_on.wait(PATIENCE_SECONDS)
        return make(edit, context)

    monkeypatch.setattr(PreparedEdit, "make", slow)
    chat, runtime, _ = opened(calls(editing("c1"), editing("c2", old="one")), says("never"), approvals="all")
    file = _file(runtime.folder)
    turn = asyncio.create_task(collect(chat.send("go")))
    assert await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
    chat.stop()
    await asyncio.sleep(0)
    chat.stop()
    go_on.set()
    events = await turn
    assert events[-1].outcome is Outcome.CANCELLED
    assert file.read_text() == "one\n2\n"
    assert [(event.call.id, event.message.ending) for event in of_kind(events, ToolEnded)] == [
        ("c1", Ending.COMPLETE), ("c2", Ending.CANCELLED),
    ]  # fmt: skip
    assert _results(chat)[0] == "Edited a.txt: +1 -1"
    assert_well_formed(chat, runtime)


async def test_a_stop_while_a_change_is_asked_about_changes_nothing(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(editing()), says("never"))
    file = _file(runtime.folder)
    asked = asyncio.Event()

    async def ask(_: PermissionRequest) -> PermissionAnswer:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    chat.listener.ask = ask
    turn = asyncio.create_task(collect(chat.send("go")))
    await asked.wait()
    chat.stop()
    assert (await turn)[-1].outcome is Outcome.CANCELLED
    assert file.read_text() == "one\ntwo\n"
    assert _results(chat) == ["[cancelled: not run]"]


async def test_a_fault_in_a_tool_is_told_and_ends_no_turn(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("rolling_chat.tools.edit_file.find_spans", breaks)
    chat, runtime, _ = opened(calls(editing()), says("ok"), approvals="all")
    _file(runtime.folder)
    assert (await collect(chat.send("go")))[-1].outcome is Outcome.DONE
    assert _results(chat) == ["edit_file broke: ZeroDivisionError. Try another way."]


async def test_what_a_killed_write_left_is_removed_where_tools_changed_files(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(writing("src/deep/a", "x")), says("ok"), approvals="all")
    await collect(chat.send("go"))
    ended = subprocess.Popen([sys.executable, "-c", ""])  # noqa: ASYNC220
    ended.wait()
    name = f".rolling-chat-{machine_mark()}-{ended.pid}-{'0' * 16}"
    left, elsewhere = runtime.folder / "src" / "deep" / name, runtime.folder / name
    left.write_text("half")
    elsewhere.write_text("half")
    await chat.remove_leftovers()
    assert (left.exists(), elsewhere.exists()) == (False, True)
