from __future__ import annotations

import pytest

from rolling_chat.context import estimate_tokens
from rolling_chat.permissions.path_patterns import FILE_TOOLS
from rolling_chat.tools import Tool, ToolError
from rolling_chat.tools.editing import EditingTool
from rolling_chat.tools.registry import all_tools, choose_tools


def test_all_none_and_named_tools_can_be_chosen() -> None:
    assert choose_tools("all") == all_tools()
    assert choose_tools("none") == ()
    assert choose_tools(()) == ()
    assert [tool.name for tool in choose_tools(["run_command", "read_file"])] == ["read_file", "run_command"]
    assert [tool.name for tool in choose_tools("list_files")] == ["list_files"]


def test_an_unknown_tool_is_refused_with_what_there_is() -> None:
    said = r"no tool 'fly'\. The tools are: read_file, list_files, search_files, edit_file, multi_edit"
    with pytest.raises(ToolError, match=said):
        choose_tools(["read_file", "fly"])


def test_what_changes_something_needs_permission() -> None:
    assert [tool.name for tool in all_tools() if tool.needs_permission] == [
        "edit_file", "multi_edit", "write_file", "move_file", "delete_file", "run_command",
        "fetch_url",
    ]  # fmt: skip


def test_the_tools_that_change_files_are_those_whose_rules_take_paths() -> None:
    assert {tool.name for tool in all_tools() if isinstance(tool, EditingTool)} == FILE_TOOLS


def test_all_tools_together_take_about_a_seventh_of_a_small_window() -> None:
    counted = estimate_tokens([], tools=[tool.schema for tool in all_tools()], model="demo/offline")
    assert counted <= 1_160, "every request pays for every word of their descriptions"


@pytest.mark.parametrize("tool", all_tools(), ids=lambda tool: tool.name)
def test_every_schema_is_one_that_providers_take(tool: Tool) -> None:
    function = tool.schema["function"]
    parameters = function["parameters"]
    assert tool.schema["type"] == "function"
    assert function["description"]
    assert parameters["type"] == "object"
    assert set(parameters.get("required", ())) <= parameters["properties"].keys()
    assert all(
        schema["type"] in {"string", "integer", "boolean", "array"}
        for schema in parameters["properties"].values()
    )
