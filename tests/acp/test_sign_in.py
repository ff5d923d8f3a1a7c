"""A missing key is one clear error with what to do, and a client may help its user to one."""

from __future__ import annotations

from pathlib import Path

import pytest
from acp import RequestError
from acp.helpers import text_block
from acp.schema import AuthCapabilities, ClientCapabilities

from tests.acp.conftest import Start
from tests.support.program import Program, program

__all__ = ["program"]

_NO_KEY = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}
_TERMINAL = ClientCapabilities(auth=AuthCapabilities(terminal=True))


async def test_without_a_key_a_new_session_wants_one_and_says_how(start: Start, tmp_path: Path) -> None:
    async with start(model="", **_NO_KEY) as client:
        with pytest.raises(RequestError) as error:
            await client.new(tmp_path)
        assert error.value.code == -32000
        assert "ANTHROPIC_API_KEY" in str(error.value)
        assert "rolling-chat login" in str(error.value)
        assert not (await client.agent.list_sessions()).sessions


async def test_a_model_without_its_key_says_which(start: Start, tmp_path: Path) -> None:
    async with start(model="anthropic/claude-sonnet-4-5", **_NO_KEY) as client:
        with pytest.raises(RequestError) as error:
            await client.new(tmp_path)
        assert error.value.code == -32000
        assert str(error.value).startswith("No key for anthropic: set ANTHROPIC_API_KEY")


async def test_a_session_of_a_model_without_a_key_can_be_read_and_not_gone_on_with(
    start: Start, folder: Path, tmp_path: Path
) -> None:
    async with start() as client:
        session = await client.new(folder)
        await client.agent.prompt(session_id=session, prompt=[text_block("said before")])
    async with start(**_NO_KEY) as client:
        with pytest.raises(RequestError, match="OPENAI_API_KEY"):
            await client.new(folder)
        # the address of the session is the server's, which may need no key: nobody asks for one there
        await client.agent.load_session(cwd=str(folder), session_id=session)
        assert client.editor.text(kind="user_message_chunk") == "said before"


async def test_the_ways_to_a_key_are_variables_and_a_terminal_for_who_has_one(start: Start) -> None:
    async with start(OPENAI_API_KEY="sk-1") as client:
        assert client.initialized is not None
        methods = {one.id: one for one in client.initialized.auth_methods or []}
        assert "login" not in methods
        assert [one.name for one in methods["key-anthropic"].vars] == ["ANTHROPIC_API_KEY"]
        await client.agent.authenticate(method_id="key-openai")
        with pytest.raises(RequestError, match="ANTHROPIC_API_KEY is not set") as error:
            await client.agent.authenticate(method_id="key-anthropic")
        assert error.value.code == -32000
        with pytest.raises(RequestError, match="no method"):
            await client.agent.authenticate(method_id="what")
    async with start(capabilities=_TERMINAL) as client:
        assert client.initialized is not None
        first = (client.initialized.auth_methods or [])[0]
        assert (first.id, first.type, first.args) == ("login", "terminal", ["--login"])


def test_without_the_extra_it_says_what_to_install(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rolling_chat.cli.acp.find_spec", lambda _: None)
    ran = program("acp")
    assert (ran.code, ran.out) == (2, "")
    assert "pip install 'rolling-chat[acp]'" in ran.err


def test_the_login_of_a_client_s_terminal_lists_and_refuses_in_one_line(program: Program) -> None:
    assert "No key is stored" in program("acp", "--login").out
    ran = program("acp", "--login", "nobody")
    assert ran.code == 2
    assert "anthropic" in ran.err
