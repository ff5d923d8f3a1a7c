"""A real chat over an in-memory store and a scripted model, and ways to read the screen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from textual.pilot import Pilot

from rolling_chat.agent import Chat, Runtime
from rolling_chat.messages import Ending, Message, ToolCall, Usage
from rolling_chat.providers.protocol import Delta, Finished, ReasoningDelta, Request, TextDelta
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.catalog import load_catalog
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import AgentSettings, ModelSettings, Settings
from rolling_chat.settings.themes import load_themes
from rolling_chat.tui.app import RollingChatApp
from rolling_chat.tui.keymap import Keymap
from rolling_chat.tui.screens.chat_screen import ChatScreen
from rolling_chat.tui.state.items import Item
from rolling_chat.tui.widgets.prompt_box import PromptBox
from rolling_chat.tui.widgets.question import Question
from rolling_chat.tui.widgets.transcript import Transcript
from tests.support.patience import PATIENCE_SECONDS
from tests.support.styles import share_parsed_styles

share_parsed_styles()

MODEL = "openai/gpt-4o-mini"
FOLDER = Path("/home/ada/src/parser")
COMMAND = "touch made-by-tool"
_AGENT = AgentSettings(sandbox="off")  # which not every machine has, and the screen tells

Step: TypeAlias = Delta | asyncio.Event | Exception
Reply: TypeAlias = Sequence[Step]


def says(*pieces: str, usage: Usage | None = None, ending: Ending = Ending.COMPLETE) -> list[Step]:
    """A reply of text, streamed in these pieces."""
    message = Message("assistant", "".join(pieces), ending=ending)
    return [*(TextDelta(piece) for piece in pieces), Finished(message, usage or Usage(100, 20))]


def thinks(thought: str, reply: Reply) -> list[Step]:
    """Thinking before a reply."""
    return [ReasoningDelta(thought), *reply]


def calls(name: str, *, text: str = "", id: str = "call-1", **arguments: object) -> list[Step]:
    """A reply that calls one tool."""
    call = ToolCall(id, name, json.dumps(arguments))
    said = [TextDelta(text)] if text else []
    return [*said, Finished(Message("assistant", text, tool_calls=(call,)), Usage(100, 20))]


@dataclass
class ScriptedProvider:
    """Answers every request with the next reply; an Event among its steps is waited for."""

    replies: list[Reply] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    warmed: int = 0

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        self.requests.append(request)
        for step in self.replies.pop(0) if self.replies else says("Nothing was scripted."):
            match step:
                case asyncio.Event():
                    await step.wait()
                case Exception():
                    raise step
                case _:
                    yield step

    def wire_form(self, request: Request) -> list[dict[str, object]]:
        return [message.to_dict() for message in request.messages]

    async def count_tokens(self, request: Request, seconds: float) -> int:
        return 0

    async def warm_up(self, model: str, api_base: str | None) -> None:
        self.warmed += 1


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


def make_paths(home: Path) -> Paths:
    """Every file of the program under one folder."""
    return Paths(
        config_file=home / "config.toml",
        data_dir=home,
        database=home / "sessions.db",
        log_file=home / "rolling-chat.log",
        themes_dir=home / "themes",
        history_file=home / "history",
        drafts_dir=home / "drafts",
        pastes_dir=home / "pastes",
    )


def make_chat(
    home: Path,
    *replies: Reply,
    folder: Path = FOLDER,
    window: int = 0,
    settings: Settings | None = None,
    provider: ScriptedProvider | None = None,
    store: SessionStore | None = None,
) -> Chat:
    """A real chat; `window` (tokens) makes the model's window smaller than it is; `store` None is memory."""
    models = {MODEL: ModelSettings(max_input_tokens=window)} if window else {}
    runtime = Runtime(
        settings=settings or Settings(model=MODEL, models=models, agent=_AGENT),
        paths=make_paths(home),
        catalog=load_catalog(),
        store=store or open_store(None),
        provider=provider or ScriptedProvider(list(replies)),
        folder=folder,
        environ={"OPENAI_API_KEY": "sk-test"},
    )
    return Chat.open(runtime)


def asking_chat(
    home: Path, command: str = COMMAND, *, first: Sequence[Reply] = (), before: Reply = ()
) -> Chat:
    """A chat that asks leave for `command` in the folder `home`/work, after the replies of `first`.

    `before` are steps of the same reply, ahead of the call.
    """
    folder = home / "work"
    folder.mkdir()
    asking = [*before, *calls("run_command", command=command)]
    return make_chat(home, *first, asking, says("So it is."), folder=folder)


def make_app(
    chat: Chat,
    home: Path,
    *,
    clock: Callable[[], float] | None = None,
    first: str = "",
    keymap: Keymap | None = None,
) -> RollingChatApp:
    """The app over a chat, with the shipped themes."""
    return RollingChatApp(
        chat,
        theme="midnight",
        themes=load_themes(home / "themes"),
        paths=make_paths(home),
        keymap=keymap,
        first_message=first,
        **({"clock": clock} if clock else {}),
    )


def screen_of(pilot: Pilot[None]) -> ChatScreen:
    """The chat screen, whatever lies above it."""
    return next(screen for screen in pilot.app.screen_stack if isinstance(screen, ChatScreen))


def draft(pilot: Pilot[None]) -> str:
    """What stands in the prompt box."""
    return screen_of(pilot).query_one(PromptBox).text


def transcript(pilot: Pilot[None]) -> str:
    """Every line of the transcript, drawn."""
    view = screen_of(pilot).query_one(Transcript)
    view.viewport.update()
    rows = chain.from_iterable(view.document.stretches(view.document.first))
    return "\n".join(row.line.drawn.rstrip() for row in rows)


def shown(pilot: Pilot[None]) -> str:
    """The screen as a person reads it, row by row."""
    width, height = pilot.app.size
    lines = pilot.app.screen._compositor.render_strips()
    return "\n".join(strip.text[:width] for strip in lines[:height])


async def wait_until(
    pilot: Pilot[None], predicate: Callable[[], object], seconds: float = PATIENCE_SECONDS
) -> None:
    """Let the app run until `predicate` holds; fail with the screen as it stands if it never does."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not predicate():
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"never came true; the screen:\n{shown(pilot)}")
        await pilot.pause(0.01)


async def reads(pilot: Pilot[None], *words: str) -> None:
    """Wait until all these words stand on the screen: its parts are not drawn in one frame."""
    await wait_until(pilot, lambda: all(each in shown(pilot) for each in words))


async def tells(pilot: Pilot[None], *words: str) -> None:
    """Wait until all these words stand in the transcript, in sight or not and however it wraps them.

    What a command says comes when its worker is through, which no key and no idle turn waits for.
    """
    await wait_until(pilot, lambda: all(each in " ".join(transcript(pilot).split()) for each in words))


def fill(pilot: Pilot[None], *items: Item) -> None:
    """Put these items into the transcript in place of what stands there."""
    screen = screen_of(pilot)
    screen.state.items.clear(items)
    screen._painter.paint()


async def idle(pilot: Pilot[None]) -> None:
    """Wait until no turn runs and everything is painted."""
    screen = screen_of(pilot)
    await wait_until(pilot, lambda: not screen.state.busy and not screen.chat.busy)
    await pilot.pause()


async def busy(pilot: Pilot[None]) -> None:
    """Wait until a turn runs."""
    await wait_until(pilot, lambda: screen_of(pilot).state.busy)


async def listens(pilot: Pilot[None], clock: Clock) -> None:
    """Let the grace of the question that is asked pass, until its frame names the answers."""
    question = pilot.app.screen.query_one(Question)
    # the grace begins when the keys come to it, which is after it is there
    await wait_until(pilot, lambda: question.has_focus)
    clock.pass_(1)
    await wait_until(pilot, lambda: "one moment" not in str(question.border_subtitle))


async def type_line(pilot: Pilot[None], text: str) -> None:
    """Put text into the prompt box and press Enter."""
    screen_of(pilot).query_one(PromptBox).put(text)
    await pilot.pause()
    await pilot.press("enter")
    await pilot.pause()
