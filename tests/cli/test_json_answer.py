"""`-p --json-schema`: JSON that matches on stdout, or nothing and an exit code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, Ran
from tests.support.servers import OpenAIServer, Reply

SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
GOOD = '{"count": 3}'


def ask(
    program: Program, schema: Any, replies: Sequence[str], *more: str
) -> tuple[Ran, list[dict[str, Any]]]:
    """Ask a server that answers with one reply after another; also return the requests it got."""
    (program.folder / "schema.json").write_text(schema if isinstance(schema, str) else json.dumps(schema))
    waiting = list(replies)
    bodies: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Reply:
        bodies.append(body)
        return Reply(waiting.pop(0))

    with OpenAIServer(answer, models=("one",)).in_thread() as server:
        model = ("--model", "openai/one", "--api-base", server.api_base)
        environ = {"OPENAI_API_KEY": server.key, "ROLLING_CHAT_MODEL": ""}
        ran = program.child("-p", "How many?", "--json-schema", "schema.json", *model, *more, environ=environ)
    return ran, bodies


def test_the_value_alone_is_on_stdout_and_the_model_was_told_the_schema(program: Program) -> None:
    ran, (body,) = ask(program, SCHEMA, [GOOD])
    assert (ran.code, ran.json) == (0, {"count": 3})
    assert json.dumps(SCHEMA) in body["messages"][-1]["content"]


@pytest.mark.parametrize("reply", [f"```json\n{GOOD}\n```", f"Here it is:\n\n```\n{GOOD}\n```\nThat is all."])
def test_json_in_a_code_block_is_taken(program: Program, reply: str) -> None:
    ran, _ = ask(program, SCHEMA, [reply])
    assert ran.json == {"count": 3}


@pytest.mark.parametrize("first", ["Three.", '{"count": "three"}', "[]", "", '{"count": NaN}'][:3])
def test_an_answer_that_does_not_match_is_asked_for_once_more(program: Program, first: str) -> None:
    ran, (_, again) = ask(program, SCHEMA, [first, GOOD])
    assert (ran.code, ran.json) == (0, {"count": 3})
    assert "does not match the JSON Schema" in again["messages"][-1]["content"]


def test_the_second_that_does_not_match_fails_with_nothing_on_stdout(program: Program) -> None:
    ran, bodies = ask(program, SCHEMA, ["Three.", '{"count": "three"}'])
    assert (ran.code, ran.out, len(bodies)) == (1, "", 2)
    assert "$.count: 'three' is not of type 'integer'" in ran.err


def test_json_output_has_the_value_and_the_usage_of_both_turns(program: Program) -> None:
    ran, _ = ask(program, SCHEMA, ["Three.", GOOD], "--output-format", "json")
    assert ran.json["structured"] == {"count": 3}
    once, _ = ask(program, SCHEMA, [GOOD], "--output-format", "json")
    assert ran.json["usage"]["input_tokens"] > 2 * once.json["usage"]["input_tokens"]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("[1]", "a JSON Schema is an object"),
        ("{", "--json-schema schema.json: "),
        ({"type": "nonsense"}, "no JSON Schema"),
        ("x" * 1_000_001, "larger than 1,000,000 bytes"),
    ],
)
def test_a_file_that_is_no_schema_is_refused_before_anything_is_sent(
    program: Program, schema: Any, reason: str
) -> None:
    ran, bodies = ask(program, schema, [])
    assert (ran.code, bodies) == (2, [])
    assert reason in ran.err


def test_nothing_is_fetched_that_a_schema_refers_to(program: Program) -> None:
    asked: list[Any] = []

    def refuse(body: dict[str, Any]) -> Reply:
        asked.append(body)
        return Reply("{}")

    with OpenAIServer(refuse, models=("other",)).in_thread() as elsewhere:
        ran, _ = ask(program, {"$ref": f"{elsewhere.address}/schema.json"}, [GOOD])
    assert ran.code == 1
    assert "refers to what is not in it" in ran.err
    assert not asked


def test_a_file_that_is_not_there_is_named(program: Program, tmp_path: Path) -> None:
    ran = program("-p", "x", "--json-schema", str(tmp_path / "no.json"))
    assert ran.code == 2
    assert "no.json: No such file or directory" in ran.err
