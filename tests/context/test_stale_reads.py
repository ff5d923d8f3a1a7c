"""Which reads of files are out of date, by the calls that came after them."""

from __future__ import annotations

import json

import pytest

from rolling_chat.context.prompt_items import Fate, PromptItem
from rolling_chat.context.repair import NormalizedMessage
from rolling_chat.context.stale_reads import file_uses, reads_of_edited_files, stale_reads
from rolling_chat.messages import Ending, Message, ToolCall

READ = ("read_file", {"path": "a.py"}, Ending.COMPLETE)


def _turn(*called: tuple[str, dict[str, str], Ending]) -> list[PromptItem]:
    """A turn with one call after the other: that of index 0 has its result at 1, the next at 3."""
    messages: list[Message] = []
    for number, (name, arguments, ending) in enumerate(called):
        made = ToolCall(f"c{number}", name, json.dumps(arguments))
        messages += [
            Message("assistant", tool_calls=(made,)),
            Message("tool", "done", tool_call_id=made.id, ending=ending),
        ]
    return [
        PromptItem(NormalizedMessage(index, message), message, 0, 0, Fate.SENT)
        for index, message in enumerate(messages)
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "is_kept"),
    [
        ("edit_file", {"path": "a.py"}, True),
        ("multi_edit", {"path": "a.py"}, True),
        ("write_file", {"path": "a.py"}, False),
        ("delete_file", {"path": "a.py"}, False),
        ("move_file", {"path": "a.py", "to": "b.py"}, False),
        ("move_file", {"path": "b.py", "to": "a.py"}, False),
    ],
)
def test_a_change_makes_reads_of_its_paths_stale(name: str, arguments: dict[str, str], is_kept: bool) -> None:
    uses = file_uses([_turn(READ, (name, arguments, Ending.COMPLETE))])
    assert stale_reads(uses) == {1}
    assert reads_of_edited_files(uses, 0) == ({1} if is_kept else set())


@pytest.mark.parametrize("name", ["edit_file", "multi_edit", "write_file", "delete_file", "move_file"])
@pytest.mark.parametrize("ending", [Ending.FAILED, Ending.REFUSED, Ending.CANCELLED])
def test_a_change_that_was_not_made_makes_no_read_stale(name: str, ending: Ending) -> None:
    uses = file_uses([_turn(READ, (name, {"path": "a.py", "to": "b.py"}, ending))])
    assert stale_reads(uses) == set()
    assert reads_of_edited_files(uses, 0) == set()


def test_where_a_deleted_file_was_to_go_is_no_path_of_it() -> None:
    uses = file_uses([_turn(READ, ("delete_file", {"path": "b.py", "to": "a.py"}, Ending.COMPLETE))])
    assert stale_reads(uses) == set()
