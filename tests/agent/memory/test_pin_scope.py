"""Pins on a branch that grows, goes back and is asked about with a draft."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.agent.memory.pin_scope import PinFinder, PinnedIds
from rolling_chat.messages import Message

_IDS = st.frozensets(st.integers(0, 30).map(str))


@given(_IDS, _IDS, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans())))
def test_they_are_where_a_look_at_the_whole_branch_finds_them(
    pinned: frozenset[str], excluded: frozenset[str], steps: list[tuple[int, int, bool]]
) -> None:
    ids = PinnedIds(pinned, excluded)
    finder, branch, number = PinFinder(ids), list[Message](), 0
    for back, on, with_draft in steps:
        del branch[max(0, len(branch) - back) :]
        for _ in range(on):
            branch.append(Message("user", "said", id=str(number)))
            number += 1
        asked = [*branch, Message("user", "a draft")] if with_draft else branch
        assert finder.on(asked) == ids.on(asked)


class _Counted(frozenset[str]):
    """Counts what is looked for in it."""

    asked = 0

    def __contains__(self, one: object) -> bool:
        _Counted.asked += 1
        return super().__contains__(one)


def test_each_message_is_looked_at_once() -> None:
    branch = [Message("user", "said", id=str(number)) for number in range(1_000)]
    finder = PinFinder(PinnedIds(_Counted({"3", "999", "1000"})))
    assert finder.on(branch).pinned == {4, 1_000}
    asked = _Counted.asked
    branch.append(Message("user", "said", id="1000"))
    assert finder.on(branch).pinned == {4, 1_000, 1_001}
    assert _Counted.asked == asked + 1
