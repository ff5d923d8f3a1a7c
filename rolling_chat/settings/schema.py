"""The schema of the settings: every key with its type, default and allowed values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from rolling_chat.context_keys import TRUNCATIONS, CacheTtl, ContextKeys, Direct
from rolling_chat.permissions.rules import parse_rule
from rolling_chat.setting_rules import Rule, check_database_address, key, size
from rolling_chat.settings.hook_settings import HookSettings

KeyPath: TypeAlias = tuple[str, ...]
ToolCalls: TypeAlias = Literal["auto", "native", "text"]
Notify: TypeAlias = Literal["auto", "bell", "off"]
Effort: TypeAlias = Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)


_LITELLM = "https://raw.githubusercontent.com/BerriAI/litellm/main"
CATALOG_ADDRESS = f"{_LITELLM}/model_prices_and_context_window.json"
"""Where `rolling-chat models --refresh` fetches a catalog: litellm's current table."""


def _table(of: type) -> Any:
    return field(default_factory=lambda: MappingProxyType({}), metadata={"table_of": of})


def _by_name(kind: type, **rule: Any) -> Any:
    """Return a table with arbitrary names as keys, which its readers check."""
    metadata = {"values": Rule(kind, **rule)}
    return field(default_factory=lambda: MappingProxyType({}), metadata=metadata)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings of one model, sizes in tokens; 0 is the catalog's figure, "" the provider's own address.

    `tool_calls`: "native" accepts only calls of the API. "auto" also accepts calls that the model writes as
    text, and asks about each. With "text", the model is told to write calls as text, which are trusted like
    others. `pictures`: "auto" sends them to models that are known to support them. `reasoning_effort` is how
    much the model may think, "" for its own default.
    """

    max_input_tokens: int = size(0, help="The model's window; 0: as the table of models has it.")
    max_output_tokens: int = size(0, help="The longest answer; 0: the model's own limit.")
    api_base: str = key(
        "", str, url=True, help="The address of the model's server. Empty: the provider's own."
    )
    tool_calls: ToolCalls = key(
        "auto",
        str,
        choices=("auto", "native", "text"),
        help='"text": for models that write their calls as text; "auto" takes those, too.',
    )
    reasoning_effort: Effort = key(
        "", str, choices=EFFORTS, help="How much the model may think. Empty: its own default."
    )
    pictures: Literal["auto", "send", "omit"] = key(
        "auto",
        str,
        choices=("auto", "send", "omit"),
        help='Whether pictures are sent. "auto" asks the table of models.',
    )


@dataclass(frozen=True, slots=True)
class ToolContextSettings:
    """The settings for the results of one tool; "" uses the general setting."""

    truncation: Literal["", "auto", "head", "tail", "both"] = key(
        "",
        str,
        choices=TRUNCATIONS,
        project=True,
        help="Which part of this tool's results the model sees. Empty: as `tool_result_truncation`.",
    )


@dataclass(frozen=True, slots=True)
class ContextSettings(ContextKeys):
    """The settings of `[context]`: the rolling pipeline, off by default."""

    enabled: bool = key(False, bool, project=True, help="Rolling context, for new sessions.")
    omitted_names: float = key(
        0.05,
        float,
        least=0,
        most=0.5,
        project=True,
        help="Share of the room for history that lists the names which only what left the prompt has.",
    )
    # for Claude's cache marks; an hour costs more to write, so a project may not set it
    cache_ttl: CacheTtl = key(
        "5m",
        str,
        choices=get_args(CacheTtl),
        help="How long Claude keeps a prompt in its cache; writing it for an hour costs 2 times the input.",
    )
    tools: Mapping[str, ToolContextSettings] = _table(ToolContextSettings)


def _permission_rules(**rule: Any) -> Any:
    return key((), tuple, item=parse_rule, example="run_command(git status *)", **rule)


@dataclass(frozen=True, slots=True)
class PermissionSettings:
    """Permission rules (`rolling_chat.permissions.rules`): what runs without asking, and what never runs."""

    allow: tuple[str, ...] = _permission_rules(never_project=True, help="Rules for what runs without asking.")
    deny: tuple[str, ...] = _permission_rules(
        project=True, adds=True, help="Rules for what never runs; they win over everything."
    )


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The settings of `[agent]`: what the model may do, and how long it may work by itself."""

    max_tool_iterations: int = size(
        25, least=1, project=False, help="Requests of one turn that answer tool calls."
    )
    retry_minutes: int = size(
        5, least=0, project=False, help="How long a busy server or a lost network is tried again; 0: one try."
    )
    max_tool_calls: int = size(
        200, least=1, project=False, help="Tool calls of one turn; at most 32 from one reply are run."
    )
    # US dollars, 0 for no limit
    max_cost_session: float = key(
        0.0, float, least=0, help="US dollars; asks before a session costs more; 0: no limit."
    )
    max_cost_day: float = key(
        0.0, float, least=0, help="US dollars; asks before all sessions of a day cost more; 0: no limit."
    )
    approvals: Literal["read-only", "plan", "ask", "edits", "all"] = key(
        "ask",
        str,
        choices=("read-only", "plan", "ask", "edits", "all"),
        help="Which tools may run without asking.",
    )
    tools: Literal["all", "none"] | tuple[str, ...] = key(
        "all",
        tuple,
        choices=("all", "none"),
        help='The tools that the model is offered: "all", "none" or a list.',
    )
    # parts of the conversation are sent to these models, so a project may not set it
    task_models: tuple[str, ...] = key(
        (),
        tuple,
        one=True,
        never_project=True,
        help="Models that a task may be given to, besides the model of the session.",
    )
    sandbox: Literal["auto", "off", "required"] = key(
        "auto",
        str,
        choices=("off", "auto", "required"),
        project=True,
        tightens=True,
        help="Whether commands run in a sandbox. A project may only make it stricter.",
    )
    # commands get these variables even if they contain secrets, so a project may not set it
    environment: tuple[str, ...] = key(
        (), tuple, help="Variables that commands get even though they look like secrets."
    )
    permissions: PermissionSettings = field(
        default_factory=PermissionSettings, metadata={"group": PermissionSettings}
    )


@dataclass(frozen=True, slots=True)
class McpServerSettings:
    """The settings of one MCP server: a `command` that is started, or the `url` of one that runs."""

    command: str = key("", str, help="The program that is the server; it speaks over stdin and stdout.")
    args: tuple[str, ...] = key((), tuple, help="The program's arguments.")
    env: Mapping[str, str] = _by_name(str, help="More variables for the program; ${NAME} is one of yours.")
    cwd: str = key("", str, help="The folder that the program starts in. Empty: the working folder.")
    url: str = key("", str, url=True, help="The address of a server that speaks streamable HTTP.")
    headers: Mapping[str, str] = _by_name(
        str, help="Headers that go with every request; ${NAME} is a variable of yours."
    )
    enabled: bool = key(True, bool, help="Whether sessions begin with the server on.")
    call_seconds: int = size(
        0, project=False, help="How long one call may take; 0: as `mcp.call_seconds` says."
    )


@dataclass(frozen=True, slots=True)
class McpSettings:
    """The settings of `[mcp]`: servers that offer tools, prompts and resources."""

    startup_seconds: int = size(
        20, project=False, help="How long a turn waits for servers that are still starting."
    )
    call_seconds: int = size(
        300, least=1, project=False, help="How long one call of a server's tool may take."
    )
    max_share: float = key(
        0.1,
        float,
        least=0,
        most=1,
        help="Share of the window for the tools of servers; the largest sets beyond it are found by search.",
    )
    servers: Mapping[str, McpServerSettings] = _table(McpServerSettings)


@dataclass(frozen=True, slots=True)
class ProvidersSettings:
    """The settings of `[providers]`: how requests are sent; "off" sends all of them through litellm."""

    direct: Direct = key(
        "auto",
        str,
        choices=get_args(Direct),
        help='"off": every request goes by litellm, also those in the form of OpenAI and Anthropic.',
    )


@dataclass(frozen=True, slots=True)
class ScreenSettings:
    """The settings of `[screen]`: notifications, plain lines, keys and the status line."""

    notify: Notify = key(
        "auto",
        str,
        choices=get_args(Notify),
        help="What calls you back: a notification on the desktop where the terminal can, or the bell.",
    )
    plain: bool = key(False, bool, help="Chat in plain lines, for screen readers: no full screen.")
    vim: bool = key(False, bool, help="Vim's keys in the prompt box: Esc begins them, i types again.")
    # it is run, so a project may not set it
    status_command: str = key(
        "", str, never_project=True, help="A command whose first line of output is the last row but one."
    )


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """The settings of `[telemetry]`: where spans and metrics are sent, if anywhere."""

    # data is sent there, so a project may not set it
    endpoint: str = key(
        "",
        str,
        url=True,
        never_project=True,
        help="An OpenTelemetry collector that gets spans and metrics, without what was said. Empty: none.",
    )


@dataclass(frozen=True, slots=True)
class SessionsSettings:
    """The settings of `[sessions]`: where sessions are saved, and for how long; 0 days means forever."""

    # conversations are sent there, so a project may not set it
    store: str = key(
        "",
        str,
        text=check_database_address,
        example="postgresql://ada@db.example.org/sessions?sslmode=verify-full",
        never_project=True,
        help="A PostgreSQL database for the sessions of several machines or a team. Empty: a file here.",
    )
    # it deletes sessions, so a project may not set it
    keep_days: int = size(
        0,
        project=False,
        help="Older sessions are deleted at startup, except those with pins; 0: they are kept forever.",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of one run.

    `origins` has the source of each dotted key's value: "default", a file's path, "environment" or "command
    line". `fallback` are models of which the first that can answers while `model` is overloaded or
    unreachable. `trusted_folders` are the projects whose own settings file may set every key, except rules
    that allow. `catalog_address` is where a newer model catalog is fetched. `warnings` are lines for the user
    about ignored settings.
    """

    model: str = key(
        "",
        str,
        help="The model to ask. Empty: the first one found by a key, a local Ollama, or the demo.",
    )
    # the conversation is sent to these models, so a project may not set it
    fallback: tuple[str, ...] = key(
        (),
        tuple,
        one=True,
        never_project=True,
        help="Models that answer, the first that can, while the model is overloaded or out of reach.",
    )
    theme: str = key(
        "midnight", str, project=True, help="The colors: a theme of Rolling Chat or of the themes folder."
    )
    trusted_folders: tuple[str, ...] = key(
        (),
        tuple,
        help="Projects that are trusted, and whose own file may set everything except rules that allow.",
    )
    catalog_address: str = key(
        CATALOG_ADDRESS,
        str,
        url=True,
        help="Where `rolling-chat models --refresh` fetches the table of models.",
    )
    context: ContextSettings = field(default_factory=ContextSettings, metadata={"group": ContextSettings})
    models: Mapping[str, ModelSettings] = _table(ModelSettings)
    agent: AgentSettings = field(default_factory=AgentSettings, metadata={"group": AgentSettings})
    # keyed by the actions of `rolling_chat.tui.keymap`
    keys: Mapping[str, tuple[str, ...]] = _by_name(
        tuple, one=True, help="The keys of an action; F1 lists the actions."
    )
    providers: ProvidersSettings = field(
        default_factory=ProvidersSettings, metadata={"group": ProvidersSettings}
    )
    mcp: McpSettings = field(default_factory=McpSettings, metadata={"group": McpSettings})
    hooks: HookSettings = field(default_factory=HookSettings, metadata={"group": HookSettings})
    screen: ScreenSettings = field(default_factory=ScreenSettings, metadata={"group": ScreenSettings})
    sessions: SessionsSettings = field(default_factory=SessionsSettings, metadata={"group": SessionsSettings})
    telemetry: TelemetrySettings = field(
        default_factory=TelemetrySettings, metadata={"group": TelemetrySettings}
    )
    origins: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), compare=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def for_model(self, model: str) -> ModelSettings:
        """Return the settings under `model`'s exact name in `[models."…"]`; defaults if there are none."""
        return self.models.get(model, _NO_MODEL_SETTINGS)


_NO_MODEL_SETTINGS = ModelSettings()
ANY = "*"


def _rules(of: type, prefix: KeyPath = ()) -> Iterator[tuple[KeyPath, Rule]]:
    for item in dataclasses.fields(of):
        path = (*prefix, item.name)
        if "rule" in item.metadata:
            yield path, item.metadata["rule"]
        elif "group" in item.metadata:
            yield from _rules(item.metadata["group"], path)
        elif "table_of" in item.metadata:
            yield from _rules(item.metadata["table_of"], (*path, ANY))
        elif "values" in item.metadata:
            yield (*path, ANY), item.metadata["values"]


RULES: Mapping[KeyPath, Rule] = MappingProxyType(dict(_rules(Settings)))
"""The rules of all keys by path; ANY represents a name that the user chooses (a model, a tool)."""


def build(
    values: Mapping[KeyPath, Any], origins: Mapping[str, str], warnings: Iterable[str] = ()
) -> Settings:
    """Build the settings from validated values by path; missing ones get their defaults."""
    read_only = MappingProxyType(dict(origins))
    settings: Settings = _build(Settings, values, (), origins=read_only, warnings=tuple(warnings))
    return settings


def _build(of: type, values: Mapping[KeyPath, Any], prefix: KeyPath, **more: Any) -> Any:
    depth = len(prefix)
    inside = {path: value for path, value in values.items() if path[:depth] == prefix}
    parts: dict[str, Any] = dict(more)
    for item in dataclasses.fields(of):
        path = (*prefix, item.name)
        if "rule" in item.metadata and path in inside:
            parts[item.name] = inside[path]
        elif "group" in item.metadata:
            parts[item.name] = _build(item.metadata["group"], inside, path)
        elif "table_of" in item.metadata:
            names = dict.fromkeys(key[depth + 1] for key in inside if key[: depth + 1] == path)
            made = {name: _build(item.metadata["table_of"], inside, (*path, name)) for name in names}
            parts[item.name] = MappingProxyType(made)
        elif "values" in item.metadata:
            named = {key[-1]: value for key, value in inside.items() if key[:-1] == path}
            parts[item.name] = MappingProxyType(named)
    return of(**parts)
