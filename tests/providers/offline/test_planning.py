"""The demo makes a plan in plan mode, and carries it out when told to."""

from __future__ import annotations

from rolling_chat.agent.plan_mode import CARRY_OUT, PLAN_ENDED, PLAN_NOTE
from rolling_chat.messages import Json
from rolling_chat.providers.offline.offline_model import reply_to
from tests.providers.offline.test_offline_model import SYSTEM, TOOLS

ORDER = "replace `red` with `blue` in theme.py, then run `make test`"


def _user(text: str, note: str = "") -> dict[str, Json]:
    return {"role": "user", "content": "\n\n".join(filter(None, (text, note)))}


def test_in_plan_mode_the_steps_are_described_and_not_executed() -> None:
    reply = reply_to([SYSTEM, _user(ORDER, PLAN_NOTE)], TOOLS)
    assert not reply.calls
    assert "1. In theme.py, replace `red` with `blue`.\n2. Run `make test`." in reply.text


def test_the_plan_is_carried_out_when_the_user_says_so() -> None:
    plan = reply_to([SYSTEM, _user(ORDER, PLAN_NOTE)], TOOLS).text
    told = [SYSTEM, _user(ORDER, PLAN_NOTE), {"role": "assistant", "content": plan}]
    reply = reply_to([*told, _user(CARRY_OUT, PLAN_ENDED)], TOOLS)
    assert [call.name for call in reply.calls] == ["edit_file"]


def test_the_note_is_no_part_of_what_it_was_told() -> None:
    told = [SYSTEM, _user("Ada likes tea.", PLAN_NOTE), {"role": "assistant", "content": "Noted."}]
    assert reply_to([*told, _user("What does Ada like?")]).text.endswith("Ada likes tea.")
