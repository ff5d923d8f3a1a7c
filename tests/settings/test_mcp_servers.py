"""Where MCP servers come from, and what of a project is read only when it is trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rolling_chat.settings.load import load_settings
from rolling_chat.settings.mcp_servers import (
    McpConfigError,
    McpServerConfig,
    McpServerConfigs,
    parse_mcp_json,
    read_mcp_servers,
)
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.project_files import FileKind
from rolling_chat.settings.trust import FolderTrust

TOML = """
[mcp.servers.files]
command = "from-settings"
args = ["-y", "${NAME:-x}"]
env = { A = "b" }

[mcp.servers.tracker]
url = "https://mcp.example.com/mcp"
headers = { Authorization = "Bearer ${TOKEN}" }
enabled = false
"""


def read(
    tmp_path: Path, *, toml: str = "", own: object = None, project: object = None, trusts: bool = False
) -> McpServerConfigs:
    home, folder = tmp_path / "home", tmp_path / "work"
    for path in (home, folder):
        path.mkdir(exist_ok=True)
    (home / "config.toml").write_text(toml)
    if own is not None:
        (home / "mcp.json").write_text(json.dumps(own))
    if project is not None:
        (folder / ".mcp.json").write_text(json.dumps(project))
    paths = find_paths({"ROLLING_CHAT_HOME": str(home), "HOME": str(tmp_path)})
    trust = FolderTrust(folder, paths)
    if trusts:
        trust.trust(trust.undecided())
    settings = load_settings(paths, folder, {}, trust=trust)
    return read_mcp_servers(settings, paths, trust)


def listed(**servers: object) -> dict[str, object]:
    return {"mcpServers": servers}


def test_settings_name_programs_and_addresses(tmp_path: Path) -> None:
    servers = read(tmp_path, toml=TOML).servers
    files, tracker = servers["files"].expanded({}), servers["tracker"].expanded({"TOKEN": "t"})
    assert (files.command, files.args, dict(files.env), files.enabled) == (
        "from-settings",
        ("-y", "x"),
        {"A": "b"},
        True,
    )
    assert tracker.is_http
    assert not tracker.enabled
    assert dict(tracker.headers) == {"Authorization": "Bearer t"}


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(McpConfigError, match="the variable TOKEN is not set"):
        McpServerConfig("x", url="https://x/", headers={"A": "${TOKEN}"}).expanded({})
    with pytest.raises(McpConfigError, match="is no address"):
        McpServerConfig("x", url="${URL}").expanded({"URL": "file:///etc/passwd"})


def test_a_project_has_servers_once_exactly_what_it_says_is_trusted(tmp_path: Path) -> None:
    project = listed(files={"command": "theirs"}, more={"command": "theirs"})
    assert not read(tmp_path, project=project).servers
    trusted = read(tmp_path, toml=TOML, project=project, trusts=True).servers
    assert trusted["more"].command == "theirs"
    assert trusted["files"].command == "from-settings"
    changed = listed(more={"command": "rm", "args": ["-rf", "/"]})
    assert "more" not in read(tmp_path, project=changed).servers


def test_a_projects_own_settings_have_no_servers(tmp_path: Path) -> None:
    folder = tmp_path / "work" / ".rolling-chat"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(TOML)
    assert not read(tmp_path, trusts=True).servers


def test_what_other_programs_write_is_understood() -> None:
    data = listed(
        a={"type": "stdio", "command": "x", "args": ["y"], "env": {"K": "v"}, "alwaysAllow": ["z"]},
        b={"type": "http", "url": "https://b/mcp"},
        c={"httpUrl": "https://c/mcp"},
        d={"serverUrl": "https://d/mcp", "disabled": True},
    )
    servers, faults = parse_mcp_json(json.dumps(data).encode(), "f")
    assert not faults
    assert [(one.name, one.is_http, one.enabled) for one in servers] == [
        ("a", False, True), ("b", True, True), ("c", True, True), ("d", True, False)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({}, "has neither a command nor a url"),
        ({"command": "x", "url": "https://x"}, "has both"),
        ({"type": "sse", "url": "https://x"}, "old type sse"),
        ({"command": 7}, "command must be text"),
        ({"command": "x\0y"}, "command must be text"),
        ({"command": "x", "args": "y"}, "args must be a list"),
        ({"command": "x", "env": {"A": 1}}, "env must be text"),
        ("x", "must be an object"),
    ],
)
def test_what_is_wrong_with_a_server_is_one_line_and_harms_no_other(entry: object, why: str) -> None:
    servers, (fault,) = parse_mcp_json(json.dumps(listed(bad=entry, good={"command": "x"})).encode(), "file")
    assert [one.name for one in servers] == ["good"]
    assert fault.startswith("file: ")
    assert why in fault


@pytest.mark.parametrize("data", [b"", b"[", b"[]", b'{"mcpServers": 1}', b"[" * 100_000])
def test_a_file_that_is_none_is_one_line(data: bytes) -> None:
    servers, faults = parse_mcp_json(data, "file")
    assert not servers
    assert len(faults) == 1


def test_the_kind_of_file_is_trusted_by_its_content() -> None:
    assert FileKind.MCP_SERVERS.by_content
