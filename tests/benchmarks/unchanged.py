"""What a change of the code must not change: requests, reports, events, the screen; one hash each.

    python -m tests.benchmarks.unchanged tests/transcripts

prints the same lines before and after a refactoring. Every conversation of the folder is planned request by
request (`planned`), then played through the whole program against a model server on loopback that answers
with the conversation's own replies (`wire`: the bodies as the server got them; `events`: what the turns
emitted; `screen`: what the terminal shows of the session at 80x24, as text). With a second folder, what was
hashed is written there, to be compared line by line.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rolling_chat.agent import Chat, Runtime
from rolling_chat.context import ContextConfig, ContextOverflowError, ContextPlan, build_final_prompt
from rolling_chat.events import Event, TextAdded
from rolling_chat.messages import Message
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.replay import request_points
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.catalog import load_catalog
from rolling_chat.settings.schema import ModelSettings, Settings
from tests.benchmarks.reading import conversations, transcript_files
from tests.support.agent import collect
from tests.support.servers import Call, OpenAIServer, Reply
from tests.support.tui import make_app, make_paths, shown

WINDOWS = (8_192, 131_072)
STRATEGIES = ("priority", "oldest-first")
MODEL = "openai/gpt-4o"
_MAX_POINTS = 400  # requests of one conversation that are planned
_MAX_PLAYED = 3  # conversations of a file that are played
_MAX_TURNS = 12  # turns of one conversation that are played
_MAX_REPLIES = 8  # replies of one turn that are played
_TIME = 1_700_000_000.0  # the system prompt names the day
_CHANGING = {"seconds", "id", "reply_id", "created_at", "delay", "left"}


def main(folder: str, values: str = "") -> int:
    """Print a line of hashes for every file, window and strategy; write what was hashed into `values`."""
    for path in transcript_files(folder):
        told = list(conversations(path))
        for window in WINDOWS:
            for strategy in STRATEGIES:
                planned = _planned(told, window, strategy)
                wire, events, screen = asyncio.run(_played(told[:_MAX_PLAYED], window, strategy))
                if values:
                    name = f"{path.stem}-{window}-{strategy}"
                    for kind, found in zip(
                        ("planned", "wire", "events", "screen"), (planned, wire, events, screen), strict=True
                    ):
                        (Path(values) / f"{name}-{kind}.txt").write_text(
                            "\n".join(found.values), errors="replace"
                        )
                print(
                    f"{path.name:<28} {window:>7} {strategy:<12} "
                    f"planned {planned}  wire {wire}  events {events}  screen {screen}",
                    flush=True,
                )
    return 0


class _Hash:
    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.values: list[str] = []

    def add(self, value: object) -> None:
        """Take in one value: text as it is, the rest as JSON in the order of its keys."""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        self._hash.update(text.encode(errors="surrogatepass") + b"\0")
        self.values.append(text)

    def __str__(self) -> str:
        return f"{len(self.values):>6}:{self._hash.hexdigest()[:12]}"


def _planned(told: Sequence[Mapping[str, Any]], window: int, strategy: str) -> _Hash:
    """Plan every request, handing the plan on from each to the next."""
    found = _Hash()
    config = ContextConfig(max_context_tokens=window, trim_strategy=strategy)
    for conversation in told:
        messages, plan = conversation["messages"], None
        points = request_points([Message.from_dict(message) for message in messages])
        for point in points[:_MAX_POINTS]:
            plan = _plan(found, messages[:point], config, conversation.get("tools"), plan)
    return found


def _plan(
    found: _Hash,
    branch: list[dict[str, Any]],
    config: ContextConfig,
    tools: list[dict[str, Any]] | None,
    plan: ContextPlan | None,
) -> ContextPlan | None:
    try:
        prompt = build_final_prompt(branch, config, tools=tools, model=MODEL, plan=plan)
    except ContextOverflowError as error:
        found.add(str(error))
        return plan
    found.add(prompt.messages)
    found.add(prompt.report.totals())
    return prompt.plan


async def _played(
    told: Sequence[Mapping[str, Any]], window: int, strategy: str
) -> tuple[_Hash, _Hash, _Hash]:
    wire, emitted, screen = _Hash(), _Hash(), _Hash()
    for conversation in told:
        with _fixed_folder() as folder:
            turns = list(_turns(conversation["messages"]))[:_MAX_TURNS]
            replies = [reply for _, answers in turns for reply in answers]
            async with OpenAIServer(replies, window=10**9) as server:
                chat, provider = _open(Path(folder), server.api_base, window, strategy)
                for text, _ in turns:
                    for event in _joined(await collect(chat.send(text))):
                        emitted.add(_described(event))
                screen.add(_still(await _screen(chat, Path(folder)), folder))
                await provider.close()
                for request in server.requests:
                    wire.add(_still(json.dumps(request.body, ensure_ascii=False), folder))
    return wire, emitted, screen


@contextmanager
def _fixed_folder() -> Iterator[str]:
    """A folder of the same name in every run: the system prompt names it, and its tokens count."""
    folder = Path(tempfile.gettempdir()) / "rolling-chat-unchanged"
    folder.mkdir()
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder)


def _turns(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Reply]]]:
    """What the user said, and the replies to it; the last of them calls nothing."""
    text, replies = "", list[Reply]()
    for message in messages:
        if message["role"] == "user":
            if text:
                yield text, _ended(replies)
            text, replies = _text(message), []
        elif message["role"] == "assistant" and text:
            replies.append(_reply(message))
    if text:
        yield text, _ended(replies)


def _ended(replies: list[Reply]) -> list[Reply]:
    calling = [reply for reply in replies if reply.calls][: _MAX_REPLIES - 1]
    last = next((reply for reply in reversed(replies) if not reply.calls), Reply("Done."))
    return [*calling, last]


def _reply(message: Mapping[str, Any]) -> Reply:
    made = tuple(
        Call(call["function"]["name"], call["function"]["arguments"] or "{}", call["id"])
        for call in message.get("tool_calls") or ()
    )
    return Reply(_text(message) or ("" if made else "Yes."), made)


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)


def _open(folder: Path, api_base: str, window: int, strategy: str) -> tuple[Chat, ModelProvider]:
    """A chat over the real provider; nothing runs, for nobody is there to approve it."""
    (folder / "work").mkdir()
    (folder / "work" / "a.txt").write_text("alpha\n" * 200)
    environ, catalog = {"OPENAI_API_KEY": "sk-of-no-one"}, load_catalog()
    provider = ModelProvider(environ=environ, catalog=catalog)
    settings = Settings(
        model=MODEL,
        models=MappingProxyType({MODEL: ModelSettings(max_input_tokens=window, api_base=api_base)}),
    )
    context = replace(settings.context, enabled=True, summarize="off", trim_strategy=strategy)  # type: ignore[arg-type]
    runtime = Runtime(
        settings=replace(settings, context=context),
        paths=make_paths(folder),
        catalog=catalog,
        store=open_store(None),
        provider=provider,
        folder=folder / "work",
        environ=environ,
        clock=lambda: _TIME,
    )
    return Chat.open(runtime), provider


def _joined(events: Sequence[Event]) -> Iterator[Event]:
    """The events, text that was streamed in pieces joined: the network cuts it as it likes."""
    waiting: TextAdded | None = None
    for event in events:
        if isinstance(event, TextAdded):
            waiting = event if waiting is None else replace(waiting, text=waiting.text + event.text)
            continue
        if waiting is not None:
            yield waiting
        waiting = None
        yield event


def _described(value: object) -> Any:
    """A value as JSON, without what differs from run to run."""
    if is_dataclass(value) and not isinstance(value, type):
        told = {
            each.name: _described(getattr(value, each.name))
            for each in fields(value)
            if each.name not in _CHANGING and not each.name.startswith("_") and each.compare
        }
        return {"": type(value).__name__, **told}
    if isinstance(value, Mapping):
        return {str(name): _described(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_described(inner) for inner in value]
    return value if isinstance(value, str | int | bool | None) else repr(value)


async def _screen(chat: Chat, folder: Path) -> str:
    async with make_app(chat, folder, clock=lambda: 0.0).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.pause()
        return shown(pilot)


def _still(text: str, folder: str) -> str:
    """`text` without the folder's name."""
    return text.replace(folder, "<folder>")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
