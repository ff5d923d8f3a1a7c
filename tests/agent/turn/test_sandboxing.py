"""Commands in the sandbox by settings and rules, and the question to run one again without."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from rolling_chat.agent.turn import sandboxing
from rolling_chat.events import Noticed, Permission, ToolEnded
from rolling_chat.messages import Ending
from rolling_chat.settings.schema import PermissionSettings
from rolling_chat.tools.sandbox.sandbox import SandboxProgram
from tests.agent.test_permissions import Answers
from tests.support.agent import Opened, call, calls, collect, of_kind, says
from tests.support.sandbox import real_sandbox

OUTSIDE = "echo made > ../outside; cat ../outside"


def runs(command: str, id: str = "c1") -> object:
    return calls(call("run_command", json.dumps({"command": command}), id))


@pytest.fixture
def _none(monkeypatch: pytest.MonkeyPatch) -> None:
    none = SandboxProgram("", missing="bubblewrap is not installed")
    monkeypatch.setattr(sandboxing, "find_sandbox", lambda: none)


async def test_a_command_is_asked_about_as_ever_and_runs_in_the_sandbox(opened: Opened) -> None:
    real_sandbox()
    chat, runtime, _ = opened(runs("echo x > a; ls ~/.ssh"), says("ok"))
    (Path(runtime.environ["HOME"]) / ".ssh").mkdir()
    chat.listener.ask = ask = Answers(Permission.ONCE)
    await collect(chat.send("go"))
    asked, again = ask.requests
    assert (asked.title, asked.detail) == ("Allow run_command?", "echo x > a; ls ~/.ssh")
    assert (again.title, again.detail, again.rule) == (
        "The sandbox may have stopped it. Run it again without?", "echo x > a; ls ~/.ssh", None,
    )  # fmt: skip


@pytest.mark.parametrize("answer", [Permission.ONCE, Permission.NO])
async def test_what_the_sandbox_stopped_runs_again_only_if_the_user_says_so(
    opened: Opened, answer: Permission
) -> None:
    real_sandbox()
    allowed = PermissionSettings(allow=("run_command",))
    chat, runtime, provider = opened(runs(OUTSIDE), says("ok"), permissions=allowed)
    chat.listener.ask = ask = Answers(answer)
    events = await collect(chat.send("go"))
    assert ask.asked == [OUTSIDE]
    assert (runtime.folder.parent / "outside").exists() is (answer is Permission.ONCE)
    result = provider.requests[1].messages[-1].text
    if answer is Permission.ONCE:
        assert result == "[the sandbox stopped it; this is without]\nmade\n[exit code 0]"
    else:
        assert result.endswith(
            "[exit code 1]\n[it ran in a sandbox, which forbids to write outside the working folder, "
            "and has no network; it was not run without it]"
        )
    (ended,) = of_kind(events, ToolEnded)
    assert ended.message.ending is Ending.COMPLETE
    (noticed,) = of_kind(events, Noticed)
    assert noticed.text.endswith("../outside: Read-only file system")


async def test_another_failure_asks_nothing(opened: Opened) -> None:
    allowed = PermissionSettings(allow=("run_command",))
    chat, _, provider = opened(runs("echo no; exit 1"), says("ok"), permissions=allowed)
    chat.listener.ask = ask = Answers(Permission.ONCE)
    await collect(chat.send("go"))
    assert ask.asked == []
    assert provider.requests[1].messages[-1].text == "no\n[exit code 1]"


async def test_with_nobody_to_ask_the_model_reads_why(opened: Opened) -> None:
    real_sandbox()
    chat, runtime, provider = opened(runs(OUTSIDE), says("ok"), approvals="all")
    await collect(chat.send("go"))
    assert "it ran in a sandbox" in provider.requests[1].messages[-1].text
    assert not (runtime.folder.parent / "outside").exists()


async def test_where_a_sandbox_is_required_nothing_is_offered_without(opened: Opened) -> None:
    real_sandbox()
    chat, runtime, _ = opened(runs(OUTSIDE), says("ok"), approvals="all", sandbox="required")
    chat.listener.ask = ask = Answers(Permission.ONCE)
    await collect(chat.send("go"))
    assert ask.asked == []
    assert not (runtime.folder.parent / "outside").exists()


@pytest.mark.usefixtures("_none")
async def test_where_one_is_required_and_there_is_none_nothing_runs(opened: Opened) -> None:
    chat, runtime, provider = opened(runs("touch made"), says("ok"), approvals="all", sandbox="required")
    await collect(chat.send("go"))
    assert provider.requests[1].messages[-1].text == (
        'Not run: agent.sandbox is "required", and there is no sandbox here (bubblewrap is not installed).'
    )
    assert not (runtime.folder / "made").exists()


@pytest.mark.usefixtures("_none")
@pytest.mark.parametrize(
    ("mode", "title"), [("auto", "Allow run_command? (no sandbox here)"), ("off", "Allow run_command?")]
)
async def test_the_question_says_that_there_is_none(opened: Opened, mode: str, title: str) -> None:
    chat, runtime, _ = opened(runs("touch made"), says("ok"), sandbox=mode)
    chat.listener.ask = ask = Answers(Permission.ONCE)
    await collect(chat.send("go"))
    assert [request.title for request in ask.requests] == [title]
    assert (runtime.folder / "made").exists()


async def test_what_is_off_reaches_everything(opened: Opened) -> None:
    chat, runtime, _ = opened(runs(OUTSIDE), says("ok"), approvals="all", sandbox="off")
    await collect(chat.send("go"))
    assert (runtime.folder.parent / "outside").exists()


@pytest.mark.parametrize(
    ("allow", "deny", "command", "has_network"),
    [
        ((), (), "pip install x", False),
        (("network(pip install *)",), (), "pip install x", True),
        (("network(pip install *)",), (), "pip install", True),
        (("network(pip install *)",), (), "pip download x", False),
        (("network(pip install *)",), (), "pip install x && curl y", False),
        (("network(pip install *)",), (), "pip install $(curl y)", False),
        (("network(make fetch)",), (), "make fetch", True),
        (("network(make fetch)",), (), "make fetch all", False),
        (("network",), (), "curl x | sh", True),
        (("network",), ("network(curl *)",), "true; curl x", False),
        (("run_command",), (), "curl x", False),
    ],
)
async def test_only_a_rule_about_the_whole_command_gives_network(
    opened: Opened, allow: tuple[str, ...], deny: tuple[str, ...], command: str, has_network: bool
) -> None:
    chat, *_ = opened(says("ok"), permissions=PermissionSettings(allow=allow, deny=deny))
    assert chat.session.permissions.lets_out(command) is has_network


async def test_a_rule_for_the_network_allows_nothing_to_run(opened: Opened) -> None:
    rules = PermissionSettings(allow=("network",))
    chat, runtime, _ = opened(runs("touch made"), says("ok"), permissions=rules)
    await collect(chat.send("go"))
    assert not (runtime.folder / "made").exists()


async def test_the_question_says_that_a_command_has_network(opened: Opened) -> None:
    real_sandbox()
    rules = PermissionSettings(allow=("network(ls *)",))
    chat, *_ = opened(runs("ls /sys/class/net"), says("ok"), permissions=rules)
    chat.listener.ask = ask = Answers(Permission.ONCE)
    events = await collect(chat.send("go"))
    assert [request.title for request in ask.requests] == ["Allow run_command? (with network)"]
    (ended,) = of_kind(events, ToolEnded)
    assert len(ended.message.text.splitlines()) == 1 + len(socket.if_nameindex())
