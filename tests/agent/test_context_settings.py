"""The switch of rolling context: what it saves for new sessions, and what wins over that."""

from __future__ import annotations

import pytest

from rolling_chat.agent import Chat, Runtime
from rolling_chat.settings.load import load_settings
from tests.support.agent import Opened, collect, says


def _started_again(runtime: Runtime, *overrides: str, **environ: str) -> bool:
    """Is a new session of a later start rolling?"""
    runtime.settings = load_settings(runtime.paths, runtime.folder, environ, overrides)
    return Chat.open(runtime, model="openai/scripted").session.rolling


@pytest.mark.parametrize("by", ["switch", "set"])
async def test_the_switch_is_the_preference_of_new_sessions(opened: Opened, by: str) -> None:
    chat, runtime, _ = opened(says("ok"))
    for on in (True, False):
        if by == "switch":
            assert chat.session.overrides.set_rolling(on) == ""
        else:
            chat.session.overrides.set("enabled", str(on).lower())
        await collect(chat.send("hi"))
        chat.start_new()
        assert chat.session.rolling is on
        assert _started_again(runtime) is on


async def test_switching_to_what_a_resumed_session_has_already_is_saved_as_well(opened: Opened) -> None:
    chat, runtime, _ = opened(says("ok"))
    await collect(chat.send("hi"))
    first = chat.session.info.id
    chat.start_new()
    chat.session.overrides.set_rolling(True)
    chat.resume(first)
    assert not chat.session.rolling
    chat.session.overrides.set_rolling(False)
    assert _started_again(runtime) is False


async def test_a_resumed_session_has_its_own_state(opened: Opened) -> None:
    chat, runtime, _ = opened(says("ok"))
    await collect(chat.send("hi"))
    first = chat.session.info.id
    chat.start_new()
    chat.session.overrides.set_rolling(True)
    assert not Chat.open(runtime, session=runtime.store.session(first)).session.rolling


async def test_the_command_line_and_the_environment_win(opened: Opened) -> None:
    chat, runtime, _ = opened(says("ok"))
    chat.session.overrides.set_rolling(True)
    assert _started_again(runtime, "context.enabled=false") is False
    assert _started_again(runtime, ROLLING_CHAT_CONTEXT_ENABLED="false") is False
    line = Chat.open(runtime, model="openai/scripted").session.overrides.set_rolling(True)
    assert line == "New sessions here go by context.enabled of environment."


async def test_undo_takes_the_preference_back(opened: Opened) -> None:
    chat, runtime, _ = opened(says("ok"))
    chat.session.overrides.set_rolling(True)
    assert chat.session.overrides.undo() == "Undone: rolling context is off again."
    assert _started_again(runtime) is False


async def test_a_preference_that_cannot_be_saved_is_one_line_and_counts_for_this_run(opened: Opened) -> None:
    chat, runtime, _ = opened(says("ok"))
    runtime.paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    runtime.paths.config_file.write_text("theme = \n")
    line = chat.session.overrides.set_rolling(True)
    assert line.startswith("Not saved for new sessions: ")
    assert "\n" not in line
    assert chat.session.rolling
    assert runtime.paths.config_file.read_text() == "theme = \n"
