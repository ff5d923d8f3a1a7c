"""Conversations from elsewhere: kept as they came, made fit for a model only in the prompt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.agent.importing import Imported, import_transcript
from rolling_chat.events import Outcome
from rolling_chat.replay import read_transcripts
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import StoreError
from rolling_chat.sessions.store import SessionStore
from tests.support.agent import Opened, collect, says
from tests.support.prompt_rules import broken_rules

WILD: list[dict[str, Any]] = [
    {"role": "assistant", "content": "I begin"},
    {"role": "system", "content": "You are somebody else"},
    {"role": "critic", "content": "hm"},
    {"role": "tool", "tool_call_id": "nobody", "content": "an orphan"},
    {"role": "user", "content": 17},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{broken"}},
    ]},
    {"role": "tool", "tool_call_id": "a", "content": ""},
    {"role": "user", "content": [{"type": "text", "text": "look"}, "bare"]},
    {"role": "user", "content": ""},
]  # fmt: skip


def imported(store: SessionStore, folder: Path, value: object) -> Imported:
    path = folder / "talk.json"
    path.write_text(json.dumps(value))
    (talk,) = read_transcripts(path)
    return import_transcript(store, talk, "/work", rolling=False)


async def test_what_no_model_would_take_is_kept_and_the_session_goes_on(
    opened: Opened, tmp_path: Path
) -> None:
    chat, runtime, provider = opened(says("yes"))
    done = imported(runtime.store, tmp_path, WILD)
    assert done.is_new
    assert done.oddities == {
        "fields of the wrong type": 3, "unknown roles": 1,
        "results without a call": 1, "calls without a result": 1,
    }  # fmt: skip
    kept = runtime.store.branch(done.info.id)
    assert [message.role for message in kept] == [message["role"] for message in WILD]
    assert [message.text for message in kept][:5] == [
        "I begin",
        "You are somebody else",
        "hm",
        "an orphan",
        "17",
    ]
    chat.resume(done.info.id)
    assert [m.id for m in chat.session.messages[: len(kept)]] == [m.id for m in kept]
    assert (await collect(chat.send("and now?")))[-1].outcome is Outcome.DONE
    assert broken_rules(provider.wire_form(provider.requests[-1])) == []


def test_the_same_conversation_is_imported_once(tmp_path: Path) -> None:
    store = open_store(None)
    first = imported(store, tmp_path, WILD)
    again = imported(store, tmp_path, WILD)
    assert (again.is_new, again.info.id) == (False, first.info.id)
    assert imported(store, tmp_path, WILD[:-1]).is_new
    assert len(store.sessions()) == 2


def test_titles_are_given_or_found(tmp_path: Path) -> None:
    store = open_store(None)
    talk = [{"role": "user", "content": "hello"}, {"role": "user", "content": "# Where is it?"}]
    found = imported(store, tmp_path, talk).info
    assert (found.title, found.title_given) == ("hello", False)
    given = imported(store, tmp_path, {"title": "mine", "messages": talk[1:]}).info
    assert (given.title, given.title_given) == ("mine", True)
    assert imported(store, tmp_path, {"messages": []}).info is None


def test_of_an_import_that_breaks_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rolling_chat.agent.importing._AT_A_TIME", 10)
    store = open_store(None)
    whole, taken = store.append_all, []

    def fill_up(session: str, messages: object) -> None:
        if len(taken) == 3:
            raise StoreError("the disk is full")
        taken.append(session)
        whole(session, messages)

    monkeypatch.setattr(store, "append_all", fill_up)
    with pytest.raises(StoreError, match="full"):
        imported(store, tmp_path, [{"role": "user", "content": f"line {n}"} for n in range(100)])
    assert store.sessions() == []
    assert store.search("line") == []
