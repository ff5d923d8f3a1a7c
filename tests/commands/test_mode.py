"""/mode changes what asks for permission, from the next call on."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.commands import parse, run_command
from tests.support.commands import PlainContext
from tests.support.tui import make_app, make_chat, says, shown, wait_until


async def run(context: PlainContext, line: str) -> None:
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context)


@pytest.mark.parametrize("policy", ["ask", "edits", "plan", "read-only", "all"])
async def test_it_takes_a_policy_by_its_name(tmp_path: Path, policy: str) -> None:
    context = PlainContext(make_chat(tmp_path))
    await run(context, f"/mode {policy}")
    assert context.chat.session.permissions.policy == policy
    assert (context.warned if policy == "all" else context.said)[-1].startswith(f"Mode {policy}: ")


async def test_without_a_name_it_offers_them(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path), picks=["edits", None])
    await run(context, "/mode")
    assert [choice.value for choice in context.offered] == ["ask", "edits", "plan", "read-only", "all"]
    assert context.chat.session.permissions.policy == "edits"
    await run(context, "/mode")
    assert context.chat.session.permissions.policy == "edits"


async def test_another_word_changes_nothing(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    await run(context, "/mode yolo")
    assert context.warned == ["/mode takes ask, edits, plan, read-only, all, not 'yolo'."]
    assert context.chat.session.permissions.policy == "ask"


async def test_to_retry_a_message_of_plan_mode_says_what_it_is(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path, says("A plan."), says("A plan again.")))
    await run(context, "/mode plan")
    await context.send("rename x")
    await run(context, "/mode edits")
    await run(context, "/retry")
    assert context.said[-1].startswith("That message was sent in plan mode")


async def test_the_key_goes_round_without_all_and_the_gauge_shows_it(tmp_path: Path) -> None:
    chat = make_chat(tmp_path)
    async with make_app(chat, tmp_path).run_test(size=(140, 30)) as pilot:
        await wait_until(pilot, lambda: "rolling: off" in shown(pilot))
        for policy in ("edits", "plan", "read-only", "ask"):
            await pilot.press("f4")
            await wait_until(pilot, lambda wanted=policy: chat.session.permissions.policy == wanted)
            is_default = policy == "ask"
            await wait_until(pilot, lambda plain=is_default: ("mode: " not in shown(pilot)) is plain)
