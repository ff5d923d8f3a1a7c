"""The points at which a model was called."""

from __future__ import annotations

from typing import cast

import pytest

from rolling_chat.messages import Message, Role
from rolling_chat.replay import request_points


@pytest.mark.parametrize(
    ("roles", "points"),
    [
        ("", []),
        ("system", []),
        ("user", [1]),
        ("user assistant", [1]),
        ("user assistant user", [1, 3]),
        ("system user assistant tool", [2, 4]),
        ("user assistant tool tool assistant", [1, 4]),
        ("user assistant assistant", [1, 2]),
        ("assistant user assistant", [0, 2]),
        ("user user", [2]),
        ("user frog", [2]),
        ("user assistant system", [1]),
    ],
)
def test_before_every_answer_and_where_one_is_awaited(roles: str, points: list[int]) -> None:
    assert request_points([Message(cast(Role, role)) for role in roles.split()]) == points
