"""Where settings come from, and what is said of one that cannot be used."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context.config import ContextConfig
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.load import load_settings, shown
from rolling_chat.settings.paths import Paths, find_paths
from rolling_chat.settings.project_files import PROJECT_FILE
from rolling_chat.settings.schema import ContextSettings, ModelSettings, Settings
from rolling_chat.settings.trust import FolderTrust

Load = Callable[..., Settings]

# every key, most at their defaults
EXAMPLE = """
model = "anthropic/claude-sonnet-4-5"
theme = "midnight"

[context]
enabled = false
max_context_tokens = 0
reserved_output_tokens = 4096
safety_margin = 0.10
max_history_tokens = "auto"
preserve_recent_turns = 5
usage_threshold = 0.8
trim_to = 0.6
trim_strategy = "priority"
summarize = "model"
summary_model = ""
max_tool_result_tokens = 8000
tool_result_truncation = "auto"
tool_result_keep_first = 2
tool_result_keep_last = 5
tool_result_masking = "auto"
cache_ttl = "5m"
token_estimator = "auto"

[context.tools.run_command]
truncation = "tail"

[models."openai/my-server"]
max_input_tokens = 8192
max_output_tokens = 0
api_base = "http://127.0.0.1:8080/v1"

[agent]
max_tool_iterations = 25
approvals = "ask"
tools = "all"
"""


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Paths in a folder of the test's own."""
    return find_paths({"ROLLING_CHAT_HOME": str(tmp_path / "home")})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the program is started."""
    made = tmp_path / "project"
    made.mkdir()
    return made


@pytest.fixture
def load(paths: Paths, folder: Path) -> Load:
    """Write the files, then load."""

    def write_and_load(
        *overrides: str, user: str = "", project: str = "", environ: Mapping[str, str] | None = None
    ) -> Settings:
        for path, text in ((paths.config_file, user), (folder / PROJECT_FILE, project)):
            if text:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
        trust = FolderTrust(folder, paths, everything=True)
        return load_settings(paths, folder, environ or {}, overrides, trust=trust)

    return write_and_load


def test_with_nothing_set_every_key_has_its_default(load: Load) -> None:
    settings = load()
    assert settings == Settings()
    assert settings.origins["context.trim_to"] == "default"
    assert set(settings.origins.values()) == {"default"}


def test_every_key_can_be_set_in_the_file(load: Load, paths: Paths) -> None:
    settings = load(user=EXAMPLE)
    assert settings.model == "anthropic/claude-sonnet-4-5"
    assert dataclasses.replace(settings.context, tools={}) == dataclasses.replace(ContextSettings(), tools={})
    assert settings.context.tools["run_command"].truncation == "tail"
    assert settings.for_model("openai/my-server") == ModelSettings(8192, 0, "http://127.0.0.1:8080/v1")
    assert settings.for_model("other") == ModelSettings()
    assert settings.origins["context.tools.run_command.truncation"] == str(paths.config_file)


def test_the_defaults_are_the_pipelines_own() -> None:
    ours = dataclasses.asdict(ContextSettings(tools={}))
    theirs = {field.name: field.default for field in dataclasses.fields(ContextConfig)}
    ours.pop("tools")
    ours.pop("cache_ttl")  # for the wire, not for the pipeline
    # off in the program, on in a configuration made by hand
    assert (ours.pop("enabled"), theirs.pop("enabled")) == (False, True)
    assert (ours.pop("omitted_names"), theirs.pop("omitted_names")) == (0.05, 0.0)
    assert ours == {key: theirs[key] for key in ours}


def test_the_later_source_wins(load: Load, paths: Paths, folder: Path) -> None:
    sources = {
        "user": "[context]\ntrim_to = 0.1\nmax_history_tokens = 1\npreserve_recent_turns = 1",
        "project": "[context]\nmax_history_tokens = 2\npreserve_recent_turns = 2",
        "environ": {
            "ROLLING_CHAT_CONTEXT_PRESERVE_RECENT_TURNS": "3",
            "ROLLING_CHAT_CONTEXT_SUMMARIZE": "model",
        },
    }
    settings = load("context.summarize=off", **sources)
    context = settings.context
    assert (context.trim_to, context.max_history_tokens, context.preserve_recent_turns) == (0.1, 2, 3)
    assert context.summarize == "off"
    keys = ("trim_to", "max_history_tokens", "preserve_recent_turns", "summarize")
    assert [settings.origins[f"context.{key}"] for key in keys] == [
        str(paths.config_file),
        str(folder / PROJECT_FILE),
        "environment",
        "command line",
    ]


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("context.enabled=true", lambda s: s.context.enabled is True),
        (" context.trim_to = 1 ", lambda s: s.context.trim_to == 1.0),
        ("context.trim_strategy=priority-based", lambda s: s.context.trim_strategy == "priority-based"),
        ("model=openai/gpt-4o", lambda s: s.model == "openai/gpt-4o"),
        ('model="openai/gpt-4o"', lambda s: s.model == "openai/gpt-4o"),
        ("model=", lambda s: s.model == ""),
        ("theme=2001", lambda s: s.theme == "2001"),
        ("theme=true", lambda s: s.theme == "true"),
        ("agent.tools=none", lambda s: s.agent.tools == "none"),
        ('agent.tools=["read_file", "list_files"]', lambda s: s.agent.tools == ("read_file", "list_files")),
        ("context.tools.run.truncation=tail", lambda s: s.context.tools["run"].truncation == "tail"),
        ('models."openai/x".max_input_tokens=8192', lambda s: s.models["openai/x"].max_input_tokens == 8192),
        # as a shell leaves it
        ("models.x/gpt-4.1.max_input_tokens=9", lambda s: s.models["x/gpt-4.1"].max_input_tokens == 9),
        ('models."a=b".api_base=http://x/?q=1', lambda s: s.models["a=b"].api_base == "http://x/?q=1"),
    ],
)  # fmt: skip
def test_overrides_are_toml_or_plain_text(
    load: Load, override: str, read: Callable[[Settings], bool]
) -> None:
    assert read(load(override))


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("context.enbled=true", "unknown key context.enbled = true; did you mean context.enabled?"),
        (
            "color=red",
            'unknown key color = "red"; allowed: model, fallback, theme, trusted_folders, ',
        ),
        ("models.x.window=3", "unknown key models.x.window = 3"),
        ("context.enabled=1", "context.enabled = 1: must be true or false"),
        ("context.enabled=yes", 'context.enabled = "yes": must be true or false'),
        (
            "context.preserve_recent_turns=true",
            "context.preserve_recent_turns = true: must be a whole number",
        ),
        ("context.preserve_recent_turns=2.0", "must be a whole number from 0"),
        ("context.preserve_recent_turns=-1", "must be a whole number from 0"),
        ("context.max_tool_result_tokens=0", "must be a whole number from 1"),
        ("context.safety_margin=1", "must be a number from 0 to below 1"),
        ("context.safety_margin=nan", "must be a number from 0 to below 1"),
        ("context.trim_to=0", "must be a number above 0 and at most 1"),
        ("context.trim_to=inf", "must be a number above 0 and at most 1"),
        ("context.max_history_tokens=1" + "0" * 400, '= a huge number: must be "auto" or a whole number'),
        ("context.summarize=on", 'must be one of "off", "extract", "model"'),
        ("context.tools.x.truncation=middle", 'must be one of "auto", "head", "tail", "both"'),
        ("models.x.api_base=ftp://x", "must be an address beginning with http:// or https://"),
        ("agent.approvals=true", 'must be one of "read-only", "plan", "ask", "edits", "all"'),
        ("agent.tools=some", 'must be "all" or "none" or a list of names'),
        ("agent.tools=[1]", 'must be "all" or "none" or a list of names'),
        ("agent.tools=[0x" + "f" * 5000 + "]", "agent.tools = a list: must be"),
        ("agent.max_tool_iterations=0x" + "f" * 5000, "= a huge number: must be a whole number"),
        ('model="a\\u001b[31m"', "must be a text on one line"),
        ("model=a\nb=1", "must be a text on one line"),
        ("novalue", "novalue: must be key=value"),
        ("=3", "=3: must be key=value"),
    ],
)
def test_a_bad_override_is_one_line(load: Load, override: str, line: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(override)
    assert str(caught.value).startswith("command line: ")
    assert line in str(caught.value)
    assert str(caught.value).isprintable()


@given(override=st.text(st.characters(exclude_categories=()), max_size=60))
def test_no_override_is_a_traceback(tmp_path_factory: pytest.TempPathFactory, override: str) -> None:
    paths = find_paths({"ROLLING_CHAT_HOME": str(tmp_path_factory.getbasetemp() / "no-settings")})
    for text in (override, f"model={override}", f"{override}=1", f"models.{override}.api_base={override}"):
        try:
            load_settings(paths, tmp_path_factory.getbasetemp(), {}, [text])
        except SettingsError as error:
            assert str(error).isprintable()  # noqa: PT017 - that it fails is allowed, not wanted


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\n\nmodel = ", ", line 3: is not valid TOML: Invalid value"),
        ("model = 'x'\nmodel = 'y'", ", line 2: is not valid TOML: Cannot overwrite a value"),
        ("[context]\nenabled = 'on'", ': context.enabled = "on": must be true or false'),
        ("context = 3", ": context = 3: must be a table of keys, as in [context]"),
        ("[[models]]\nx = 1", ": models = a list: must be a table of keys, as in [models]"),
        ("[model]\nname = 'x'", ": model = a table: must be a text on one line"),
        ("[models.gpt-4.1]\napi_base = ''", 'put in quotes, as in [models."gpt-4.1"]'),
        ("x = " + "[" * 5000, ": is not valid TOML: nested too deeply"),
        ("x = " + "9" * 5000, ": is not valid TOML: a number is too long"),
        ("x = '\x1b'", "is not valid TOML"),
        ("[context]\nmax_history_token = 3", "did you mean context.max_history_tokens?"),
    ],
)
def test_a_bad_file_is_one_line_that_names_it(load: Load, paths: Paths, text: str, line: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(user=text)
    assert str(caught.value).startswith(str(paths.config_file))
    assert line in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_file_that_is_no_text_names_the_line(load: Load, paths: Paths) -> None:
    paths.config_file.parent.mkdir()
    paths.config_file.write_bytes(b'model = "x"\ntheme = "\xff"\n')
    with pytest.raises(SettingsError, match="line 2: is not UTF-8 text"):
        load()


@pytest.mark.parametrize("kind", ["folder", "pipe", "huge"])
def test_what_is_no_settings_file_is_refused(load: Load, paths: Paths, kind: str) -> None:
    paths.config_file.parent.mkdir()
    match kind:
        case "folder":
            paths.config_file.mkdir()
        case "pipe":
            os.mkfifo(paths.config_file)
        case _:
            paths.config_file.write_bytes(b"#" * 2_000_000)
    with pytest.raises(SettingsError, match=r"is not a file|too large"):
        load()


def test_a_byte_order_mark_and_windows_line_ends_are_read(load: Load) -> None:
    assert load(user="\ufeffmodel = 'x'\r\n[context]\r\nenabled = true\r\n").context.enabled


@pytest.mark.parametrize(
    "text",
    [
        "model = 'openai/x'",
        "trusted_folders = ['.']",
        "[context]\nsummary_model = 'openai/x'",
        "[models.x]\napi_base = 'http://evil'",
        "[agent]\napprovals = 'all'",
        "[agent]\ntools = 'all'",
        "[agent]\nmax_tool_iterations = 1000000",
        "fallback = ['openai/x']",
    ],
)
def test_a_project_cannot_run_code_or_send_data_elsewhere(load: Load, folder: Path, text: str) -> None:
    settings = load(project=text)
    assert dataclasses.replace(settings, warnings=()) == Settings()
    (line,) = settings.warnings
    assert line.startswith(str(folder / PROJECT_FILE))
    assert "a project may not set this" in line
    assert line.isprintable()


def test_a_trusted_projects_settings_all_hold(load: Load, folder: Path) -> None:
    project = "model = 'openai/x'\n[agent]\napprovals = 'all'"
    settings = load(user=f"trusted_folders = [{str(folder)!r}]", project=project)
    assert (settings.model, settings.agent.approvals) == ("openai/x", "all")
    assert not load(user=f"trusted_folders = [{str(folder.parent)!r}]").model
    assert load(f"trusted_folders=[{str(folder)!r}]").model == "openai/x"
    assert load(user=f"trusted_folders = [{str(folder / '..' / folder.name)!r}]").model == "openai/x"


def test_not_even_a_trusted_project_names_models_for_tasks(load: Load, folder: Path) -> None:
    trusted = f"trusted_folders = ['{folder}']\n"
    project = "[agent]\ntask_models = ['openai/its']"
    settings = load(user=f"{trusted}[agent]\ntask_models = ['openai/mine']", project=project)
    assert settings.agent.task_models == ("openai/mine",)


def test_not_even_a_trusted_project_names_fallbacks(load: Load, folder: Path) -> None:
    trusted = f"trusted_folders = [{str(folder)!r}]"
    settings = load(user=f"fallback = 'openai/mine'\n{trusted}", project="fallback = ['openai/its']")
    assert settings.fallback == ("openai/mine",)
    assert [line.endswith("put it in your own settings") for line in settings.warnings] == [True]
    assert load(environ={"ROLLING_CHAT_FALLBACK": '["openai/a", "openai/b"]'}).fallback == (
        "openai/a",
        "openai/b",
    )


def test_trust_is_of_one_folder_and_not_of_wherever_one_stands(
    load: Load, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert not load(user="trusted_folders = ['.', '']", project="model = 'openai/x'").model


def test_a_folders_name_does_not_reach_the_terminal_raw(tmp_path: Path, paths: Paths) -> None:
    project = tmp_path / "\x1b[2Jproject"
    (project / PROJECT_FILE).parent.mkdir(parents=True)
    (project / PROJECT_FILE).write_text("model = 'openai/x'")
    (line,) = load_settings(paths, project, {}, trust=FolderTrust(project, paths, everything=True)).warnings
    assert line.isprintable()


def test_the_settings_folder_of_the_home_is_no_project(tmp_path: Path) -> None:
    paths = find_paths({"ROLLING_CHAT_HOME": str(tmp_path / ".rolling-chat")})
    paths.config_file.parent.mkdir()
    paths.config_file.write_text("model = 'x'")
    trust = FolderTrust(tmp_path, paths, everything=True)
    assert load_settings(paths, tmp_path, {}, trust=trust).model == "x"
    assert not trust.unread()


def test_the_environment_sets_any_fixed_key(load: Load) -> None:
    settings = load(
        environ={
            "ROLLING_CHAT_MODEL": "4",
            "ROLLING_CHAT_CONTEXT_ENABLED": "true",
            "ROLLING_CHAT_AGENT_TOOLS": '["read_file"]',
            "ROLLING_CHAT_THEME": "",
            "ROLLING_CHAT_HOME": "/somewhere",
            "ROLLING_CHAT_OFFLINE_DELAY": "0.1",
            "ROLLING_STONES": "x",
        }
    )
    assert (settings.model, settings.context.enabled, settings.agent.tools) == ("4", True, ("read_file",))
    assert settings.theme == "midnight"
    assert settings.origins["model"] == "environment"


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("ROLLING_CHAT_CONTEXT_ENABLED", "1", "ROLLING_CHAT_CONTEXT_ENABLED = 1: must be true or false"),
        ("ROLLING_CHAT_MODEL", "\udcff", "ROLLING_CHAT_MODEL"),
    ],
)
def test_a_bad_variable_is_one_line(load: Load, variable: str, value: str, line: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(environ={variable: value})
    assert str(caught.value).startswith("environment: ")
    assert line in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("variable", "line"),
    [
        ("ROLLING_CHAT_MODLE", "ROLLING_CHAT_MODLE is not used; did you mean ROLLING_CHAT_MODEL?"),
        ("ROLLING_CHAT_HOEM", "ROLLING_CHAT_HOEM is not used; did you mean ROLLING_CHAT_HOME?"),
        ("ROLLING_CHAT_XYZZY", "ROLLING_CHAT_XYZZY is not used"),
        ("ROLLING_CHAT_\x1b[2J", "ROLLING_CHAT_␛[2J is not used"),
    ],
)
def test_an_unknown_variable_is_told_and_not_used_and_its_value_is_not_shown(
    load: Load, variable: str, line: str
) -> None:
    settings = load(environ={variable: "sk-secret", "ROLLING_CHAT_MODEL": "x"})
    assert settings.warnings == (f"environment: unknown variable {line}",)
    assert settings == load(environ={"ROLLING_CHAT_MODEL": "x"})


def test_what_is_shown_of_a_value_stays_one_short_line() -> None:
    assert shown("x" * 500) == f'"{"x" * 79}…"'
    assert shown("\x1b[2J\n") == '"␛[2J␊"'
    assert shown(False) == "false"


@pytest.mark.parametrize(
    ("user", "project", "found"),
    [
        ("", "required", "required"),
        ("auto", "off", "auto"),
        ("", "off", "auto"),
        ("off", "auto", "auto"),
        ("required", "auto", "required"),
    ],
)
def test_a_project_can_only_tighten_the_sandbox(
    load: Load, folder: Path, user: str, project: str, found: str
) -> None:
    def table(mode: str) -> str:
        return f"[agent]\nsandbox = {mode!r}" if mode else ""

    for trusted in ("", f"trusted_folders = [{str(folder)!r}]\n"):
        settings = load(user=trusted + table(user), project=table(project))
        assert settings.agent.sandbox == found
    assert load("agent.sandbox=required").agent.sandbox == "required"
