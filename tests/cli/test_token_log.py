"""`rolling-chat doctor --tokens`: our counts beside those of real servers on loopback."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from rolling_chat.agent.token_log import Phase, content_of, read_token_log
from rolling_chat.messages import Message, ToolCall, Usage
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import RequestRecord
from tests.support.program import Program
from tests.support.servers import AnthropicServer, Call, OpenAIServer, Reply

MODEL = "openai/gpt-4o"


@pytest.fixture
def keys(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys for both servers; `program` takes others away."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-any")


@pytest.mark.usefixtures("keys")
def test_the_figures_are_those_of_the_servers_by_model_and_content(program: Program) -> None:
    (program.folder / "a.txt").write_text("A line of the file, such as there are many.\n" * 40)
    script = [
        Reply("I look.", (Call("read_file", '{"path": "a.txt"}', "c1"),)),
        Reply("Yes.", usage=False),
    ]
    with OpenAIServer(script).in_thread() as server, AnthropicServer().in_thread() as claude:
        program("-p", "Read a.txt.", "--model", MODEL, "--api-base", server.api_base)
        server.then(Reply("", (Call("read_file", '{"path": "a.txt"}', "c2"),)), Reply("It is."))
        program("-p", "Once more.", "--model", MODEL, "--api-base", server.api_base, "--continue")
        program("-p", "hi", "--model", "anthropic/claude-sonnet-4-5", "--api-base", claude.api_base)
        counted = [request.tokens for at, request in enumerate(server.requests) if at != 1]

    log = program("doctor", "--tokens", "--json").json
    assert log["unreported"] == 1
    mine = [one for one in log["requests"] if one["model"] == MODEL]
    assert [one["reported"] for one in mine] == counted
    assert [one["phase"] for one in mine] == ["first", "growing", "growing"]
    growing = next(row for row in log["models"] if (row["model"], row["phase"]) == (MODEL, "growing"))
    errors = sorted(abs(one["estimated"] / one["reported"] - 1) for one in mine[1:])
    assert (growing["count"], growing["median"], growing["p95"]) == (2, errors[0], errors[1])
    assert growing["beyond_bound"] == 0
    first = next(row for row in log["models"] if row["model"].startswith("anthropic/"))
    assert (first["phase"], first["reported"]) == ("first", claude.requests[0].tokens)
    (results,) = log["contents"]
    assert (results["content"], results["count"]) == ("tool results", 2)
    assert results["reported"] == counted[2] - counted[0]
    # `inspect` has the same figures for the same request
    shown = program("inspect", mine[1]["id"], "--json").json
    assert (shown["estimated"], shown["bound"], shown["reported"]["input_tokens"]) == (
        mine[1]["estimated"],
        mine[1]["bound"],
        mine[1]["reported"],
    )

    picture = program.folder / "tokens.svg"
    ran = program("doctor", "--tokens", "--svg", str(picture))
    assert ran.code == 0
    assert "4 requests to 2 models with a count of the provider's; 1 without one" in ran.out
    (row,) = [line for line in ran.out.splitlines() if "growing" in line]
    shares = [word for share in (*errors, 0) for word in (f"{100 * share:.1f}", "%")]
    assert row.split() == [MODEL, "growing", "2", "×", f"{growing['ratio']:.3f}", *shares]
    drawn = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    circles = [one for one in drawn.iter() if one.tag.endswith("circle")]
    assert len(circles) == 4 + 3, "a dot for each request, and one for each row of the legend"


def test_an_empty_store_says_so_and_wrong_options_are_one_line(program: Program) -> None:
    ran = program("doctor", "--tokens")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "No request with a token count is stored yet. Send a message to a model first.\n"
    assert program("doctor", "--tokens", "--json").json["requests"] == []
    assert "was not written" in program("doctor", "--tokens", "--svg", "a.svg").err
    for wrong, line in (
        (("doctor", "--json"), "--json and --svg go with --tokens"),
        (("doctor", "--svg", "a.svg"), "--json and --svg go with --tokens"),
        (("doctor", "--tokens", "--svg", "no/such/folder.svg"), "in a folder that exists"),
    ):
        ran = program(*wrong)
        assert (ran.code, ran.out) == (2, "")
        assert line in ran.err
    assert not (program.home / "rolling-chat" / "sessions.db").exists()


def test_counts_beyond_the_bound_sums_and_summaries_are_told_apart(tmp_path: Path) -> None:
    store = open_store(tmp_path / "sessions.db")
    info = store.create_session(folder="/x", model=MODEL, rolling=True)
    store.append(info.id, Message("user", "hello"))

    def sent(estimated: int, reported: int, *, confirmed: bool = True, purpose: str = "answer") -> None:
        record = RequestRecord(
            "", info.id, "", MODEL, None, "d", 2, "h", estimated, 2 * estimated,
            totals={"confirmed": confirmed}, purpose=purpose,
        )  # fmt: skip
        made = store.log_request(record, {})
        store.finish_request(made, usage=Usage(reported, 1), seconds=1.0)

    sent(100, 150, confirmed=False)
    sent(100, 201)
    sent(100, 700)  # seven times what we count is no count of this prompt
    sent(100, 0)
    sent(100, 90, purpose="summary")
    log = read_token_log(store)
    store.close()
    assert [(one.phase, one.is_beyond) for one in log.requests] == [
        (Phase.FIRST, False),
        (Phase.GROWING, True),
        (Phase.SUMMARY, False),
    ]
    assert (log.unreported, log.left_out) == (1, 1)


def test_content_is_named_by_what_most_of_it_is() -> None:
    asked = Message("user", "What does this file say?")
    call = Message("assistant", tool_calls=(ToolCall("c", "read_file", '{"path": "a.txt"}'),))
    result = Message("tool", "alpha " * 40, tool_call_id="c")
    assert content_of([asked]) == "text"
    assert content_of([asked, call, result]) == "tool results"
    assert content_of([call]) == "tool calls"
    assert content_of([Message("user", "これは何と書いてありますか")]) == "text in other scripts"
