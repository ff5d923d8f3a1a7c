"""The gateway in a real LiteLLM proxy, behind unmodified clients."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.litellm_proxy import MASTER_KEY, LiteLLMProxy, proxy_folder
from tests.support.program import program_environment
from tests.support.servers import AnthropicServer, OpenAIServer, Reply

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("real-proxy")]

Body = dict[str, Any]


@pytest.fixture(scope="module")
def programs(request: pytest.FixtureRequest) -> Path:
    return proxy_folder(request.config.cache)


def test_a_client_of_anthropic_keeps_its_signed_thinking(programs: Path, tmp_path: Path) -> None:
    import anthropic

    def script(body: Body) -> Reply:
        text = body["messages"][-1]["content"]
        return Reply("Yes. " * 100, reasoning=f"thinking of {len(str(text))} characters " * 20)

    server = AnthropicServer(script, window=8_000)
    with server.in_thread():
        model = {"model": "anthropic/claude-sonnet-4-5", "api_base": server.api_base, "api_key": "any"}
        row = {"model_name": "claude", "litellm_params": model, "model_info": {"max_input_tokens": 8_000}}
        settings = {"callbacks": ["rolling_chat.gateway.handler"]}
        with LiteLLMProxy(programs, {"model_list": [row], "litellm_settings": settings}, tmp_path) as proxy:
            client = anthropic.Anthropic(base_url=proxy.address, api_key=MASTER_KEY, max_retries=0)
            messages: list[Any] = []
            omitted = 0
            for turn in range(24):
                messages.append({"role": "user", "content": f"Question {turn}. " + "word " * 300})
                raw = client.messages.with_raw_response.create(
                    model="claude", max_tokens=2_000, system="Be nice.", messages=messages,
                    thinking={"type": "enabled", "budget_tokens": 1_024},
                )  # fmt: skip
                omitted = int(raw.headers["x-rolling-omitted"])
                messages.append({"role": "assistant", "content": raw.parse().model_dump()["content"]})
            assert omitted > 0
            with client.messages.stream(model="claude", max_tokens=500, messages=messages[:1]) as stream:
                assert stream.get_final_text() == "Yes. " * 100
            with pytest.raises(anthropic.BadRequestError, match="prompt is too long") as refused:
                client.messages.create(
                    model="claude", max_tokens=100, messages=[{"role": "user", "content": "word " * 9_000}]
                )
            assert refused.value.response.headers["x-rolling-outcome"] == "refused"
            client.close()
        assert "goes on as it came" not in proxy.log.read_text()
    assert len(server.requests) == 25


def test_the_program_itself_is_a_client(programs: Path, tmp_path: Path) -> None:
    server = OpenAIServer(lambda _body: Reply("Yes. " * 40), window=9_000)
    with server.in_thread():
        model = {"model": "openai/gpt-4o", "api_base": server.api_base, "api_key": "any"}
        row = {"model_name": "gpt-4o", "litellm_params": model, "model_info": {"max_input_tokens": 9_000}}
        settings = {"callbacks": ["rolling_chat.gateway.handler"]}
        with LiteLLMProxy(programs, {"model_list": [row], "litellm_settings": settings}, tmp_path) as proxy:
            environment = program_environment(tmp_path, OPENAI_API_KEY=MASTER_KEY)
            for turn in range(10):
                command = [sys.executable, "-m", "rolling_chat", "-p", f"Question {turn}. " + "word " * 900]
                command += ["--model", "openai/gpt-4o", "--api-base", f"{proxy.address}/v1"]
                command += ["--tools", "none", *(["--continue"] if turn else [])]
                ran = subprocess.run(
                    command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
                )
                assert (ran.returncode, ran.stdout.strip()) == (0, ("Yes. " * 40).strip()), ran.stderr
    last = server.requests[-1].body["messages"]
    assert len(last) < 20
    assert "conversation truncated" in json.dumps(last[0])
