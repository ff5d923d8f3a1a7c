"""The benchmark of a small model's memory: it goes on where it was stopped, and its figures can fail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import remembered
from tests.benchmarks.remembered import ARMS, run_all
from tests.benchmarks.remembered.asking import Asked
from tests.benchmarks.remembered.facts import FACTS, MATTER, TOLD
from tests.support.servers import Fail, OpenAIServer, Reply
from tests.support.servers.script import Step

SHORT = MATTER[:2]
VALUES = {
    "name": "Kestrel", "port": "8471", "file": "conf/kestrel.toml", "host": "db-osprey",
    "backups": "45 days", "release": "March 14", "reviewer": "Marta", "error": "E4417",
}  # fmt: skip


def small_model(body: dict[str, Any]) -> Reply:
    """Answers a question where its prompt has the value, and copies lines with names into a summary."""
    messages: Sequence[dict[str, Any]] = body["messages"]
    prompt, asked = "\n".join(str(message["content"]) for message in messages), str(messages[-1]["content"])
    if messages[0]["role"] == "user":
        lines = re.findall(r"User: (.*)", prompt)
        return Reply("Facts:\n" + "\n".join(f"- {line}" for line in lines))
    for fact in FACTS:
        if fact.question in asked:
            return Reply(VALUES[fact.name] if fact.is_in(prompt) else "I do not know that.")
    return Reply("Well, that is a long story, of which I tell no more than this. " * 4)


def gives_up_after(requests: int) -> Callable[[dict[str, Any]], Step]:
    left = iter(range(requests))

    def answer(body: dict[str, Any]) -> Step:
        return small_model(body) if next(left, None) is not None else Fail(400, "the server is gone")

    return answer


def asked_of(server: OpenAIServer) -> Asked:
    return Asked("openai/small", server.api_base, window=4_096)


def results(folder: Path) -> dict[str, list[bool]]:
    return {
        path.stem: [json.loads(line)["is_right"] for line in path.read_text().splitlines()]
        for path in sorted(folder.glob("*.jsonl"))
        if path.stem != "talk"
    }


def test_every_value_is_found_in_what_was_told_and_in_no_other_matter() -> None:
    for fact in FACTS:
        assert fact.is_in(VALUES[fact.name])
        assert fact.is_in(" ".join(TOLD))
        assert not fact.is_in(" ".join(MATTER))
        assert not fact.is_in(fact.question)


@pytest.mark.slow  # it is the benchmark itself, with four memories
def test_what_left_is_not_answered_without_memory_and_what_a_summary_keeps_is(tmp_path: Path) -> None:
    arms = [arm for arm in ARMS if arm.name in ("right after", "neither", "summaries", "summaries by rule")]
    with OpenAIServer(small_model, window=4_096).in_thread() as server:
        lines = list(run_all(asked_of(server), tmp_path, arms))
    got = results(tmp_path)
    assert sum(got["right-after"]) == 8
    assert sum(got["neither"]) <= 4  # the first turns are kept as the task
    assert sum(got["summaries"]) >= 6
    assert sum(got["summaries-by-rule"]) >= 6
    assert any(line.startswith("neither") and "missed: " in line for line in lines)


def test_a_run_that_was_stopped_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    arms = [arm for arm in ARMS if arm.name == "neither"]
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    with OpenAIServer(small_model, window=4_096).in_thread() as server:
        lines = list(run_all(asked_of(server), whole, arms, matter=SHORT))
        requests = len(server.requests)
        for allowed in (3, 6):  # in the talk, and among the first questions
            dying = OpenAIServer(gives_up_after(allowed), window=4_096)
            with dying.in_thread() as other, pytest.raises(RuntimeError):
                list(run_all(asked_of(other), stopped, arms, matter=SHORT))
        assert list(run_all(asked_of(server), stopped, arms, matter=SHORT))[1:] == lines[1:]
    assert len(server.requests) == 2 * requests - 9
    assert results(stopped) == results(whole)


def test_a_folder_of_another_run_is_not_gone_on_with(tmp_path: Path) -> None:
    with OpenAIServer(small_model, window=4_096).in_thread() as server:
        list(run_all(asked_of(server), tmp_path, (), matter=()))
        with pytest.raises(ValueError, match="another run"):
            list(run_all(Asked("openai/other", server.api_base), tmp_path, (), matter=()))


def test_without_a_server_it_says_why_it_is_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("REMEMBERED_ADDRESS", raising=False)
    assert list(remembered.run()) == [
        "not run: set REMEMBERED_ADDRESS to the address of a server with a model"
    ]
    monkeypatch.setenv("REMEMBERED_ADDRESS", "http://127.0.0.1:9/v1")
    assert "REMEMBERED_FOLDER" in next(remembered.run())
    monkeypatch.setenv("REMEMBERED_FOLDER", str(tmp_path))
    assert next(remembered.run()).startswith("not run: ")
