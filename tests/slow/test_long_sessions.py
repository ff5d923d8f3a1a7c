"""Sessions as long as people really have them, against real servers: no refusal, memory flat."""

from __future__ import annotations

import json
import resource
import tracemalloc
import urllib.request
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pytest

from rolling_chat.agent import Chat, Runtime
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.context import (
    ContextConfig,
    ContextPlan,
    Measurements,
    build_final_prompt,
    confirm_count,
)
from rolling_chat.events import Outcome, TurnEnded
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.catalog import load_catalog
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import AgentSettings, ModelSettings, Settings
from tests.support.agent import collect
from tests.support.conversations import assistant, tool, user
from tests.support.llama_server import LlamaServer, llama_server
from tests.support.prompt_rules import broken_rules
from tests.support.servers import Call, OpenAIServer, Recorded, Reply

pytestmark = pytest.mark.slow

TURNS = 1_000
WINDOW = 4_096
ANSWER = 8
MEMORY_GROWTH = 1.2


def test_a_thousand_turns_at_4096_tokens_are_never_refused_and_memory_is_flat(tmp_path: Path) -> None:
    """The server takes a token a byte, which no bound for an unknown model foresees: its replies teach it."""
    config = ContextConfig(
        max_context_tokens=WINDOW,
        reserved_output_tokens=16,
        max_tool_result_tokens=3_000,
        max_history_tokens=0,
    )
    learned = Measurements()
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a careful assistant."}]
    plan: ContextPlan | None = None
    used, warm, above = [], 0, 0
    with llama_server(tmp_path / "model", WINDOW) as server:
        tracemalloc.start()
        try:
            for turn in range(TURNS):
                messages += _turn(turn)
                calibrated = replace(config, calibration=learned.calibration)
                prompt = build_final_prompt(messages, calibrated, model=server.model, plan=plan)
                assert broken_rules(prompt.messages) == []
                reply = _ask(server, prompt.messages)
                used.append(reply["usage"]["prompt_tokens"])
                above += used[-1] > prompt.report.bound
                plan, group = confirm_count(prompt.plan, used[-1])
                learned = learned.add(group)
                messages.append(assistant(reply["choices"][0]["message"]["content"] or "(nothing)"))
                if turn == TURNS // 5:
                    warm = _beside(messages)
            grown = _beside(messages)
        finally:
            tracemalloc.stop()
    assert max(used) + ANSWER <= WINDOW
    assert max(used) > 0.8 * WINDOW  # one turn more is up to a quarter of it
    assert above < TURNS // 20  # what the bound cannot see is what the margin is for
    assert grown <= MEMORY_GROWTH * warm


async def test_two_hundred_turns_with_tools_at_8192_tokens_are_never_refused_and_memory_is_flat(
    tmp_path: Path,
) -> None:
    asked = 0

    def script(_request: Recorded) -> Reply:
        nonlocal asked
        asked += 1
        if asked % 3:
            return Reply(
                "I look.", (Call("read_file", json.dumps({"path": f"{asked % 7}.txt"}), f"c{asked}"),)
            )
        return Reply(f"Answer {asked // 3}. " + "And some words about it. " * 10)

    async with OpenAIServer(script, window=8_192, key="sk-right-key") as server:
        runtime = _runtime(tmp_path, server.api_base)
        chat = Chat.open(runtime)
        warm = 0
        try:
            for turn in range(200):
                end = (await collect(chat.send(f"Question {turn}: what do the files say?")))[-1]
                assert isinstance(end, TurnEnded)
                assert end.outcome is Outcome.DONE
                server.requests[:-1] = [replace(one, body={}) for one in server.requests[:-1]]
                if turn == 60:
                    warm = _peak()
        finally:
            await runtime.provider.close()
            runtime.store.close()
    assert [request.refused for request in server.requests if request.refused] == []
    assert len(server.requests) == 600
    assert _peak() <= MEMORY_GROWTH * warm


async def test_three_hundred_turns_of_a_chat_with_a_model_of_bytes_are_refused_once_at_most(
    tmp_path: Path,
) -> None:
    with llama_server(tmp_path / "model", WINDOW) as server:
        runtime = _runtime(tmp_path, server.api_base, model=server.model, window=WINDOW, most_out=24)
        chat = Chat.open(runtime)
        try:
            for turn in range(300):
                text = f"Question {turn}: how does the lexer treat tabs at the end? " * (1 + turn % 5)
                end = (await collect(chat.send(text)))[-1]
                assert isinstance(end, TurnEnded)
                assert end.outcome in {Outcome.DONE, Outcome.CUT}, end.error
            records = runtime.store.requests(chat.session.info.id)
            assert chat.session.preview.report().window == WINDOW
            assert chat.session.preview.report().exact
            assert rebuild_request(runtime.store, records[-1]).is_same
        finally:
            await runtime.provider.close()
            runtime.store.close()
    assert len([record for record in records if record.error]) <= 1
    reported = [record.usage.input_tokens for record in records]
    assert max(reported) > 0.8 * (WINDOW - 24)


def _peak() -> int:
    """The most memory that the process ever took, in the system's own unit."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _runtime(
    tmp_path: Path, api_base: str, *, model: str = "openai/gpt-4o", window: int = 8_192, most_out: int = 0
) -> Runtime:
    folder = tmp_path / "work"
    folder.mkdir()
    for number in range(7):
        (folder / f"{number}.txt").write_text(f"a line of file {number}\n" * 40 * number)
    environ = {"ROLLING_CHAT_HOME": str(tmp_path / "home"), "OPENAI_API_KEY": "sk-right-key"}
    paths, catalog = find_paths(environ), load_catalog()
    limits = ModelSettings(max_input_tokens=window, max_output_tokens=most_out, api_base=api_base)
    tools: Literal["all", "none"] = "none" if most_out else "all"  # a tiny model has no use for them
    settings = Settings(
        model=model, models=MappingProxyType({model: limits}), agent=AgentSettings(tools=tools)
    )
    return Runtime(
        settings=replace(settings, context=replace(settings.context, enabled=True)),
        paths=paths,
        catalog=catalog,
        store=open_store(paths.database),
        provider=ModelProvider(environ=environ, catalog=catalog),
        folder=folder,
        environ=environ,
    )


def _turn(number: int) -> list[dict[str, Any]]:
    """A request that was worked on with a tool, and the question that follows it."""
    listing = "".join(f"{number}:{line} drwxr-xr-x some/file_{line}.py\n" for line in range(number % 60))
    return [
        user(f"Request {number}: what is in the folder?"),
        assistant("", ("call", "list_files")),
        tool("call", listing or "nothing"),
        assistant(f"I have looked at {number % 60} files."),
        user("And what does that mean?"),
    ]


def _ask(server: LlamaServer, messages: list[dict[str, Any]]) -> dict[str, Any]:
    body = {"model": "tiny-random", "messages": messages, "max_tokens": ANSWER, "temperature": 0}
    request = urllib.request.Request(
        f"{server.api_base}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return dict(json.load(answer))


def _beside(messages: list[dict[str, Any]]) -> int:
    """Bytes that are held beside the session's own text."""
    return tracemalloc.get_traced_memory()[0] - len(json.dumps(messages)) * 3
