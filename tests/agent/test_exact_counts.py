"""A real llama.cpp server counts: the gauge is right from the first request, and what fits is sent."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import MappingProxyType

import pytest
import pytest_asyncio

from rolling_chat.agent import Chat, Runtime
from rolling_chat.events import Outcome, PromptPlanned, TurnEnded
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.catalog import load_catalog
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.schema import ContextSettings, ModelSettings, Settings
from tests.support.agent import collect, of_kind
from tests.support.llama_server import LlamaServer, llama_server

pytestmark = pytest.mark.xdist_group("llama")
pytest.importorskip("xllamacpp")

WINDOW = 12_288
OpenChat = Callable[..., Chat]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    with llama_server(tmp_path_factory.mktemp("llama"), window=WINDOW, tools=True) as running:
        yield running


@pytest_asyncio.fixture
async def open_chat(tmp_path: Path, server: LlamaServer) -> AsyncIterator[OpenChat]:
    """Opens chats with the server's model, all tools offered, as the program does."""
    (tmp_path / "work").mkdir()
    environ = {"ROLLING_CHAT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    paths, catalog = find_paths(environ), load_catalog()
    opened: list[Runtime] = []

    def open_it() -> Chat:
        model = ModelSettings(api_base=server.api_base, max_output_tokens=8)
        runtime = Runtime(
            settings=Settings(
                model=server.model,
                models=MappingProxyType({server.model: model}),
                context=ContextSettings(summarize="off"),
            ),
            paths=paths,
            catalog=catalog,
            store=open_store(paths.database),
            provider=ModelProvider(environ=environ, catalog=catalog),
            folder=tmp_path / "work",
            environ=environ,
        )
        opened.append(runtime)
        return Chat.open(runtime, rolling=False)

    yield open_it
    for runtime in opened:
        await runtime.provider.close()
        runtime.store.close()


async def test_requests_are_counted_as_the_server_counts_them_from_the_first_one_on(
    open_chat: OpenChat,
) -> None:
    chat = open_chat()
    await chat.session.ask_server()
    await chat.session.count_beginning()
    before = chat.session.preview.report()

    events = await collect(chat.send("Say in a few words what this folder holds. " * 20))

    reported, (planned,) = chat.usage.input_tokens, of_kind(events, PromptPlanned)
    assert reported > 4_500  # instructions and tools, a token a byte
    assert before.window == planned.report.window == WINDOW
    assert planned.report.exact
    assert planned.report.token_count == reported
    # what stood before a word was typed, and the message that came
    assert before.exact
    assert abs(before.token_count + 20 * 43 - reported) < 0.01 * reported

    # and every later turn begins with its count, whatever was said
    events = await collect(chat.send("你好" * 100 + "0x7f," * 100 + "a" * 1_000))
    (planned,), ended = of_kind(events, PromptPlanned), events[-1]
    assert isinstance(ended, TurnEnded)
    assert planned.report.token_count == planned.report.bound == ended.usage.input_tokens


async def test_a_message_that_fits_by_the_servers_count_is_sent(open_chat: OpenChat) -> None:
    chat = open_chat()
    await _send(chat, "Say in a few words what this folder holds. " * 20)
    text = ("a" * 16 + " ") * 2_000  # two tokens a word there, and several by every rule of ours
    before = chat.session.preview.report_with(text)
    assert not before.within_budget

    events = await collect(chat.send(text))

    (planned,), ended = of_kind(events, PromptPlanned), events[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.outcome is Outcome.CUT, ended.error
    assert not planned.report.trimmed
    assert 8_000 < ended.usage.input_tokens == planned.report.token_count
    assert str(chat.session.messages[-2].content) == text


async def _send(chat: Chat, text: str) -> TurnEnded:
    end = (await collect(chat.send(text)))[-1]
    assert isinstance(end, TurnEnded)
    return end
