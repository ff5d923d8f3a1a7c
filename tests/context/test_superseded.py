"""Which results later calls have superseded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rolling_chat.context.prompt_items import Fate, PromptItem
from rolling_chat.context.repair import NormalizedMessage
from rolling_chat.context.superseded import reads_of_edited_files, superseded
from rolling_chat.context.tool_uses import tool_uses
from rolling_chat.messages import Ending, Message, ToolCall

READ = ("read_file", {"path": "a.py"}, Ending.COMPLETE)


def _turn(*called: tuple[str, dict[str, Any], Ending], says: Sequence[str] = ()) -> list[PromptItem]:
    """A turn with one call after the other: that of index 0 has its result at 1, the next at 3."""
    messages: list[Message] = []
    for number, (name, arguments, ending) in enumerate(called):
        made = ToolCall(f"c{number}", name, json.dumps(arguments))
        text = says[number] if number < len(says) else "done"
        messages += [
            Message("assistant", tool_calls=(made,)),
            Message("tool", text, tool_call_id=made.id, ending=ending),
        ]
    return [
        PromptItem(NormalizedMessage(index, message), message, 0, 0, Fate.SENT)
        for index, message in enumerate(messages)
    ]


def _ran(command: str) -> tuple[str, dict[str, Any], Ending]:
    return ("run_command", {"command": command}, Ending.COMPLETE)


def _read(**lines: Any) -> tuple[str, dict[str, Any], Ending]:
    return ("read_file", {"path": "a.py", **lines}, Ending.COMPLETE)


def _reasons(*called: tuple[str, dict[str, Any], Ending], says: Sequence[str] = ()) -> dict[int, str]:
    return superseded(tool_uses([_turn(*called, says=says)]))


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
    uses = tool_uses([_turn(READ, (name, arguments, Ending.COMPLETE))])
    assert superseded(uses).keys() == {1}
    assert reads_of_edited_files(uses, 0) == ({1} if is_kept else set())


@pytest.mark.parametrize("name", ["edit_file", "multi_edit", "write_file", "delete_file", "move_file"])
@pytest.mark.parametrize("ending", [Ending.FAILED, Ending.REFUSED, Ending.CANCELLED])
def test_a_failed_change_makes_no_read_stale(name: str, ending: Ending) -> None:
    uses = tool_uses([_turn(READ, (name, {"path": "a.py", "to": "b.py"}, ending))])
    assert superseded(uses) == {}
    assert reads_of_edited_files(uses, 0) == set()


def test_the_destination_argument_of_a_deletion_is_no_path_of_it() -> None:
    uses = tool_uses([_turn(READ, ("delete_file", {"path": "b.py", "to": "a.py"}, Ending.COMPLETE))])
    assert superseded(uses) == {}


@pytest.mark.parametrize(
    ("first", "again", "is_superseded"),
    [
        ({}, {}, True),
        ({"start": 5, "end": 9}, {}, True),
        ({"start": 5, "end": 9}, {"start": 1, "end": 20}, True),
        ({"start": 5, "end": 9}, {"start": 6, "end": 20}, False),
        ({}, {"start": 1, "end": 20}, False),
        ({"offset": 5, "limit": 5}, {"offset": 1, "limit": 9}, True),
        ({"offset": 5, "limit": 5}, {"offset": 1, "limit": 8}, False),
    ],
)
def test_a_read_is_superseded_by_one_of_all_its_lines(
    first: dict[str, int], again: dict[str, int], is_superseded: bool
) -> None:
    found = _reasons(_read(**first), _read(**again))
    assert found == ({1: "superseded: the file was read again"} if is_superseded else {})


def test_lines_that_two_later_reads_show_together_are_superseded() -> None:
    parts = (_read(start=1, end=5), _read(start=6, end=9))
    assert _reasons(_read(start=3, end=8), *parts).keys() == {1}
    assert _reasons(_read(start=3, end=10), *parts) == {}


def test_a_later_read_that_failed_or_was_cut_supersedes_no_other_lines() -> None:
    part = _read(start=5, end=9)
    assert _reasons(part, ("read_file", {"path": "a.py"}, Ending.FAILED)) == {}
    items = _turn(part, _read())
    items[-1] = replace(items[-1], message=Message("tool", "do", tool_call_id="c1"))
    assert superseded(tool_uses([items])) == {}


def test_a_command_that_is_run_again_supersedes_its_older_results_whatever_they_were() -> None:
    found = _reasons(_ran("make"), _ran("make test"), _ran(" make "), _ran("make"))
    assert found == dict.fromkeys((1, 5), "superseded: same command run again")


def test_a_call_that_names_nothing_is_not_the_same_call_again() -> None:
    page: tuple[str, dict[str, Any], Ending] = ("next_page", {}, Ending.COMPLETE)
    assert _reasons(page, page) == {}
    order = ("get_order", {"id": 7}, Ending.COMPLETE)
    assert _reasons(order, order).keys() == {1}


LISTING = ("list_files", {"path": "src"}, Ending.COMPLETE)


@pytest.mark.parametrize(
    ("later", "is_outdated"),
    [
        (("write_file", {"path": "src/new.py"}, Ending.COMPLETE), True),
        (("write_file", {"path": "src/a.py"}, Ending.COMPLETE), False),
        (("write_file", {"path": "src/new.py"}, Ending.REFUSED), False),
        (("write_file", {"path": "new.py"}, Ending.COMPLETE), False),
        (("edit_file", {"path": "src/a.py"}, Ending.COMPLETE), False),
        (("delete_file", {"path": "src/a.py"}, Ending.COMPLETE), True),
        (("move_file", {"path": "b.py", "to": "src/b.py"}, Ending.COMPLETE), True),
        (("move_file", {"path": "src/a.py", "to": "b.py"}, Ending.COMPLETE), True),
        (_ran("rm src/a.py"), True),
        (_ran("cd /tmp && rm -r x"), False),
        (_ran("cat src/a.py"), False),
    ],
)
def test_a_listing_is_outdated_by_what_changes_its_folder(
    later: tuple[str, dict[str, Any], Ending], is_outdated: bool
) -> None:
    found = _reasons(LISTING, later, says=["a.py\nsub/"])
    assert found == ({1: "superseded: the folder was changed later"} if is_outdated else {})


@pytest.mark.parametrize(
    ("failed", "later", "is_resolved"),
    [
        (("edit_file", {"path": "a.py", "old": "x"}, Ending.FAILED), ("edit_file", {"path": "a.py"}), True),
        (("edit_file", {"path": "a.py", "old": "x"}, Ending.FAILED), ("edit_file", {"path": "b.py"}), False),
        (_ran("cd x && npm test -- a"), ("run_command", {"command": "npm test"}), True),
        (_ran("npm test"), ("run_command", {"command": "npm start"}), False),
    ],
)
def test_an_error_is_superseded_once_the_same_thing_worked(
    failed: tuple[str, dict[str, Any], Ending], later: tuple[str, dict[str, Any]], is_resolved: bool
) -> None:
    says = ["it went wrong\n[exit code 1]", "done"]
    assert _reasons(failed, (*later, Ending.COMPLETE), says=says) == (
        {1: "superseded: it worked later"} if is_resolved else {}
    )
    assert _reasons(failed, (*later, Ending.FAILED), says=says) == {}


def test_calls_of_other_agents_are_known_by_their_names_and_arguments() -> None:
    view = ("str_replace_editor", {"command": "view", "path": "/a.py", "view_range": [2, 9]}, Ending.COMPLETE)
    edit = ("str_replace_editor", {"command": "create", "path": "/a.py"}, Ending.COMPLETE)
    assert _reasons(view, edit) == {1: "superseded: the file was changed later"}
    assert _reasons(
        ("Read", {"file_path": "a"}, Ending.COMPLETE), ("Write", {"file_path": "./a"}, Ending.COMPLETE)
    )


@pytest.mark.parametrize("arguments", ["", "[1]", "nonsense", '{"a":' * 5_000 + "1" + "}" * 5_000])
def test_arguments_that_cannot_be_read_supersede_nothing(arguments: str) -> None:
    calls = [ToolCall(f"c{number}", "get", arguments) for number in range(2)]
    messages = [
        said
        for one in calls
        for said in (Message("assistant", tool_calls=(one,)), Message("tool", "x", tool_call_id=one.id))
    ]
    items = [
        PromptItem(NormalizedMessage(at, said), said, 0, 0, Fate.SENT) for at, said in enumerate(messages)
    ]
    assert superseded(tool_uses([items])) == {}
