"""The gateway in a real LiteLLM proxy, behind unmodified clients."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.gateway.test_attacks import WORDS, chat
from tests.support.litellm_proxy import MASTER_KEY, LiteLLMProxy, proxy_folder
from tests.support.program import program_environment
from tests.support.servers import AnthropicServer, Call, Fail, Hang, OpenAIServer, Reply

if TYPE_CHECKING:
    import anthropic
    import openai

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("real-proxy")]

Body = dict[str, Any]

WINDOW = 9_000
ANSWER = "Yes. " * 40
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
# each by its name, for what one teaches holds for every request to it
REFUSING = {
    "gpt-refusing-1": CHAT,
    "gpt-refusing-2": MESSAGES,
    "claude-refusing-1": CHAT,
    "claude-refusing-2": MESSAGES,
}
KEY = {"Authorization": f"Bearer {MASTER_KEY}"}


class Claude(AnthropicServer):
    """Signs its thinking; those called refusing have a quarter of the window that the proxy is told."""

    def refusal(self, body: Body, tokens: int) -> Fail | None:
        self.window = WINDOW // 4 if body["model"] in REFUSING else WINDOW
        return super().refusal(body, tokens)


class GPT(OpenAIServer):
    """The same of OpenAI's."""

    def refusal(self, body: Body, tokens: int) -> Fail | None:
        self.window = WINDOW // 4 if body["model"] in REFUSING else WINDOW
        return super().refusal(body, tokens)


def thoughtful(body: Body) -> Reply:
    return Reply(ANSWER, reasoning="thinking of it " * 40 if body.get("thinking") else "")


def scripted(body: Body) -> Reply | Hang:
    """Hangs in mid-answer, or calls a tool, if the question asks for it."""
    question = json.dumps(body["messages"][-1])
    if "hang" in question:
        return Hang()
    return Reply("Let me see. ", (Call("f", '{"a": 1}', "call_1"),)) if "call" in question else Reply(ANSWER)


@dataclass
class Place:
    """A proxy with models of both kinds behind it."""

    proxy: LiteLLMProxy
    claude: Claude
    gpt: GPT

    @property
    def address(self) -> str:
        return self.proxy.address

    def post(self, body: Body, path: str = CHAT) -> httpx.Response:
        return httpx.post(f"{self.address}{path}", json=body, headers=KEY, timeout=60)

    def openai(self) -> openai.OpenAI:
        import openai

        return openai.OpenAI(base_url=f"{self.address}/v1", api_key=MASTER_KEY, max_retries=0)

    def anthropic(self) -> anthropic.Anthropic:
        import anthropic

        return anthropic.Anthropic(base_url=self.address, api_key=MASTER_KEY, max_retries=0)


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    programs, folder = proxy_folder(request.config.cache), tmp_path_factory.mktemp("proxy")
    claude, gpt = Claude(thoughtful), GPT(scripted)
    with ExitStack() as stack:
        stack.enter_context(claude.in_thread())
        stack.enter_context(gpt.in_thread())

        def row(name: str, model: str, address: str, **table: Any) -> Body:
            params = {"model": model, "api_base": address, "api_key": "any"}
            info = {"max_input_tokens": WINDOW, "rolling_chat": table}
            return {"model_name": name, "litellm_params": params, "model_info": info}

        rows = [
            row("claude", "anthropic/claude-sonnet-4-5", claude.api_base),
            row("gpt-4o", "openai/gpt-4o", gpt.api_base),
            *(row(name, f"anthropic/{name}", claude.api_base) for name in REFUSING if "claude" in name),
            *(row(name, f"openai/{name}", gpt.api_base) for name in REFUSING if "gpt" in name),
            row("odd", "openai/gpt-4o", gpt.api_base, trim_too=0.5),
            row("off", "openai/gpt-4o", gpt.api_base, enabled=False),
        ]
        settings = {
            "callbacks": ["rolling_chat.gateway.handler", "prometheus"],
            "rolling_chat": {"trim_to": "much", "preserve_recent_turns": 3},
            "use_chat_completions_url_for_anthropic_messages": True,
        }
        proxy = LiteLLMProxy(programs, {"model_list": rows, "litellm_settings": settings}, folder)
        stack.enter_context(proxy)
        yield Place(proxy, claude, gpt)
        assert "goes on as it came" not in proxy.log.read_text()


def grown(turns: int) -> Iterator[list[Body]]:
    """The messages of a growing conversation; whoever reads them adds the answers."""
    messages: list[Body] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Question {turn}. " + "word " * 300})
        yield messages


def test_a_client_of_anthropic_keeps_its_signed_thinking(place: Place) -> None:
    omitted = 0
    with place.anthropic() as client:
        for messages in grown(24):
            given: Any = messages
            raw = client.messages.with_raw_response.create(
                model="claude", max_tokens=2_000, system="Be nice.", messages=given,
                thinking={"type": "enabled", "budget_tokens": 1_024},
            )  # fmt: skip
            omitted = int(raw.headers["x-rolling-omitted"])
            messages.append({"role": "assistant", "content": raw.parse().model_dump()["content"]})
    assert omitted > 0
    assert not place.claude.requests[-1].refused


@pytest.mark.parametrize("model", ["claude", "gpt-4o"])
def test_a_client_of_anthropic_gets_the_models_own_answers(place: Place, model: str) -> None:
    with place.anthropic() as client:
        for messages in grown(24):
            given: Any = messages
            asked: Any = {"model": model, "max_tokens": 2_000, "system": "Be nice.", "messages": given}
            if len(messages) % 4 == 1:
                raw = client.messages.with_raw_response.create(**asked)
                headers, (block,) = raw.headers, raw.parse().content
                answer = block.text if block.type == "text" else ""
            else:
                with client.messages.stream(**asked) as stream:
                    answer, headers = stream.get_final_text(), stream.response.headers
            assert answer == ANSWER
            messages.append({"role": "assistant", "content": answer})
    assert headers["x-rolling-outcome"] == "trimmed"


def test_a_client_of_openai_gets_the_models_own_answers(place: Place) -> None:
    with place.openai() as client:
        for messages in grown(24):
            asked: Any = {
                "model": "gpt-4o",
                "messages": [{"role": "system", "content": "Be nice."}, *messages],
            }
            if len(messages) % 4 == 1:
                raw = client.chat.completions.with_raw_response.create(**asked)
                headers, answer = raw.headers, raw.parse().choices[0].message.content
            else:
                with client.chat.completions.with_streaming_response.create(**asked, stream=True) as streamed:
                    headers = streamed.headers
                    pieces = [chunk.choices[0].delta.content for chunk in streamed.parse() if chunk.choices]
                answer = "".join(filter(None, pieces))
            assert answer == ANSWER
            messages.append({"role": "assistant", "content": answer})
    assert headers["x-rolling-outcome"] == "trimmed"
    assert int(headers["x-rolling-omitted"]) > 0


def test_tool_calls_come_back_whole_over_both_wires(place: Place) -> None:
    asked = [*chat(60), {"role": "user", "content": "Please call."}]
    asked.pop(-2)
    parameters: Body = {"type": "object", "properties": {"a": {"type": "integer"}}}
    with place.openai() as openai, place.anthropic() as anthropic:
        given: Any = asked
        tool: Any = {"type": "function", "function": {"name": "f", "parameters": parameters}}
        reply = openai.chat.completions.create(model="gpt-4o", messages=given, tools=[tool])
        (call,) = reply.choices[0].message.tool_calls or ()
        assert json.loads(call.to_dict()["function"]["arguments"]) == {"a": 1}  # type: ignore[index]
        own: Any = {"name": "f", "input_schema": parameters}
        message = anthropic.messages.create(model="gpt-4o", max_tokens=500, messages=given, tools=[own])
        assert [block.type for block in message.content] == ["text", "tool_use"]
        assert message.content[-1].to_dict()["input"] == {"a": 1}


def test_the_program_itself_is_a_client(place: Place, tmp_path: Path) -> None:
    environment = program_environment(tmp_path, OPENAI_API_KEY=MASTER_KEY)
    for turn in range(10):
        command = [sys.executable, "-m", "rolling_chat", "-p", f"Question {turn}. " + "word " * 900]
        command += ["--model", "openai/gpt-4o", "--api-base", f"{place.address}/v1"]
        command += ["--tools", "none", *(["--continue"] if turn else [])]
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stdout.strip()) == (0, ANSWER.strip()), ran.stderr
    last = place.gpt.requests[-1].body["messages"]
    assert len(last) < 20
    assert "conversation truncated" in json.dumps(last[0])


@pytest.mark.parametrize("model", ["claude", "gpt-4o"])
def test_what_cannot_fit_is_refused_as_anthropic_would(place: Place, model: str) -> None:
    import anthropic

    question: Any = {"role": "user", "content": "word " * 10_000}
    with place.anthropic() as client:
        with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > ") as refused:
            client.messages.create(model=model, max_tokens=100, messages=[question])
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
            client.messages.create(model=model, max_tokens=100, messages=[question], stream=True)
    body: Any = refused.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")
    assert refused.value.response.headers["x-rolling-outcome"] == "refused"


def test_what_cannot_fit_is_refused_as_openai_would(place: Place) -> None:
    import openai

    question: Any = {"role": "user", "content": "word " * 10_000}
    with place.openai() as client, pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="gpt-4o", messages=[question])
    assert (refused.value.code, refused.value.type) == ("context_length_exceeded", "invalid_request_error")
    assert "maximum context length is 9000 tokens" in refused.value.message
    assert refused.value.response.headers["x-rolling-outcome"] == "refused"


@pytest.mark.parametrize(("model", "path"), REFUSING.items())
def test_a_refusal_over_any_wire_teaches_the_window(place: Place, model: str, path: str) -> None:
    body = {"model": model, "max_tokens": 100, "messages": chat(90)}
    refused, answered = place.post(body, path), place.post(body, path)
    assert (refused.status_code, answered.status_code) == (400, 200)
    assert answered.headers["x-rolling-window"] == str(WINDOW // 4)


async def test_two_hundred_requests_at_once_are_all_answered(place: Place) -> None:
    async with httpx.AsyncClient(headers=KEY, timeout=300) as client:

        async def ask(number: int) -> httpx.Response:
            first = {"role": "user", "content": f"Conversation {number % 101}."}
            body = {"model": "gpt-4o", "messages": [first, *chat(60)[1:]]}
            return await client.post(f"{place.address}{CHAT}", json=body)

        answers = await asyncio.gather(*map(ask, range(200)))
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["x-rolling-outcome"] for answer in answers} == {"trimmed"}


async def test_a_client_that_hangs_up_in_mid_answer_ends_it(place: Place) -> None:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hang"}], "stream": True}
    async with httpx.AsyncClient(headers=KEY) as client:
        async with client.stream("POST", f"{place.address}{CHAT}", json=body) as answer:
            await anext(answer.aiter_bytes())
        await place.gpt.wait_disconnected()
    assert (
        await asyncio.to_thread(place.post, {**body, "messages": chat(2), "stream": False})
    ).status_code == 200


def test_many_megabytes_are_trimmed_or_refused(place: Place) -> None:
    turns = place.post({"model": "gpt-4o", "messages": chat(400, words=1_000)})
    assert turns.headers["x-rolling-outcome"] == "trimmed"
    assert turns.status_code == 200
    for path in (CHAT, MESSAGES):
        one = {"role": "user", "content": WORDS * 400_000}
        refused = place.post({"model": "gpt-4o", "max_tokens": 10, "messages": [one]}, path)
        assert (refused.status_code, refused.headers["x-rolling-outcome"]) == (400, "refused")


def test_what_is_nested_deep_harms_nobody_else(place: Place) -> None:
    text = json.dumps({"model": "gpt-4o", "messages": chat(2), "tools": []})
    nested = '{"a":' * 900 + "1" + "}" * 900
    body = text.replace('"tools": []', f'"tools": [{{"type": "function", "function": {nested}}}]')
    httpx.post(f"{place.address}{CHAT}", content=body, headers=KEY, timeout=60)
    assert place.post({"model": "gpt-4o", "messages": chat(2)}).status_code == 200


def test_wrong_settings_are_told_in_the_log_and_the_others_hold(place: Place) -> None:
    for _ in range(2):
        assert place.post({"model": "odd", "messages": chat(2)}).status_code == 200
    log = place.proxy.log.read_text()
    told = [line for line in log.splitlines() if "is ignored" in line]
    assert len(set(told)) == len(told) == 2
    assert "rolling_chat.trim_to in litellm_settings is ignored: it takes a number above 0" in log
    assert "rolling_chat.trim_too in a model's model_info is ignored: there is no such setting" in log
    off = place.post({"model": "off", "messages": chat(2)})
    assert off.headers["x-rolling-outcome"] == "skipped"


def test_prometheus_counts_the_outcomes(place: Place) -> None:
    place.post({"model": "gpt-4o", "messages": chat(2)})
    metrics = httpx.get(f"{place.address}/metrics/", headers=KEY).text
    found = dict(re.findall(r'rolling_chat_gateway_requests_total\{outcome="(\w+)"\} (\S+)', metrics))
    assert float(found["unchanged"]) >= 1
    assert float(found.get("failed_open", 0)) == 0
