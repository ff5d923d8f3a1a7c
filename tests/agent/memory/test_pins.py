"""Pins and exclusions of a session: named, priced, made, taken back, and kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from rolling_chat.agent import Chat, ChatError, PinChange, PinPrice, Runtime
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.context import Fate
from rolling_chat.context.pins import EXCLUDED_RESULT
from rolling_chat.messages import Message
from rolling_chat.providers.protocol import Request
from tests.support.agent import (
    Opened,
    Script,
    ScriptedProvider,
    assert_well_formed,
    call,
    calls,
    collect,
    make_runtime,
    says,
)

PAGE = "a line of output that says very little\n" * 40


def contents(request: Request) -> list[str]:
    """What a request says after the system message, calls by their names."""
    return [
        message.text or ",".join(one.name for one in message.tool_calls) for message in request.messages[1:]
    ]


def fates(chat: Chat) -> list[str]:
    return [row.fate.value for row in chat.session.preview.report().rows][1:]


def make(chat: Chat, line: str) -> PinPrice:
    """`exclude r3`, as the commands have it."""
    change, _, words = line.partition(" ")
    return chat.session.pins.make(PinChange(change), words)


async def worked(chat: Chat, runtime: Runtime) -> None:
    """r1 request, r2 calls two tools, r3 and r4 their results, r5 answer; r6 request, r7 answer."""
    (runtime.folder / "notes.txt").write_text("the port is 8443\n" * 20)
    await collect(chat.send("look"))
    await collect(chat.send("and now?"))
    assert [message.role for message in chat.session.messages] == [
        "user", "assistant", "tool", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip


WORK: Sequence[Script] = (
    calls(call("read_file", '{"path": "notes.txt"}', "a"), call("list_files", "{}", "b")),
    says("seen"),
    says("nothing more"),
    says("later"),
)


async def test_the_price_is_all_that_comes_along_and_the_undo_is_one_command(opened: Opened) -> None:
    chat, runtime, _ = opened(*WORK)
    await worked(chat, runtime)
    rows = chat.session.preview.report().rows
    price = chat.session.pins.price(PinChange.PIN, "r3")
    assert (price.name, price.along) == ("r3", "its request, call and other result")
    assert price.tokens == sum(rows[place].tokens_before for place in (1, 2, 3, 4))
    assert price.undo == "/unpin r3"
    assert not chat.session.pins.scope
    assert make(chat, "pin r3") == price
    assert make(chat, price.undo[1:]).undo == "/pin r3"
    assert not chat.session.pins.scope


@pytest.mark.parametrize(
    ("words", "name", "along"),
    [
        ("", "r7", "its request"),
        ("last", "r7", "its request"),
        ("R5", "r5", "its request"),
        ("[recall: r4]", "r4", "its request, call and other result"),
        ("r2", "r2", "its request and 2 results"),
        ("r1", "r1", ""),
        ("turn", "turn 2", "its 2 messages"),
        ("turn 1", "turn 1", "its 5 messages"),
        ("r5 r7", "r5 r7", ""),
    ],
)
async def test_messages_are_named_as_context_names_them(
    opened: Opened, words: str, name: str, along: str
) -> None:
    chat, runtime, _ = opened(*WORK)
    await worked(chat, runtime)
    price = chat.session.pins.price(PinChange.PIN, words)
    assert (price.name, price.along) == (name, along)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pin r8", "There is no r8: this branch has r1 to r7."),
        ("pin r0", "There is no r0"),
        ("pin r999999999999", "not 'r999999999999'"),
        ("pin turn 3", "There is no turn '3': this branch has 2."),
        ("pin turn -1", "There is no turn '-1'"),
        ("pin the lot", "/pin takes r1 to r7 as /context shows them, last, or turn with a number"),
        ("exclude \x1b[31mred", "not '"),
        ("unpin r3", "r3 is not pinned; /pin lists what is."),
        ("include r3", "r3 is not excluded; /pin lists what is."),
    ],
)
async def test_what_there_is_not_is_said_in_one_line_and_changes_nothing(
    opened: Opened, line: str, said: str
) -> None:
    chat, runtime, _ = opened(*WORK)
    await worked(chat, runtime)
    with pytest.raises(ChatError) as refusal:
        make(chat, line)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert "\x1b" not in str(refusal.value)
    assert not chat.session.pins.scope


async def test_nothing_can_be_named_before_anything_was_said(opened: Opened) -> None:
    chat, _, _ = opened()
    with pytest.raises(ChatError, match="Nothing was said"):
        chat.session.pins.price(PinChange.PIN, "last")
    assert chat.session.pins.listed().pinned == ()


async def test_an_excluded_result_says_so_and_one_side_of_a_call_takes_the_iteration(opened: Opened) -> None:
    chat, runtime, provider = opened(*WORK)
    await worked(chat, runtime)
    price = make(chat, "exclude r3")
    assert (price.along, price.before - price.after) == ("", price.tokens)
    await collect(chat.send("then?"))
    assert contents(provider.requests[-1])[:3] == ["look", "read_file,list_files", EXCLUDED_RESULT]
    price = make(chat, "exclude r2")
    assert price.along == "its 2 results"
    assert fates(chat)[1:4] == ["excluded"] * 3
    with pytest.raises(ChatError, match=r"r4 is excluded along with r2: /include r2 takes that back"):
        make(chat, "include r4")
    assert make(chat, "include r2").undo == "/exclude r2"
    assert fates(chat)[1:4] == ["sent", "excluded", "sent"]
    assert_well_formed(chat, runtime)


async def test_a_turn_is_excluded_whole_also_the_newest_once_it_is_answered(opened: Opened) -> None:
    chat, runtime, provider = opened(*WORK)
    await worked(chat, runtime)
    price = make(chat, "exclude turn")
    assert (price.name, price.along, price.undo) == ("turn 2", "its 2 messages", "/include turn 2")
    assert fates(chat) == ["sent"] * 5 + ["excluded"] * 2
    await collect(chat.send("then?"))
    assert contents(provider.requests[-1])[-2:] == ["seen", "then?"]
    make(chat, "include turn 2")
    assert set(fates(chat)) == {"sent"}


async def test_the_message_that_is_being_answered_cannot_be_excluded(opened: Opened) -> None:
    refused: list[str] = []

    def exclude_now() -> None:
        for line in ("exclude r1", "exclude turn"):
            with pytest.raises(ChatError) as refusal:
                make(chat, line)
            refused.append(str(refusal.value))

    chat, _, _ = opened([exclude_now, *says("one")])
    await collect(chat.send("first"))
    assert refused == [
        "r1 is still to be answered and cannot be excluded; /undo takes it back.",
        "There is no whole turn on this branch yet.",
    ]


async def test_what_changes_while_a_turn_runs_holds_from_its_next_request(opened: Opened) -> None:
    made: list[str] = []

    def exclude_now() -> None:
        make(chat, "exclude r2")
        made.append("excluded")

    chat, runtime, provider = opened(
        says("an early answer"), [exclude_now, *calls(call("list_files"))], says("done")
    )
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    assert made == ["excluded"]
    assert "an early answer" in contents(provider.requests[1])
    assert "an early answer" not in contents(provider.requests[2])
    assert_well_formed(chat, runtime)


async def test_what_is_excluded_is_not_read_back_by_recall(opened: Opened) -> None:
    def exclude_now() -> None:
        make(chat, "exclude r2")

    search = call("recall", '{"search": "swordfish"}')
    chat, _, _ = opened(
        says("the password is swordfish"),
        calls(search),
        says("found"),
        [exclude_now, *calls(search)],
        says("no"),
    )
    chat.session.overrides.set_rolling(True)
    await collect(chat.send("first"))
    await collect(chat.send("what was it?"))
    await collect(chat.send("once more, what was it?"))
    results = [message.text for message in chat.session.messages if message.role == "tool"]
    assert "the password is swordfish" in results[0]
    assert "the password is swordfish" not in results[1]


async def test_an_excluded_message_cannot_be_pinned_and_a_pin_waits_for_it(opened: Opened) -> None:
    chat, runtime, _ = opened(*WORK)
    await worked(chat, runtime)
    make(chat, "pin r5")
    with pytest.raises(ChatError, match="r5 is pinned already"):
        make(chat, "pin r5")
    price = make(chat, "exclude r5")
    assert chat.session.pins.scope.pinned == frozenset()
    with pytest.raises(ChatError, match="r5 is excluded; /include r5 comes first"):
        make(chat, "pin r5")
    with pytest.raises(ChatError, match="r5 is excluded already"):
        make(chat, "exclude r5")
    make(chat, price.undo[1:])
    assert chat.session.pins.scope.pinned == {chat.session.messages[4].id}
    with pytest.raises(ChatError, match="r1 is pinned along with r5: /unpin r5 takes that back"):
        make(chat, "unpin r1")


async def test_the_undo_of_a_turn_leaves_what_was_pinned_in_it_before(opened: Opened) -> None:
    chat, runtime, _ = opened(*WORK)
    await worked(chat, runtime)
    make(chat, "pin r7")
    before = chat.session.pins.scope
    price = make(chat, "pin turn 2")
    assert price.undo == "/unpin r6"
    make(chat, price.undo[1:])
    assert chat.session.pins.scope == before


async def test_pins_that_leave_no_room_are_refused_with_the_figure(opened: Opened) -> None:
    chat, _, _ = opened(says(PAGE * 5), says("short"), window=4_000)
    chat.session.overrides.set_rolling(True)
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    revision = chat.session.preview.report()
    with pytest.raises(
        ChatError, match=r"Nothing was changed: with r2, [\d,]+ tokens could never leave .* 4,000"
    ):
        make(chat, "pin r2")
    assert not chat.session.pins.scope
    assert chat.session.preview.report() is revision


async def test_a_pinned_message_that_had_left_comes_back_and_stays(opened: Opened) -> None:
    chat, runtime, provider = opened(says("the port is 8443"), *[says(PAGE * 3)] * 14, window=8_000)
    chat.session.overrides.set("summarize", "off")
    chat.session.overrides.set_rolling(True)
    first = f"note this: {PAGE}"
    await collect(chat.send(first))
    for number in range(6):
        await collect(chat.send(f"{number} {PAGE}"))
    assert chat.session.preview.report().rows[2].fate is Fate.OMITTED
    price = make(chat, "pin r2")
    assert price.along == "its request"
    for number in range(6):
        await collect(chat.send(f"again {number} {PAGE}"))
        assert contents(provider.requests[-1])[:2] == [first, "the port is 8443"]
    for record in runtime.store.requests(chat.session.info.id):
        assert rebuild_request(runtime.store, record).is_same


async def test_every_request_is_built_again_with_the_pins_it_was_sent_with(opened: Opened) -> None:
    chat, runtime, _ = opened(*WORK, says("more"), says("and more"))
    await worked(chat, runtime)
    for line in ("exclude r3", "pin r5"):
        make(chat, line)
        await collect(chat.send(line))
    chat.session.overrides.set_rolling(True)
    make(chat, "include r3")
    await collect(chat.send("on"))
    records = runtime.store.requests(chat.session.info.id)
    assert len({record.wire_hash for record in records}) == len(records) == 6
    assert all(rebuild_request(runtime.store, record).is_same for record in records)


async def test_pins_stay_through_undo_fork_and_a_restart(tmp_path: Path) -> None:
    provider = ScriptedProvider(*WORK)
    runtime = make_runtime(tmp_path, provider)
    chat = Chat.open(runtime)
    await worked(chat, runtime)
    make(chat, "pin r7")
    make(chat, "exclude r3")
    both = chat.session.pins.scope
    assert both.pinned == {chat.session.messages[6].id}
    chat.session.history.undo()
    assert chat.session.pins.scope.pinned == frozenset()
    assert chat.session.pins.scope.excluded == both.excluded
    assert chat.session.pins.listed().elsewhere == 1
    chat.session.history.redo()
    assert chat.session.pins.scope == both
    chat.fork()
    assert chat.session.pins.scope == both
    make(chat, "unpin r7")
    fork = chat.session.info
    chat.close()
    runtime.store.close()
    runtime = make_runtime(tmp_path, provider)
    parent = runtime.store.session(fork.parent)
    chat = Chat.open(runtime, session=parent)
    assert chat.session.pins.scope == both
    chat.resume(fork.id)
    assert (chat.session.pins.scope.pinned, chat.session.pins.scope.excluded) == (frozenset(), both.excluded)
    chat.close()
    runtime.store.close()


async def test_a_pin_of_one_branch_is_passed_over_on_another(opened: Opened) -> None:
    chat, runtime, provider = opened(*WORK)
    await worked(chat, runtime)
    make(chat, "exclude r7")
    chat.session.history.undo()
    await collect(chat.send("something else"))
    assert fates(chat) == ["sent"] * 7
    assert contents(provider.requests[-1])[-1] == "something else"


async def test_who_only_follows_sees_pins_and_cannot_change_them(tmp_path: Path) -> None:
    provider = ScriptedProvider(*WORK)
    ours, theirs = make_runtime(tmp_path, provider), make_runtime(tmp_path, provider)
    chat = Chat.open(ours)
    await worked(chat, ours)
    follower = Chat.open(theirs, session=theirs.store.session(chat.session.info.id))
    make(chat, "exclude r3")
    assert not follower.session.pins.scope
    assert follower.session.refresh()
    assert follower.session.pins.scope == chat.session.pins.scope
    with pytest.raises(ChatError, match="open in another terminal"):
        make(follower, "include r3")
    chat.close()
    make(follower, "include r3")
    assert not follower.session.pins.scope
    follower.close()
    ours.store.close()
    theirs.store.close()


async def test_a_store_that_cannot_be_written_changes_nothing(opened: Opened) -> None:
    chat, runtime, _ = opened(*WORK)
    await worked(chat, runtime)
    with closing(sqlite3.connect(runtime.paths.database)) as database:
        database.execute(
            "CREATE TRIGGER full BEFORE UPDATE OF pins ON session BEGIN SELECT RAISE(FAIL, 'full'); END"
        )
        database.commit()
    before = chat.session.preview.report()
    with pytest.raises(ChatError) as refusal:
        make(chat, "pin r3")
    assert "\n" not in str(refusal.value)
    assert not chat.session.pins.scope
    assert chat.session.preview.report() is before


async def test_pins_leave_the_plan_as_it_is(opened: Opened) -> None:
    chat, _, _ = opened(*[says(PAGE)] * 8, window=8_000)
    chat.session.overrides.set_rolling(True)
    for number in range(6):
        await collect(chat.send(f"{number} {PAGE}"))
    before = {row.index for row in chat.session.preview.report().rows if row.fate is Fate.OMITTED}
    assert before
    make(chat, "pin last")
    after = {row.index for row in chat.session.preview.report().rows if row.fate is Fate.OMITTED}
    assert before <= after


async def test_the_list_names_each_with_its_price(opened: Opened) -> None:
    chat, runtime, _ = opened(*WORK)
    await worked(chat, runtime)
    make(chat, "pin r5")
    make(chat, "pin r7")
    make(chat, "exclude r3")
    listed = chat.session.pins.listed()
    assert [(entry.index, entry.along) for entry in listed.pinned] == [(5, "its request"), (7, "its request")]
    assert [(entry.index, entry.along) for entry in listed.excluded] == [(3, "")]
    assert listed.kept == sum(entry.tokens for entry in listed.pinned)
    assert listed.excluded[0].message == chat.session.messages[2]
    assert isinstance(listed.pinned[0].message, Message)


async def test_excluding_an_answer_is_priced_with_the_message_that_takes_its_place(
    opened: Opened,
) -> None:
    chat, _, _ = opened(says("Because the lexer drops trailing tabs at the end, it seems."))
    for words in ("why does it do that?", "and the fix?"):
        await collect(chat.send(words))
    price = make(chat, "exclude r2")
    assert price.tokens == price.before - price.after > 0
    back = make(chat, "include r2")
    assert back.tokens == back.after - back.before == price.tokens


async def test_the_rows_of_a_report_add_up_to_its_categories(opened: Opened) -> None:
    chat, runtime, _ = opened(*WORK)
    await worked(chat, runtime)
    make(chat, "pin r3")
    report = chat.session.preview.report()
    assert report.rows[0].tokens_after == report.system + report.summary
    said = sum(row.tokens_after for row in report.rows[1:]) + report.inserted
    assert said == report.history + report.current
