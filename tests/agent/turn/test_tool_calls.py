from __future__ import annotations

import os

from rolling_chat.events import ToolEnded
from tests.support.agent import Opened, call, calls, collect, of_kind, says


async def test_commands_get_the_environment_without_its_secrets_but_what_the_settings_let_through(
    opened: Opened,
) -> None:
    turn = [calls(call("run_command", '{"command": "env"}')), says("ok")]
    chat, runtime, _ = opened(*turn, approvals="all", environment=("GH_TOKEN",))
    runtime.environ = {
        "PATH": os.environ["PATH"], "PLAIN": "yes", "GH_TOKEN": "let-through", "PGPASSWORD": "sw0rdfish",
        "DATABASE_URL": "postgres://ada:sw0rdfish@db/x",
    }  # fmt: skip
    (ended,) = of_kind(await collect(chat.send("go")), ToolEnded)
    assert {"PLAIN=yes", "GH_TOKEN=let-through"} <= set(ended.message.text.splitlines())
    assert "sw0rdfish" not in ended.message.text
