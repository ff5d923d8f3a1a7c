"""A message too large by itself: what is in the way, what is sent instead, and that nothing is lost."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rolling_chat.agent import Chat, ChatError, Runtime
from rolling_chat.agent.retention import delete_old_sessions
from rolling_chat.agent.turn.oversized import LargeMessage
from rolling_chat.cli import run
from rolling_chat.events import Event, Outcome, ToolEnded
from rolling_chat.messages import Ending
from rolling_chat.providers.protocol import ErrorKind, ProviderError
from tests.support.agent import Opened, ScriptedProvider, call, calls, collect, make_runtime, of_kind, says

LINES = [f"line {number} of the log: request {number * 7} answered\n" for number in range(3_000)]
LOG = "Why does it fail?\n" + "".join(LINES)
WINDOW = 8_000


def _outcome(events: list[Event]) -> Outcome:
    return events[-1].outcome


async def _too_large(chat: Chat, text: str = LOG) -> LargeMessage:
    assert _outcome(await collect(chat.send(text))) is Outcome.FULL
    large = (await chat.session.oversized.find_obstacle()).message
    assert large is not None
    return large


def _file_in(text: str) -> Path:
    (path,) = re.findall(r"is in the file (.*?\.txt)", text)
    return Path(path)


@pytest.mark.parametrize("rolling", [False, True])
async def test_the_message_is_in_the_way_whatever_stands_before_it(opened: Opened, rolling: bool) -> None:
    chat, *_ = opened(says("Hello. " * 50), window=WINDOW)
    chat.session.overrides.set_rolling(rolling)
    await collect(chat.send("hello"))
    large = await _too_large(chat)
    assert large.room < WINDOW < large.tokens


@pytest.mark.parametrize("head_and_tail", [True, False])
async def test_what_is_sent_in_its_place_fits_and_names_a_private_file_with_all_of_it(
    opened: Opened, head_and_tail: bool
) -> None:
    chat, _, provider = opened(says("I see."), window=WINDOW)
    large = await _too_large(chat)
    text = await chat.session.oversized.keep_as_file(large, head_and_tail=head_and_tail)
    assert not chat.session.messages
    assert _outcome(await collect(chat.send(text))) is Outcome.DONE
    assert provider.requests[-1].messages[-1].text == text
    assert text.startswith("Why does it fail?\n")
    assert (LINES[-1] in text, "[truncated: kept first+last" in text) == (head_and_tail, head_and_tail)
    file = _file_in(text)
    assert file.read_text() == LOG
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_the_model_reads_that_file_in_pieces_and_no_other_of_the_kind(opened: Opened) -> None:
    chat, runtime, provider = opened(says("never"), window=WINDOW)
    path = _file_in(await chat.session.oversized.keep_as_file(await _too_large(chat), head_and_tail=False))
    other = path.with_name("message-2.txt")
    other.write_text("of another conversation")
    (path.parent / "link.txt").symlink_to(other)
    wanted = [
        {"path": str(path), "start": 2, "end": 3},
        {"path": str(other)},
        {"path": f"{path.parent}/../{path.parent.name}/{path.name}"},
        {"path": str(path.parent)},
        {"path": str(runtime.paths.database)},
    ]
    made = [call("read_file", json.dumps(arguments), f"c{n}") for n, arguments in enumerate(wanted)]
    provider.scripts[:] = [calls(*made), says("I see.")]
    events = await collect(chat.send(f"It is in the file {path}"))
    results = [ended.message for ended in of_kind(events, ToolEnded)]
    assert results[0].text.endswith("".join(LINES[:2]))
    assert results[0].ending is Ending.COMPLETE
    assert all("outside the working folder" in result.text for result in results[1:])


async def test_the_message_itself_stays_in_the_session(opened: Opened) -> None:
    chat, *_ = opened(says("I see."), window=WINDOW)
    large = await _too_large(chat)
    await collect(chat.send(await chat.session.oversized.keep_as_file(large, head_and_tail=True)))
    (left,) = chat.session.history.branches()
    assert chat.session.history.go_to(left.head)
    assert [message.text for message in chat.session.messages] == [LOG]


async def test_a_line_too_long_to_be_read_is_broken_in_the_file(opened: Opened) -> None:
    chat, *_ = opened(says("never"), window=WINDOW)
    text = await chat.session.oversized.keep_as_file(
        await _too_large(chat, "x7 " * 20_000), head_and_tail=False
    )
    lines = _file_in(text).read_text().split("\n")
    assert "".join(lines) == "x7 " * 20_000
    assert max(map(len, lines)) == 2_000


async def test_without_history_a_refusal_that_gives_no_reason_is_about_the_message(opened: Opened) -> None:
    refusal = [ProviderError(ErrorKind.TOO_LONG, "too long")]
    chat, *_ = opened(refusal, window=200_000)
    large = await _too_large(chat)
    assert large.room < large.tokens < 200_000


async def test_nothing_is_taken_back_when_the_file_cannot_be_written(opened: Opened) -> None:
    chat, runtime, _ = opened(says("never"), window=WINDOW)
    large = await _too_large(chat)
    runtime.paths.attachments_dir.write_text("in the way")
    with pytest.raises(ChatError):
        await chat.session.oversized.keep_as_file(large, head_and_tail=True)
    assert [message.text for message in chat.session.messages] == [LOG]


async def test_a_session_that_is_not_saved_leaves_no_file_where_sessions_are(tmp_path: Path) -> None:
    runtime = make_runtime(tmp_path, ScriptedProvider(says("I see.")), window=WINDOW)
    runtime.save = False
    chat = Chat.open(runtime)
    file = _file_in(await chat.session.oversized.keep_as_file(await _too_large(chat), head_and_tail=True))
    assert file.read_text() == LOG
    assert not runtime.paths.attachments_dir.exists()
    chat.close()
    assert not file.exists()
    runtime.store.close()


async def test_the_file_goes_with_its_session_but_not_while_a_fork_names_it(opened: Opened) -> None:
    chat, runtime, _ = opened(says("I see."), window=WINDOW)
    text = await chat.session.oversized.keep_as_file(await _too_large(chat), head_and_tail=False)
    await collect(chat.send(text))
    first = chat.session.info.id
    chat.fork()
    second = chat.session.info.id
    chat.start_new()
    _delete(runtime, spare=second)
    assert _file_in(text).exists()
    _delete(runtime)
    assert {info.id for info in runtime.store.sessions()}.isdisjoint({first, second})


async def test_the_file_of_a_session_is_deleted_with_it(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, runtime, _ = opened(says("I see."), window=WINDOW)
    text = await chat.session.oversized.keep_as_file(await _too_large(chat), head_and_tail=False)
    await collect(chat.send(text))
    chat.close()
    monkeypatch.setenv("ROLLING_CHAT_HOME", str(runtime.paths.data_dir))
    assert run(["sessions", "delete", chat.session.info.id, "--yes"]) == 0
    assert not _file_in(text).exists()


def _delete(runtime: Runtime, spare: str = "") -> None:
    later = runtime.clock() + 10 * 24 * 60 * 60
    delete_old_sessions(runtime.store, 1, later, runtime.paths.attachments_dir, spare=spare)
