"""Logins to MCP servers: in the keyring where there is one, else in a private file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from rolling_chat.tools.mcp.logins import McpLogins
from tests.cli.test_login import MemoryKeyring, memory

__all__ = ["memory"]

URL, TOKENS = "https://mcp.example.com/mcp", {"tokens": {"access_token": "of-the-user-0123456789"}}


def test_the_keyring_holds_tokens_and_the_file_only_that_there_are_some(
    tmp_path: Path, memory: MemoryKeyring
) -> None:
    logins = McpLogins(tmp_path / "logins.json")
    logins.put(URL, TOKENS)
    assert "of-the-user" not in logins.file.read_text()
    assert logins.has(URL)
    assert logins.get(URL) == TOKENS
    assert logins.forget(URL)
    assert not logins.get(URL)
    assert not memory.stored


def test_without_a_keyring_a_private_file_holds_them(tmp_path: Path) -> None:
    logins = McpLogins(tmp_path / "logins.json")
    logins.put(URL, TOKENS)
    assert stat.S_IMODE(logins.file.stat().st_mode) == 0o600
    assert logins.get(URL) == TOKENS
    assert logins.forget(URL)
    assert not logins.forget(URL)


@pytest.mark.parametrize("text", ["", "[", "[]", '{"https://mcp.example.com/mcp": 7}', "\udcff"])
def test_a_damaged_file_is_no_login(tmp_path: Path, text: str) -> None:
    (tmp_path / "logins.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert not McpLogins(tmp_path / "logins.json").get(URL)
