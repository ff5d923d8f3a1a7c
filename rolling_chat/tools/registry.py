"""All tools, and the choice of those to offer."""

from __future__ import annotations

from collections.abc import Sequence

from rolling_chat.permissions.rules import MCP_PREFIX
from rolling_chat.tools.base import Tool, ToolError
from rolling_chat.tools.command_output import CommandOutput
from rolling_chat.tools.edit_file import EditFile, MultiEdit
from rolling_chat.tools.fetch_url import FetchUrl
from rolling_chat.tools.list_files import ListFiles
from rolling_chat.tools.move_file import DeleteFile, MoveFile
from rolling_chat.tools.note import NoteTool
from rolling_chat.tools.outline import Outline
from rolling_chat.tools.read_file import ReadFile
from rolling_chat.tools.recall import Recall
from rolling_chat.tools.run_command import RunCommand
from rolling_chat.tools.search_files import SearchFiles
from rolling_chat.tools.skill import UseSkill
from rolling_chat.tools.task import Task
from rolling_chat.tools.todo import Todo
from rolling_chat.tools.write_file import WriteFile


def all_tools(task_models: Sequence[str] = ()) -> tuple[Tool, ...]:
    """Return all tools in the order in which they are offered; `task_models` may do tasks."""
    changing = (EditFile(), MultiEdit(), WriteFile(), MoveFile(), DeleteFile())
    looking = (Outline(), FetchUrl())
    rest = (Todo(), Recall(), CommandOutput(), Task(tuple(task_models)), UseSkill(), NoteTool())
    return (ReadFile(), ListFiles(), SearchFiles(), *changing, RunCommand(), *looking, *rest)


def choose_tools(names: str | Sequence[str], task_models: Sequence[str] = ()) -> tuple[Tool, ...]:
    """Return tools by name ("all", "none", one name, or several), in the order in which they are offered.

    Raises ToolError for an unknown name, listing the known ones.
    """
    match names:
        case "all":
            return all_tools(task_models)
        case "none" | "":
            return ()
        case str():
            wanted = {names}
        case _:
            wanted = set(names)
    known = {tool.name: tool for tool in all_tools(task_models)}
    # those of MCP servers are not known yet
    unknown = sorted(name for name in wanted - known.keys() if not name.startswith(MCP_PREFIX))
    if unknown:
        raise ToolError(f"There is no tool {unknown[0]!r}. The tools are: {', '.join(known)}.")
    return tuple(tool for name, tool in known.items() if name in wanted)
