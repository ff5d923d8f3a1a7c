"""API keys in the keyring: stored by a command, used where the environment has none, never in a file."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError

from tests.support.program import Program
from tests.support.servers import OpenAIServer, Reply

KEY = "sk-of-the-keyring-0123456789"


class MemoryKeyring(KeyringBackend):
    """A keyring in memory; a locked one refuses."""

    # as a class the last choice: keyring takes the best of all that are imported, in every later test
    priority = -1

    def __init__(self) -> None:
        super().__init__()
        self.priority = 1
        self.stored: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._require_open()
        return self.stored.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._require_open()
        self.stored[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.stored.pop((service, username), None) is None:
            raise PasswordDeleteError("not there")

    def _require_open(self) -> None:
        if self.is_locked:
            raise KeyringLocked("the collection is locked")


@pytest.fixture
def memory() -> Iterator[MemoryKeyring]:
    """The keyring of this process, in memory."""
    before, backend = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


def login(program: Program, monkeypatch: pytest.MonkeyPatch, provider: str = "openai", key: str = KEY) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{key}\n"))
    try:
        return program("login", provider).code
    finally:
        monkeypatch.setattr(sys, "stdin", None)


def files_with(text: str, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_stored_key_is_sent_to_its_provider_and_stands_in_no_file(
    program: Program, memory: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert login(program, monkeypatch) == 0
    assert program("login").out == "openai\n"
    with OpenAIServer((Reply("Hello."),), key=KEY, models=("one",)).in_thread() as server:
        ran = program("-p", "hi", "--model", "openai/one", "--api-base", server.api_base)
    assert (ran.code, ran.out) == (0, "Hello.\n")
    assert memory.stored == {("rolling-chat", "openai"): KEY}
    assert files_with(KEY, program.home) == []


def test_a_key_in_the_environment_wins(
    program: Program, memory: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    login(program, monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    with OpenAIServer((Reply("Hello."),), key="sk-of-the-environment", models=("one",)).in_thread() as server:
        assert program("-p", "hi", "--model", "openai/one", "--api-base", server.api_base).code == 0


def test_a_stored_key_chooses_the_model_and_the_line_says_so(
    program: Program, memory: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    login(program, monkeypatch, "groq")
    monkeypatch.delenv("ROLLING_CHAT_MODEL")
    assert "groq/openai/gpt-oss-120b (from the key of groq in the keyring)" in program("doctor").out


def test_commands_of_the_model_do_not_get_it(
    program: Program, memory: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    login(program, monkeypatch)
    ran = program("-p", "run `env`", "--approvals", "all", "--output-format", "stream-json")
    assert "tool_result" in ran.out
    assert KEY not in ran.out


def test_logout_takes_it_out(
    program: Program, memory: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    login(program, monkeypatch)
    assert program("logout", "openai").code == 0
    assert not memory.stored
    assert "No key is stored" in program("login").out
    assert "no key of openai is stored" in program("logout", "openai").err


def test_one_that_somebody_else_took_out_can_be_logged_out(
    program: Program, memory: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    login(program, monkeypatch)
    memory.stored.clear()
    assert program("logout", "openai").code == 0


def test_a_locked_keyring_is_one_line_and_stops_nothing_that_needs_no_key(
    program: Program, memory: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    login(program, monkeypatch)
    memory.is_locked = True
    assert login(program, monkeypatch) == 1
    ran = program("-p", "hello")
    assert ran.code == 0
    assert "The stored key of openai was not read: KeyringLocked: the collection is locked." in ran.err


@pytest.mark.parametrize("key", ["", "   ", "two words", "sk-\x1b[31m", "schlüssel", "x" * 10_001])
def test_what_is_no_key_is_not_stored(
    program: Program, memory: MemoryKeyring, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    assert login(program, monkeypatch, key=key) == 2
    assert not memory.stored


@pytest.mark.parametrize("provider", ["nobody", "bedrock", "ollama"])
def test_a_provider_without_one_key_is_refused_with_those_that_have_one(
    program: Program, memory: MemoryKeyring, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    assert login(program, monkeypatch, provider) == 2
    assert not memory.stored


def test_without_the_package_the_line_says_how_to_get_it(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    monkeypatch.setattr(sys, "stdin", io.StringIO(KEY))
    ran = program("login", "openai")
    assert ran.code == 1
    assert "pip install 'rolling-chat[keyring]'" in ran.err


def test_no_keyring_is_imported_where_nothing_is_stored(program: Program) -> None:
    (program.folder / "look.py").write_text(
        "import sys; from rolling_chat.cli import run; run(['-p', 'hello']); print('keyring' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "look.py"], cwd=program.folder, env=program.environ, capture_output=True, check=True
    )
    assert ran.stdout.decode().splitlines()[-1] == "False"
