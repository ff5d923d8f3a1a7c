"""A session's requests go to the address that the user chose, and nowhere else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from rolling_chat.agent import Chat, ChatError, Runtime
from rolling_chat.settings.schema import ContextSettings, ModelSettings, Settings
from tests.support.agent import MODEL, ScriptedProvider, collect, make_runtime, says

HERE = "http://127.0.0.1:8080/v1"
ELSEWHERE = "http://127.0.0.1:9090/v1"

OpenRuntime = Callable[..., tuple[Runtime, ScriptedProvider]]


@pytest.fixture
def open_runtime(tmp_path: Path) -> OpenRuntime:
    """Opens the same store again, as another process with other settings and environment would."""

    def open_it(
        environ: Mapping[str, str] | None = None, configured: str = "", model: str = MODEL, **context: str
    ) -> tuple[Runtime, ScriptedProvider]:
        provider = ScriptedProvider(says("yes"))
        models = MappingProxyType({model: ModelSettings(32_000, api_base=configured)})
        settings = Settings(model=model, models=models, context=ContextSettings(**context))
        runtime = make_runtime(tmp_path, provider, settings=settings, database=tmp_path / "sessions.db")
        runtime.environ = {**runtime.environ, "OPENAI_API_KEY": "sk-x", **(environ or {})}
        return runtime, provider

    return open_it


async def _goes_to(chat: Chat, provider: ScriptedProvider) -> str | None:
    await collect(chat.send("hello"))
    return provider.requests[-1].api_base


async def _held(open_runtime: OpenRuntime, **how: object) -> str:
    """The id of a session in which something was said."""
    address = how.pop("address", "")
    runtime, provider = open_runtime(**how)
    chat = Chat.open(runtime, address=str(address))
    await _goes_to(chat, provider)
    chat.close()
    runtime.store.close()
    return chat.session.info.id


def _forget_address(database: Path) -> None:
    """Make every session one of a version that kept no address."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE session SET api_base = NULL")


def _holds(folder: Path, text: bytes) -> bool:
    return any(text in file.read_bytes() for file in folder.glob("sessions.db*"))


MOVERS = [
    {},
    {"environ": {"OPENAI_BASE_URL": ELSEWHERE}},
    {"environ": {"OPENAI_API_BASE": ELSEWHERE}},
    {"configured": ELSEWHERE},
]


@pytest.mark.parametrize("later", MOVERS)
@pytest.mark.parametrize(
    "first",
    [
        {"address": HERE},
        {"configured": HERE},
        {"environ": {"OPENAI_BASE_URL": HERE}},
        {"environ": {"OPENAI_API_BASE": HERE}},
    ],
)
async def test_a_session_stays_at_the_address_that_it_was_begun_at(
    open_runtime: OpenRuntime, first: dict[str, object], later: dict[str, object]
) -> None:
    held = await _held(open_runtime, **first)
    runtime, provider = open_runtime(**later)
    chat = Chat.open(runtime, session=runtime.store.session(held))
    assert HERE in chat.session.model_line
    assert await _goes_to(chat, provider) == HERE


@pytest.mark.parametrize("later", MOVERS)
async def test_one_at_the_providers_own_address_stays_there(
    open_runtime: OpenRuntime, later: dict[str, object]
) -> None:
    held = await _held(open_runtime)
    runtime, provider = open_runtime(**later)
    chat = Chat.open(runtime, session=runtime.store.session(held))
    assert "api.openai.com" in chat.session.model_line
    assert await _goes_to(chat, provider) is None


async def test_the_command_line_wins_and_is_kept(open_runtime: OpenRuntime) -> None:
    held = await _held(open_runtime, address=HERE)
    runtime, provider = open_runtime()
    chat = Chat.open(runtime, session=runtime.store.session(held), address=ELSEWHERE)
    assert await _goes_to(chat, provider) == ELSEWHERE
    assert chat.session.resume_command == f"rolling-chat --resume {held[-8:]} --api-base {ELSEWHERE}"
    assert runtime.store.session(held).api_base == ELSEWHERE
    chat.close()

    own = Chat.open(runtime, session=runtime.store.session(held), address="default")
    assert await _goes_to(own, provider) is None
    assert own.session.resume_command == f"rolling-chat --resume {held[-8:]}"


async def test_credentials_are_used_and_never_kept(open_runtime: OpenRuntime, tmp_path: Path) -> None:
    full = "http://ada:pw-of-ada@127.0.0.1:8080/v1?api_key=abcdefg&v=1"
    clean = "http://127.0.0.1:8080/v1?v=1"
    runtime, provider = open_runtime(environ={"OPENAI_BASE_URL": full})
    chat = Chat.open(runtime)
    assert await _goes_to(chat, provider) == full
    assert (chat.session.address, chat.session.info.api_base) == (clean, clean)
    assert "pw-of-ada" not in chat.session.model_line + chat.session.resume_command
    chat.close()
    runtime.store.close()
    assert not _holds(tmp_path, b"pw-of-ada")


async def test_another_model_of_the_same_provider_goes_where_the_session_goes(
    open_runtime: OpenRuntime,
) -> None:
    runtime, provider = open_runtime()
    chat = Chat.open(runtime, address=HERE)
    assert HERE in chat.session.set_model("openai/other")
    assert await _goes_to(chat, provider) == HERE
    assert "api.openai.com" in chat.session.set_model("openai/gpt-4o", "default")
    assert await _goes_to(chat, provider) is None
    assert ELSEWHERE in chat.session.set_model("openai/other", ELSEWHERE)
    assert await _goes_to(chat, provider) == ELSEWHERE
    chat.start_new()
    assert await _goes_to(chat, provider) == ELSEWHERE
    chat.fork()
    assert await _goes_to(chat, provider) == ELSEWHERE


async def test_another_provider_goes_to_its_own_address(open_runtime: OpenRuntime) -> None:
    runtime, provider = open_runtime()
    chat = Chat.open(runtime, address=HERE)
    assert "api.anthropic.com" in chat.session.set_model("anthropic/claude-sonnet-4-5")
    assert await _goes_to(chat, provider) is None


async def test_what_is_no_address_is_refused(open_runtime: OpenRuntime) -> None:
    runtime, _ = open_runtime()
    with pytest.raises(ChatError, match="begins with http://"):
        Chat.open(runtime, address="127.0.0.1:8080")


async def test_a_session_from_before_is_not_sent_until_its_address_is_given(
    open_runtime: OpenRuntime, tmp_path: Path
) -> None:
    held = await _held(open_runtime, address=HERE)
    _forget_address(tmp_path / "sessions.db")
    runtime, provider = open_runtime(configured=ELSEWHERE)
    chat = Chat.open(runtime, session=runtime.store.session(held))
    assert chat.session.address is None
    assert list(chat.session.known_addresses.items()) == [
        (ELSEWHERE, ELSEWHERE),
        ("default", "api.openai.com"),
    ]
    for refused in (lambda: chat.send("hello"), chat.carry_on):
        with pytest.raises(ChatError, match=r"--api-base default for api\.openai\.com"):
            await collect(refused())
    assert provider.requests == []

    chat.session.set_model(chat.session.model, HERE)
    assert await _goes_to(chat, provider) == HERE
    chat.close()
    assert Chat.open(runtime, session=runtime.store.session(held)).session.address == HERE


async def test_a_demo_session_from_before_asks_nothing(open_runtime: OpenRuntime) -> None:
    runtime, _provider = open_runtime()
    before = runtime.store.create_session(folder="/x", model="demo/offline", rolling=False, api_base=None)
    assert Chat.open(runtime, session=before).session.address == ""


async def test_a_summary_goes_where_the_conversation_goes(open_runtime: OpenRuntime) -> None:
    runtime, provider = open_runtime(
        environ={"OPENAI_BASE_URL": ELSEWHERE}, summary_model="openai/small", enabled=True
    )
    runtime.settings = replace(
        runtime.settings, models={**runtime.settings.models, "openai/small": ModelSettings(8_000)}
    )
    chat = Chat.open(runtime, address=HERE)
    for _ in range(4):
        await collect(chat.send("The parser reads well enough on paper. " * 40))
    with suppress(ChatError):  # what the script answers is no summary
        await chat.session.summaries.propose()
    asked = [request for request in provider.requests if request.model == "openai/small"]
    assert asked
    assert {request.api_base for request in provider.requests} == {HERE}


async def test_a_model_that_comes_back_is_asked_where_it_was(open_runtime: OpenRuntime) -> None:
    runtime, provider = open_runtime(environ={"OPENAI_BASE_URL": ELSEWHERE})
    chat = Chat.open(runtime, address=HERE)
    chat.session.set_model("anthropic/claude-sonnet-4-5")
    for model in (MODEL, "custom_openai/other"):
        assert HERE in chat.session.set_model(model)
        assert await _goes_to(chat, provider) == HERE
        chat.session.set_model("anthropic/claude-sonnet-4-5")


async def test_two_names_of_one_provider_have_one_address(open_runtime: OpenRuntime) -> None:
    runtime, provider = open_runtime(model="ollama/tiny")
    chat = Chat.open(runtime, model="ollama/tiny", address=HERE)
    assert HERE in chat.session.set_model("ollama_chat/other")
    assert await _goes_to(chat, provider) == HERE


async def test_an_unknown_address_is_still_unknown_when_the_model_comes_back(
    open_runtime: OpenRuntime,
) -> None:
    runtime, _ = open_runtime()
    before = runtime.store.create_session(folder="/x", model=MODEL, rolling=False, api_base=None)
    chat = Chat.open(runtime, session=before)
    chat.session.set_model("anthropic/claude-sonnet-4-5")
    chat.session.set_model(MODEL)
    with pytest.raises(ChatError, match="does not know the address"):
        await collect(chat.send("hello"))


@pytest.mark.parametrize("is_forked", [False, True])
async def test_what_was_said_in_another_terminal_goes_where_it_was_said(
    open_runtime: OpenRuntime, *, is_forked: bool
) -> None:
    held = await _held(open_runtime)
    first, provider = open_runtime()
    chat = Chat.open(first, session=first.store.session(held))
    second, other = open_runtime()
    follower = Chat.open(second, session=second.store.session(held))
    chat.session.set_model(chat.session.model, HERE)
    assert await _goes_to(chat, provider) == HERE
    if is_forked:
        follower.fork()
    else:
        chat.close()
    assert await _goes_to(follower, other) == HERE
    assert HERE in follower.session.model_line


async def test_a_model_chosen_while_following_is_kept_once_the_session_is_ours(
    open_runtime: OpenRuntime,
) -> None:
    held = await _held(open_runtime)
    first, _ = open_runtime()
    chat = Chat.open(first, session=first.store.session(held))
    second, other = open_runtime()
    follower = Chat.open(second, session=second.store.session(held), address=ELSEWHERE)
    assert chat.session.refresh() is False
    chat.close()
    assert await _goes_to(follower, other) == ELSEWHERE
    assert second.store.session(held).api_base == ELSEWHERE


@pytest.mark.parametrize(
    "address",
    ["ada:pw@host", "http://", "http://[::1", "http://ada:p/w@host", "http://a b", "http://h:99999"],
)
async def test_what_no_request_can_be_sent_to_is_refused_at_once(
    open_runtime: OpenRuntime, address: str
) -> None:
    for how in ({"address": address}, {"environ": {"OPENAI_BASE_URL": address}}):
        runtime, _ = open_runtime(environ=how.get("environ"))
        with pytest.raises(ChatError, match="is no address") as caught:
            Chat.open(runtime, address=str(how.get("address", "")))
        assert "ada" not in str(caught.value)


async def test_no_summary_is_asked_for_at_an_address_that_is_not_known(open_runtime: OpenRuntime) -> None:
    runtime, provider = open_runtime(summary_model="openai/small", enabled=True)
    small = {name: ModelSettings(8_000) for name in ("openai/small", "anthropic/claude-sonnet-4-5")}
    runtime.settings = replace(runtime.settings, models={**runtime.settings.models, **small})
    before = runtime.store.create_session(folder="/x", model=MODEL, rolling=True, api_base=None)
    chat = Chat.open(runtime, session=before)
    chat.session.set_model("anthropic/claude-sonnet-4-5")
    for _ in range(4):
        await collect(chat.send("The parser reads well enough on paper. " * 40))
    with pytest.raises(ChatError, match="address of openai/small is not known"):
        await chat.session.summaries.propose()
    assert {request.model for request in provider.requests} == {"anthropic/claude-sonnet-4-5"}
