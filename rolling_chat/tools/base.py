"""The protocol of tools, and helpers to read their arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from rolling_chat.extensions.skills import Skills
from rolling_chat.messages import Ending, FileTouch, Json, JsonObject
from rolling_chat.tools.memory import Memory
from rolling_chat.tools.note_pad import NotePad
from rolling_chat.web_addresses import WebAddress

if TYPE_CHECKING:  # it imports asyncio and everything that runs commands
    from rolling_chat.tools.sandbox.sandbox import Sandbox


class ToolError(Exception):
    """A tool call that failed; its text is one line that tells the model what to do instead."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call: the whole text, how it ended, and the files that it read or wrote.

    `shown` is what the screen shows instead of the text, such as a diff; the model never reads it. `pictures`
    are data addresses, which are sent to the model with the text.
    """

    text: str
    ending: Ending = Ending.COMPLETE
    files: tuple[FileTouch, ...] = ()
    shown: str = ""
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """A task for a second agent: its prompt, tools and model.

    If `tools` is None, it has those that only read; an empty `model` is that of the calling agent.
    """

    prompt: str
    tools: tuple[str, ...] | None = None
    model: str = ""


RunTask: TypeAlias = Callable[[TaskOrder], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The context of a tool call: its folder, environment, conversation and so on.

    `is_attached` returns whether the user attached the file at a path outside the folder. `last_seen` returns
    the hash of a file (absolute path) from when this branch last read or wrote all of it: empty if it was too
    large, GONE if the branch deleted it, None if it never did. `on_output` is called with a command's output
    as it arrives. `opens` returns whether a rule of the user's names an address by scheme, host and port.
    `sandbox` confines commands. `session` is the id of the calling session. `run_task` has a second agent do
    a task. `skills` are those that the call may use. `unsaved` has the texts of files with unsaved changes in
    an editor, by resolved path. `notes` are those of the conversation.
    """

    folder: Path
    environ: Mapping[str, str]
    memory: Memory | None = None
    is_attached: Callable[[str], bool] | None = None
    last_seen: Callable[[str], str | None] | None = None
    on_output: Callable[[bytes], None] | None = None
    opens: Callable[[WebAddress], bool] | None = None
    sandbox: Sandbox | None = None
    session: str = ""
    run_task: RunTask | None = None
    skills: Skills | None = None
    unsaved: Mapping[Path, str] = field(default_factory=dict)
    notes: NotePad | None = None

    def knows(self, path: Path, sha256: str) -> bool:
        """Return whether this branch has read or written all of a file in its current state."""
        return self.last_seen is not None and self.last_seen(str(path)) == sha256


class Tool(Protocol):
    """A tool that the model may call.

    `schema` is in OpenAI's format. A tool with `needs_permission` changes things or accesses something
    outside the folder: the agent asks the user before it runs. Calls of tools that only read may run in
    parallel.
    """

    @property
    def name(self) -> str:
        """The name that the model calls."""
        ...

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        ...

    @property
    def needs_permission(self) -> bool:
        """Whether the user must permit each call of the tool."""
        ...

    @property
    def only_reads(self) -> bool:
        """Whether the tool changes nothing, so that its calls may run in parallel."""
        ...

    def describe(self, arguments: JsonObject) -> str:
        """Return exactly what a call would do, as the permission question and the transcript show it."""
        ...

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Run the tool. Can be canceled; raises nothing but ToolError and CancelledError."""
        ...


def function_schema(
    name: str, description: str, properties: Mapping[str, Json], required: tuple[str, ...] = ()
) -> dict[str, Json]:
    """Build a tool schema in OpenAI's format; `properties` are JSON Schema.

    Every request pays for every word of it, so describe only what the model cannot guess.
    """
    parameters = {"type": "object", "properties": dict(properties)}
    if required:
        parameters["required"] = list(required)
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def read_text(arguments: JsonObject, name: str, default: str | None = None) -> str:
    """Return the text argument `name` of a tool call.

    Raises ToolError if it is missing and has no default.
    """
    value = arguments.get(name)
    if value is None or value == "":
        if default is None:
            raise ToolError(f"The argument {name!r} is missing: give it as text.")
        return default
    if not isinstance(value, str):
        raise ToolError(f"The argument {name!r} must be text, not {type(value).__name__}.")
    return value


def read_count(
    arguments: JsonObject, name: str, *, default: int | None = None, minimum: int = 1
) -> int | None:
    """Return the whole number `name`, at least `minimum`; models also write it as "12" or 12.0."""
    value = arguments.get(name)
    if value is None or value == "":
        return default
    try:
        number = int(value) if isinstance(value, str) else _whole(value)
    except ValueError:
        raise ToolError(f"The argument {name!r} must be a whole number, not {_short(value)}.") from None
    if number < minimum:
        raise ToolError(f"The argument {name!r} must be {minimum} or more, not {number}.")
    return number


def read_flag(arguments: JsonObject, name: str) -> bool:
    """Return the boolean argument `name`, False by default; models also write it as "true"."""
    value = arguments.get(name)
    match value:
        case None | "":
            return False
        case bool():
            return value
        case str() if value.lower() in {"true", "false"}:
            return value.lower() == "true"
        case _:
            raise ToolError(f"The argument {name!r} must be true or false, not {_short(value)}.")


def _whole(value: object) -> int:
    match value:
        case bool():
            raise ValueError(value)
        case int():
            return value
        case float() if value.is_integer():
            return int(value)
        case _:
            raise ValueError(value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
