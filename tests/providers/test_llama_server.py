"""A real llama.cpp server: a streamed reply, its usage, and its refusal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rolling_chat.messages import Ending, Message
from rolling_chat.providers import exact_counts
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import ErrorKind, Finished, ProviderError, Request, TextDelta
from rolling_chat.providers.served import ask_about
from rolling_chat.settings.catalog import load_catalog
from tests.support.llama_server import LlamaServer, llama_server

pytestmark = pytest.mark.xdist_group("llama")
pytest.importorskip("xllamacpp")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    with llama_server(tmp_path_factory.mktemp("llama"), window=512) as running:
        yield running


def _request(server: LlamaServer, text: str) -> Request:
    messages = (Message("system", "be brief"), Message("user", text))
    return Request(server.model, messages, api_base=server.api_base, max_tokens=24)


async def test_a_reply_streams_and_its_usage_is_exact(provider: ModelProvider, server: LlamaServer) -> None:
    deltas = [delta async for delta in provider.stream(_request(server, "hello"))]

    finished = deltas[-1]
    assert isinstance(finished, Finished)
    text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    assert finished.message.content == text
    assert len(text) > 0
    assert finished.message.ending is Ending.LENGTH
    assert finished.usage.output_tokens == 24
    # a token is a byte: both texts, and the framing of the template around them
    assert finished.usage.input_tokens > len("be brief" + "hello")


async def test_it_counts_a_request_as_its_usage_reports_it(
    provider: ModelProvider, server: LlamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = _request(server, "héllo 你好 " * 9)
    counted = await provider.count_tokens(request, 5)
    finished = [delta async for delta in provider.stream(request)][-1]
    assert isinstance(finished, Finished)
    assert counted == finished.usage.input_tokens

    # and so do the endpoints of older versions
    monkeypatch.setattr(exact_counts, "_ENDPOINTS", (exact_counts._older_llama_cpp,))
    older = ModelProvider(environ={}, catalog=load_catalog())
    assert await older.count_tokens(request, 5) == counted


async def test_it_counts_what_is_too_long_for_it(provider: ModelProvider, server: LlamaServer) -> None:
    assert await provider.count_tokens(_request(server, "x" * 2000), 5) > 2000


def test_it_names_the_window_that_it_serves(server: LlamaServer) -> None:
    said = ask_about(server.model, server.api_base, {})
    assert said is not None
    assert (said.window, said.source) == (server.window, "llama.cpp /props")


async def test_its_refusal_carries_both_numbers(provider: ModelProvider, server: LlamaServer) -> None:
    with pytest.raises(ProviderError) as caught:
        async for _delta in provider.stream(_request(server, "x" * 2000)):
            pass

    assert caught.value.kind is ErrorKind.TOO_LONG
    assert caught.value.limit == server.window
    assert (caught.value.requested or 0) > 2000
