"""Every command against a real chat."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rolling_chat.agent import Chat
from rolling_chat.commands import parse, run_command
from rolling_chat.commands.context import category_table, message_table
from tests.support.commands import PlainContext
from tests.support.tui import MODEL, calls, make_chat, says


async def _run(context: PlainContext, line: str, *, busy: bool = False) -> None:
    parsed = parse(line)
    assert parsed is not None
    await run_command(parsed, context, busy=busy)


async def _say(chat: Chat, text: str) -> None:
    events: AsyncIterator[object] = chat.send(text)
    async for _ in events:
        pass


async def test_rolling_context_alone_toggles_and_says_which_it_is_now(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    await _run(context, "/rolling-context")
    assert context.chat.session.rolling
    assert context.said[-1].startswith("Rolling context is on")
    await _run(context, "/rolling-context")
    assert not context.chat.session.rolling
    assert context.said[-1].startswith("Rolling context is off")
    assert "once it is on, history may take" in context.said[-1]
    assert context.done == ["report", "report"]


async def test_on_and_status_say_what_the_cap_is_beside_the_window(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path, window=200_000))
    await _run(context, "/rolling-context on")
    await _run(context, "/rolling-context status")
    assert context.said[0] == f"{context.said[1]} New sessions begin with it on."
    assert "history may take 20k of 200k tokens, 10 % of the window" in context.said[0]
    assert "/rolling-context set max_history_tokens 0 gives it the whole window" in context.said[0]
    assert "nothing is left out now" in context.said[0]
    assert "\n" not in context.said[0]


async def test_where_history_has_the_whole_window_no_setting_is_offered(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path, window=8192))
    await _run(context, "/rolling-context on")
    assert "max_history_tokens" not in context.said[0]


async def test_status_changes_nothing_and_nonsense_is_refused(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    await _run(context, "/rolling-context status")
    await _run(context, "/rolling-context perhaps")
    assert not context.chat.session.rolling
    assert context.warned == ["/rolling-context takes on, off, status, preview, set or undo, not 'perhaps'."]


async def test_context_shows_categories_that_add_up_to_the_window(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("hello"), window=8192)
    await _say(chat, "hi")
    context = PlainContext(chat)
    await _run(context, "/context")
    assert context.inspected is not None
    sizes = [int(row[1].replace(",", "")) for row in context.inspected.tables[0].rows]
    assert sum(sizes) == 8192


async def test_context_lists_every_message_newest_first(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("of course"))
    await _say(chat, "do you?")
    rows = message_table(chat.session.preview.report().rows, chat.session.messages).rows
    assert [row[-1] for row in rows][:2] == ["of course", "do you?"]
    assert {row[3] for row in rows} == {"sent"}


async def test_context_says_beside_each_category_what_makes_it_smaller(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("of course"))
    await _say(chat, "do you?")
    said = {row[0]: row[-1] for row in category_table(chat.session.preview.report()).rows}
    assert said["history"] == "/rolling-context on"
    assert said["reserve for the answer"] == "/rolling-context set reserved_output_tokens"
    assert said["draft"] == said["summary"] == said["free"] == "", "there is nothing to make smaller"
    chat.session.overrides.set_rolling(True)
    assert "/compact" in {row[-1] for row in category_table(chat.session.preview.report()).rows}
    context = PlainContext(chat)
    for line in (f"{said['reserve for the answer']} 1000", f"{said['safety margin']} 0.05", said["history"]):
        before = chat.session.preview.report()
        await _run(context, line)
        after = chat.session.preview.report()
        assert context.warned == []
        assert (after.reserve + after.margin < before.reserve + before.margin) or after.rolling


async def test_model_by_name_and_an_unknown_one(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    await _run(context, "/model demo/offline")
    assert context.chat.session.model == "demo/offline"
    await _run(context, "/model no-such-thing/at-all")
    assert context.chat.session.model == "demo/offline"
    assert len(context.warned) == 1


async def test_the_model_in_force_is_offered_by_the_name_it_goes_by(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path), picks=[None])
    reachable = context.chat.model_names()
    assert MODEL not in reachable
    await _run(context, "/model")
    offered = [choice.value for choice in context.offered]
    assert offered[0] == MODEL
    assert [name for name in offered if name in reachable] == reachable
    assert {choice.value: choice.note for choice in context.offered}["demo/offline"] == (
        "8.2k · $0.00 in, $0.00 out · built in"
    )


async def test_model_alone_offers_what_there_is_and_esc_changes_nothing(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path), picks=[None])
    await _run(context, "/model")
    assert "demo/offline" in [choice.value for choice in context.offered]
    assert context.chat.session.model == MODEL
    assert context.said == []


async def test_new_begins_again_and_says_how_to_come_back(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("hello"))
    await _say(chat, "hi")
    before = chat.session.info.id
    context = PlainContext(chat)
    await _run(context, "/new")
    assert chat.session.info.id != before
    assert list(chat.session.messages) == []
    assert f"rolling-chat --resume {before[-8:]}" in context.said[-1]


@pytest.mark.parametrize("command", ["/sessions", "/resume"])
async def test_sessions_are_picked_by_title(tmp_path: Path, command: str) -> None:
    chat = make_chat(tmp_path, says("hello"))
    await _say(chat, "the first of them")
    first = chat.session.info.id
    context = PlainContext(chat, picks=[first])
    await _run(context, "/new")
    await _run(context, command)
    assert [choice.label for choice in context.offered] == ["the first of them"]
    assert chat.session.info.id == first


@pytest.mark.parametrize("its_model", ["", "demo/offline-32k"])
async def test_a_resumed_session_keeps_its_model_and_one_without_takes_the_one_that_answers(
    tmp_path: Path, its_model: str
) -> None:
    chat = make_chat(tmp_path, says("hello"))
    chat.session.set_model("demo/offline")
    other = chat._runtime.store.create_session(folder=str(tmp_path), model=its_model, rolling=False)
    context = PlainContext(chat)
    await _run(context, f"/resume {other.id}")
    assert chat.session.info.id == other.id
    assert chat.session.model == (its_model or "demo/offline")
    assert [line for line in context.said if its_model in line] == context.said
    assert len(context.said) == bool(its_model)


async def test_sessions_are_narrowed_by_words(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("hello"))
    await _say(chat, "about tabs")
    context = PlainContext(chat)
    await _run(context, "/sessions spaces")
    assert context.said == ["No saved session matches."]


async def test_fork_goes_on_in_a_copy(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("hello"))
    await _say(chat, "hi")
    before = chat.session.info.id
    context = PlainContext(chat)
    await _run(context, "/fork")
    assert chat.session.info.id != before
    assert [message.text for message in chat.session.messages] == ["hi", "hello"]


async def test_copy_without_an_answer_says_so(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    await _run(context, "/copy")
    assert context.said == ["There is no answer to copy yet."]
    assert context.copied == ""


async def test_theme_by_name_and_an_unknown_one(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    await _run(context, "/theme daylight")
    assert context.theme_name == "daylight"
    await _run(context, "/theme nightfall")
    assert context.warned == ["There is no theme 'nightfall'; there are midnight, daylight."]


async def test_help_and_quit(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    await _run(context, "/help")
    await _run(context, "/quit")
    assert context.done == ["help", "quit"]


async def test_what_leaves_the_session_waits_while_the_model_works(tmp_path: Path) -> None:
    context = PlainContext(make_chat(tmp_path))
    await _run(context, "/new", busy=True)
    assert context.warned == ["/new waits until the answer is complete; esc stops it."]


async def test_recall_opens_a_message_whole_by_its_id(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("The heron is grey."))
    await _say(chat, "Which color?")
    context = PlainContext(chat)
    await _run(context, "/recall r2")
    await _run(context, "/recall [recall: r1]")
    assert context.shown == [("r2 · assistant", "The heron is grey."), ("r1 · user", "Which color?")]


async def test_recall_finds_by_words_and_lets_choose(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("The heron is grey."))
    await _say(chat, "Which color?")
    context = PlainContext(chat, picks=["2", None])
    await _run(context, "/recall grey herons")
    await _run(context, "/recall heron")
    assert [choice.note for choice in context.offered] == ["The heron is grey."]
    assert [title for title, _ in context.shown] == ["r2 · assistant"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/recall", "/recall takes an id (r1 to r2"),
        ("/recall r9", "There is no r9: this session has r1 to r2."),
        ("/recall zebra", "Nothing in this session holds 'zebra'."),
        ("/files", "No file was read or written"),
    ],
)
async def test_what_is_not_there_is_said_in_a_line(tmp_path: Path, line: str, said: str) -> None:
    chat = make_chat(tmp_path, says("hello"))
    await _say(chat, "hi")
    context = PlainContext(chat)
    await _run(context, line)
    assert said in "".join((*context.said, *context.warned))
    assert not context.shown


async def test_files_are_listed_with_what_became_of_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    chat = make_chat(tmp_path, calls("read_file", path="a.txt"), says("ok"), folder=tmp_path)
    await _say(chat, "read it")
    (tmp_path / "a.txt").write_text("two")
    context = PlainContext(chat)
    await _run(context, "/files")
    (table,) = context.tables
    assert table.rows == (("just now", "read", "1", "changed since", "a.txt"),)
    assert "in all sessions: 0 B, at most 500 MB" in context.said[-1]
