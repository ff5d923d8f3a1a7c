"""The Python API: what its docstring and the README promise."""

from __future__ import annotations

from pathlib import Path

import pytest

import rolling_chat
from rolling_chat import ChatError, OpenChat, open_chat
from rolling_chat.events import Permission, PermissionAnswer, PermissionRequest, TextAdded
from rolling_chat.settings.errors import SettingsError
from tests.support.program import program_environment


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A home of its own, without a key."""
    return program_environment(tmp_path / "home")


def opened(tmp_path: Path, environ: dict[str, str], **more: object) -> OpenChat:
    return open_chat(**{"model": "demo/offline", "folder": tmp_path, "environ": environ, **more})


async def test_an_answer_has_text_usage_calls_and_the_report_of_its_prompt(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    (tmp_path / "notes.txt").write_text("apples")
    async with opened(tmp_path, environ) as chat:
        answer = await chat.ask("list files")
    assert answer.ok
    assert "notes.txt" in answer.text
    assert [call["name"] for call in answer.tool_calls] == ["list_files"]
    assert answer.usage.input_tokens > 0
    assert answer.report is not None
    assert answer.report.token_count > 0


async def test_a_session_is_resumed_by_its_id(tmp_path: Path, environ: dict[str, str]) -> None:
    async with opened(tmp_path, environ) as chat:
        await chat.ask("The parser lives in lexer.py.")
    async with opened(tmp_path, environ, resume=chat.session_id) as again:
        assert "lexer.py" in (await again.ask("Where does the parser live?")).text


async def test_a_turn_can_be_followed_event_by_event(tmp_path: Path, environ: dict[str, str]) -> None:
    async with opened(tmp_path, environ, save=False) as chat:
        parts = [event.text async for event in chat.send("hello") if isinstance(event, TextAdded)]
    assert len(parts) > 1


async def test_a_tool_that_needs_approval_is_refused_unless_it_is_given(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    async def allow(request: PermissionRequest) -> PermissionAnswer:
        return PermissionAnswer(Permission.ONCE)

    async with opened(tmp_path, environ) as chat:
        assert (await chat.ask("run `touch made`")).tool_calls[0]["ending"] == "refused"
    assert not (tmp_path / "made").exists()
    async with opened(tmp_path, environ, ask=allow) as chat:
        assert (await chat.ask("run `touch made`")).tool_calls[0]["ok"]
    assert (tmp_path / "made").exists()


async def test_settings_of_the_call_win(tmp_path: Path, environ: dict[str, str]) -> None:
    async with opened(tmp_path, environ, settings={"context.enabled": True, "agent.tools": "none"}) as chat:
        assert chat.chat.session.rolling
        assert not (await chat.ask("list files")).tool_calls


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"model": ""}, ChatError),
        ({"resume": "zz"}, ChatError),
        ({"settings": {"context.trim_to": 7}}, SettingsError),
    ],
)
def test_what_is_wrong_is_an_error_of_one_line(
    tmp_path: Path, environ: dict[str, str], more: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        opened(tmp_path, environ, **more)
    assert "\n" not in str(caught.value)


async def test_a_turn_that_fails_is_an_answer_with_one_line(tmp_path: Path, environ: dict[str, str]) -> None:
    async with opened(tmp_path, environ, model="openai/gpt-4.1") as chat:
        answer = await chat.ask("hello")
    assert not answer.ok
    assert "OPENAI_API_KEY" in answer.error
    assert "\n" not in answer.error


def test_no_other_name_is_promised() -> None:
    with pytest.raises(AttributeError):
        _ = rolling_chat.nothing
