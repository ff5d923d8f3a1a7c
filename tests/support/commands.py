"""A command's context that writes down what it was asked to do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rolling_chat.agent import Chat
from rolling_chat.agent.turn.attaching import Insertion
from rolling_chat.commands import Choice, Table
from rolling_chat.commands.base import Browsed, Inspection, Result, SessionShelf
from rolling_chat.context import PromptReport


@dataclass
class PlainContext:
    """Says into a list; picks what `picks` says next."""

    chat: Chat
    theme_names: Sequence[str] = ("midnight", "daylight")
    theme_name: str = "midnight"
    picks: list[str | None] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    offered: list[Choice] = field(default_factory=list)
    shown: list[tuple[str, str]] = field(default_factory=list)
    inspected: Inspection | None = None
    copied: str = ""
    can_edit: bool = True
    draft: str = ""
    landed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def report(self) -> PromptReport:
        return self.chat.session.preview.report()

    def say(self, text: str, *, warning: bool = False) -> None:
        (self.warned if warning else self.said).append(text)

    def show_tables(self, title: str, lead: Sequence[str], tables: Sequence[Table]) -> None:
        self.said.extend((title, *lead))
        self.tables.extend(tables)

    def show_inspector(self, read: Callable[[], Inspection]) -> None:
        self.inspected = read()

    def show_text(self, title: str, text: str) -> None:
        self.shown.append((title, text))

    async def confirm(
        self, title: str, question: str, text: str, answer: str, other: str = ""
    ) -> bool | None:
        self.shown.append((question, text))
        pick = self.picks.pop(0) if self.picks else None
        return None if pick == "other" and other else pick is not None

    async def edit(self, title: str, lead: str, text: str) -> str | None:
        self.shown.append((lead, text))
        return self.picks.pop(0) if self.picks else None

    def show_help(self) -> None:
        self.done.append("help")

    async def wait_for(self, work: Callable[[threading.Event], Result], doing: str) -> Result | None:
        return work(threading.Event())

    async def wait_for_task(self, work: Coroutine[Any, Any, Result], doing: str) -> Result | None:
        return await work

    def insert_output(self, text: str) -> None:
        self.draft += text

    async def paste_picture(self) -> None:
        self.draft += "[picture]"

    async def browse(self, shelf: SessionShelf, *, current: str = "") -> Browsed:
        self.offered = list(await shelf.choices())
        return Browsed(self.picks.pop(0) or "") if self.picks else Browsed()

    async def pick(self, title: str, choices: Sequence[Choice], *, current: str = "") -> str | None:
        self.offered = list(choices)
        return self.picks.pop(0) if self.picks else None

    def reload(self) -> None:
        self.done.append("reload")

    def refresh_title(self) -> None:
        self.done.append("title")

    def offer_draft(self, text: str) -> bool:
        if self.draft:
            return False
        self.draft = text
        return True

    def show_message(self, message_id: str, words: str = "") -> None:
        self.landed.append((message_id, words))

    async def stop_turn(self) -> None:
        self.chat.stop()

    async def send(self, text: str, inserted: Sequence[Insertion] = ()) -> None:
        async for _ in self.chat.send(text, inserted):
            pass

    async def edit_file(self, path: Path) -> bool:
        self.done.append(f"edit {path}")
        return self.can_edit

    async def carry_on(self) -> None:
        async for _ in self.chat.carry_on():
            pass

    def refresh_report(self) -> None:
        self.done.append("report")

    def set_theme(self, name: str) -> None:
        self.theme_name = name

    def copy(self, text: str) -> bool:
        self.copied = text
        return True

    def quit(self) -> None:
        self.done.append("quit")
