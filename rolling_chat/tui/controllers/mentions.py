"""Mentions of files in the prompt box: completed while typed, then folded to one token with a price."""

from __future__ import annotations

import re
import shlex
import time
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from rolling_chat import figures
from rolling_chat.agent import ChatError
from rolling_chat.commands import Choice, Offer
from rolling_chat.mentions import Place, find
from rolling_chat.tui.controllers.background import Coalesced, Workplace
from rolling_chat.tui.drafts.pastes import FoldedFile, clean
from rolling_chat.tui.widgets.prompt_box import PromptBox

if TYPE_CHECKING:
    from rolling_chat.agent import Chat, FileIndex, MentionedFile
    from rolling_chat.agent.mentioned_resources import MentionedResource
    from rolling_chat.tui.state.screen_state import ScreenState

_MAX_OFFERED = 50
_FRESH = 5.0  # seconds; the next mention after that reads the folder again


_PICTURE = re.compile(r"[^\n]+\.(?:png|jpe?g|gif|webp)['\"]?", re.IGNORECASE)


def picture_path(pasted: str) -> str:
    """Return the path of a picture if the pasted text is one (quoted, escaped or a file URL); else empty."""
    text = pasted.strip()
    if not _PICTURE.fullmatch(text):
        return ""
    if text.startswith("file://"):
        return unquote(urlsplit(text).path)
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    return words[0] if len(words) == 1 else text


class MentionStage(Workplace, Protocol):
    """The part of the screen that mentions use."""

    chat: Chat
    state: ScreenState

    @property
    def prompt(self) -> PromptBox:
        """The prompt box, in which files are mentioned."""
        ...


class MentionController:
    """Offers the files of the working folder, and folds the mentions of those that exist."""

    def __init__(self, screen: MentionStage) -> None:
        self._screen = screen
        self._index: FileIndex | None = None
        self._read_at = -_FRESH
        self._reading = Coalesced(self._read)
        self._plain: set[str] = set()  # mentions that name no attachable file

    def offer(self, typed: str) -> Offer:
        """Return completions of a mention; they are offered again after the folder has been read."""
        if time.monotonic() - self._read_at > _FRESH:
            self._read_at = time.monotonic()
            self._reading.ask(self._screen)
        is_folder = typed.endswith("/")
        if self._index is None or (typed in self._index and not is_folder):
            return Offer()
        resources = self._screen.chat.session.mentions.resources.search(typed, _MAX_OFFERED) if typed else []
        if typed in resources:
            return Offer()
        found = [*self._index.search(typed, _MAX_OFFERED), *resources][:_MAX_OFFERED]
        choices = (Choice(name, name) for name in found if name != typed)
        return Offer(tuple(choices), runs=bool(typed) and not is_folder)

    async def _read(self) -> None:
        self._index = await self._screen.chat.session.mentions.index()
        self._read_at = time.monotonic()
        self._screen.prompt.offer_commands()

    def forget(self) -> None:
        """Forget which mentions named no file, after the draft was sent."""
        self._plain.clear()

    async def fold(self) -> None:
        """Replace finished mentions in the box with tokens; a mention that names no file stays text."""
        while (place := self._next()) is not None:
            prompt = self._screen.prompt
            text = prompt.text[place.start : place.readings[0][1]]
            file = await self._screen.chat.session.mentions.find(place)
            folded = await self._folded(file) if file is not None else None
            if folded is None or file is None:
                self._plain.add(text)
            elif prompt.text[place.start : place.readings[0][1]] == text and not prompt.searching:
                prompt.fold_file(place.start, file.end, folded)

    async def fold_pasted(self, pasted: str, path: str) -> None:
        """Replace a path that was just pasted with the token of its picture, if it is one."""
        session, prompt = self._screen.chat.session, self._screen.prompt
        file = await session.mentions.find_picture(path)
        folded = await self._folded(file) if file is not None else None
        start = prompt.before_cursor.rfind(clean(pasted))
        if folded is not None and start >= 0 and not prompt.searching:
            prompt.fold_file(start, start + len(clean(pasted)), folded)
            self._screen.state.changed()

    def _next(self) -> Place | None:
        """Return the first finished mention that was not looked up yet."""
        prompt = self._screen.prompt
        if prompt.searching:
            return None
        cursor = len(prompt.before_cursor)
        for place in find(prompt.text):
            end = place.readings[0][1]
            if not place.start < cursor <= end and prompt.text[place.start : end] not in self._plain:
                return place
        return None

    async def _folded(self, file: MentionedFile | MentionedResource) -> FoldedFile | None:
        """Return the folded form of a file; show a notice and return None if it cannot be attached."""
        state = self._screen.state
        if file.refusal:
            state.notice(file.refusal, warning=True)
            return None
        try:
            added = await self._screen.chat.session.mentions.preview(file)
        except ChatError as error:
            state.notice(f"Not attached: {error}", warning=True)
            return None
        price = f"~{figures.tokens(added.tokens)} tokens" if added.tokens else ""
        note = ", ".join(part for part in (added.note, price) if part)
        kind = "picture" if added.picture else file.kind
        return FoldedFile(file.spelled, added.tokens, added.text, note, kind)
