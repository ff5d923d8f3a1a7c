"""What the user writes while a turn runs: stored where it goes in, kept with the task, undone, said again."""

from __future__ import annotations

from dataclasses import replace

from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.context.report import Fate
from rolling_chat.events import Noticed, Outcome, Steered, ToolEnded, TurnEnded
from rolling_chat.mentions import MARK
from rolling_chat.settings.schema import ContextSettings
from tests.support.agent import Opened, Script, assert_well_formed, call, calls, collect, says
from tests.support.servers.openai_wire import find_fault

READ = calls(call("read_file", '{"path": "a.txt"}', "c1"), call("list_files", "{}", "c2"))


async def test_it_goes_in_below_all_results_and_belongs_to_the_turn(opened: Opened) -> None:
    chat, runtime, provider = opened()

    def write() -> None:
        chat.waiting.add("after this", after_turn=True)
        chat.waiting.add("with tabs")
        chat.waiting.add("and no docs")

    provider.scripts[:] = [[write, *READ], says("So be it.")]
    events = await collect(chat.send("Indent it."))
    assert events[-1].outcome is Outcome.DONE
    kinds = [type(event) for event in events if isinstance(event, Steered | ToolEnded | TurnEnded)]
    assert kinds == [ToolEnded, ToolEnded, Steered, Steered, TurnEnded]
    assert [message.text for message in chat.waiting] == ["after this"]

    said = ["user", "assistant", "tool", "tool", "user", "user", "assistant"]
    assert [message.role for message in chat.session.messages] == said
    report = chat.session.preview.report()
    assert report.turns == 1
    assert [report.rows[index].fate for index in (5, 6)] == [Fate.SENT, Fate.SENT]
    sent = provider.wire_form(provider.requests[1])
    assert find_fault(sent) == ""
    assert [message["content"] for message in sent[-2:]] == ["with tabs", "and no docs"]
    assert_well_formed(chat, runtime)


async def test_task_and_what_was_said_meanwhile_stay_while_other_work_is_dropped(
    opened: Opened,
) -> None:
    chat, runtime, provider = opened(window=4_000, tools=("read_file", "list_files"))
    runtime.settings = replace(runtime.settings, context=ContextSettings(enabled=True, summarize="off"))
    chat.session.setup.rolling = True
    (runtime.folder / "a.txt").write_text("alpha beta gamma delta\n" * 80)

    def step(number: int) -> Script:
        said = {4: lambda: chat.waiting.add("STEERED: with tabs")}.get(number)
        arguments = f'{{"path": "a.txt", "start": {number}}}'
        return [*filter(None, [said]), *calls(call("read_file", arguments, f"c{number}"))]

    provider.scripts[:] = [*(step(number) for number in range(1, 14)), says("Done.")]
    assert (await collect(chat.send("TASK: indent it")))[-1].outcome is Outcome.DONE

    assert len(provider.requests) == 14
    for number, request in enumerate(provider.requests):
        texts = [str(message["content"]) for message in provider.wire_form(request)]
        assert texts.count("TASK: indent it") == 1
        assert texts.count("STEERED: with tabs") == (number >= 4)
        assert find_fault(provider.wire_form(request)) == ""
    report = chat.session.preview.report()
    assert report.count(Fate.OMITTED, Fate.SHORTENED, Fate.MASKED) > 0
    records = runtime.store.requests(chat.session.info.id)
    assert all(record.bound <= 4_000 for record in records)
    assert all(rebuild_request(runtime.store, record).is_same for record in records)
    assert_well_formed(chat, runtime)


async def test_it_is_undone_redone_and_said_again_like_any_message(opened: Opened) -> None:
    chat, runtime, provider = opened()
    said = [lambda: chat.waiting.add("with tabs"), *calls(call("list_files"))]
    provider.scripts[:] = [said, says("Tabs."), says("Spaces."), says("Tabs again.")]
    await collect(chat.send("Indent it."))

    assert chat.session.history.undo().text == "with tabs"
    assert [message.role for message in chat.session.messages] == ["user", "assistant", "tool"]
    await collect(chat.send("with spaces"))
    assert chat.session.messages[-1].text == "Spaces."
    assert find_fault(provider.wire_form(provider.requests[-1])) == ""
    chat.session.history.undo()
    chat.session.history.redo()
    assert chat.session.messages[-1].text == "Spaces."
    assert chat.session.history.retake().text == "with spaces"
    await collect(chat.carry_on())
    assert chat.session.messages[-1].text == "Tabs again."
    assert_well_formed(chat, runtime)


async def test_what_a_stop_comes_before_waits_on(opened: Opened) -> None:
    chat, runtime, provider = opened()

    def stop() -> None:
        chat.waiting.add("with tabs")
        chat.stop()

    provider.scripts[:] = [[stop, *READ]]
    assert (await collect(chat.send("Indent it.")))[-1].outcome is Outcome.CANCELLED
    assert chat.waiting.take_all() == ["with tabs"]
    assert_well_formed(chat, runtime)


async def test_files_that_it_mentions_are_attached_and_one_that_is_refused_lets_it_wait(
    opened: Opened,
) -> None:
    chat, runtime, provider = opened()
    (runtime.folder / "b.txt").write_text("beta\n")

    def write() -> None:
        chat.waiting.add(f"like {MARK}/etc/passwd")
        chat.waiting.add(f"as in {MARK}b.txt")

    provider.scripts[:] = [[write, *READ], says("So be it.")]
    events = await collect(chat.send("Indent it."))
    (steered,) = (event.message for event in events if isinstance(event, Steered))
    assert (steered.words, [one.mention for one in steered.attachments]) == ("as in @b.txt", ["b.txt"])
    assert "beta" in provider.wire_form(provider.requests[1])[-1]["content"]
    assert [message.after_turn for message in chat.waiting] == [True]
    assert any(isinstance(event, Noticed) and "outside the working folder" in event.text for event in events)
    assert_well_formed(chat, runtime)
