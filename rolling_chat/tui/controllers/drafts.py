"""The prompt box's draft: counting, saving, sending, queueing, restoring, and editing it elsewhere."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from rolling_chat.commands import Completer, complete, parse
from rolling_chat.tui.controllers.background import Coalesced, Workplace
from rolling_chat.tui.controllers.mentions import MentionController, picture_path
from rolling_chat.tui.drafts.draft_files import DraftFiles, DraftOrigin, PasteFiles, save_quietly
from rolling_chat.tui.drafts.pastes import Draft, folded
from rolling_chat.tui.drafts.prompt_history import History
from rolling_chat.tui.drafts.vim import VimKeys
from rolling_chat.tui.terminal.external import ExternalError, edit_text
from rolling_chat.tui.widgets.prompt_box import PromptBox

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App
    from textual.timer import Timer

    from rolling_chat.agent import Chat
    from rolling_chat.settings.paths import Paths
    from rolling_chat.tui.controllers.commands import CommandController
    from rolling_chat.tui.controllers.meter import Meter
    from rolling_chat.tui.controllers.question_slot import Asking
    from rolling_chat.tui.controllers.turn_controller import TurnController
    from rolling_chat.tui.state.screen_state import ScreenState
    from rolling_chat.tui.widgets.completion import Completion
    from rolling_chat.tui.widgets.search_line import SearchLine

_COUNT_PAUSE = 0.12  # seconds without a key before the draft is counted
_SAVE_WITHIN = 0.3  # seconds from a key until the draft is saved
_BACK = "The draft that was not sent is back; ctrl+c clears it."


class DraftStage(Workplace, Protocol):
    """The part of the screen that drafts use."""

    chat: Chat
    state: ScreenState

    @property
    def app(self) -> App[Any]:
        """The app, which suspends itself while an external editor has the terminal."""
        ...

    @property
    def prompt(self) -> PromptBox:
        """The prompt box, which contains the draft."""
        ...

    def set_timer(self, delay: float, callback: Callable[[], None] | None = None) -> Timer:
        """Call a function after a delay."""
        ...


class DraftController:
    """Counts, saves, sends and queues the prompt box's draft; without `paths`, nothing is saved."""

    def __init__(
        self,
        screen: DraftStage,
        asking: Asking,
        turns: TurnController,
        commands: CommandController,
        meter: Meter,
        *,
        paths: Paths | None,
    ) -> None:
        self._screen = screen
        self._asking = asking
        self._turns = turns
        self._commands = commands
        self._meter = meter
        pastes = PasteFiles(paths.pastes_dir if paths is not None else None)
        self._pastes = pastes
        self._files = DraftFiles(paths.drafts_dir if paths is not None else None, pastes)
        self._mentions = MentionController(screen)
        self._history = History(paths.history_file if paths is not None else None, pastes)
        self._session = ""
        self._count_timer: Timer | None = None
        self._save_timer: Timer | None = None
        self._counting = Coalesced(self._count)
        self._saving = Coalesced(self._save)

    def make_box(self, completion: Completion, search: SearchLine) -> PromptBox:
        """Create the prompt box, with its history and its completion."""
        offer = Completer(self._commands).offer
        box = PromptBox(
            self._history,
            completion,
            search,
            offer,
            offer_files=self._mentions.offer,
            price=self._meter.price,
            id="prompt",
        )
        box.vim = VimKeys() if self._screen.chat.settings.screen.vim else None
        return box

    @property
    def _prompt(self) -> PromptBox:
        return self._screen.prompt

    # -- sent and waiting

    def submitted(self, draft: Draft, *, after_turn: bool = False) -> None:
        """Run a command or send a message; an empty draft continues an interrupted answer.

        While a turn runs, a message waits for the next tool result, or with `after_turn` for its end.
        """
        text, state = draft.whole, self._screen.state
        is_word = self._asking.takes_words and text.lstrip().startswith("!")
        parsed = None if is_word else parse(draft.command_line)
        if parsed is None and self._asking.give_words(text.strip()):
            self._sent(draft, is_next=False)
            return
        if text.strip():
            self._asking.cancel()
        if parsed is not None:
            self._sent(draft, is_next=False)
            self._screen.work(partial(self._commands.run, parsed))
        elif not text.strip():
            if state.can_carry_on:
                self._screen.work(self._turns.carry_on())
        elif state.busy:
            self._sent(draft, is_next=False)
            self._screen.chat.waiting.add(draft.said, after_turn=after_turn)
            self.waiting_changed()
        else:
            self._sent(draft)
            self._screen.work(self._turns.say(draft.said))

    def take_back(self) -> None:
        """Move the newest waiting message to the prompt box, above what was moved before."""
        if not self._screen.chat.waiting:  # it was sent meanwhile
            return
        self.give_back(self._screen.chat.waiting.take_newest())
        self._prompt.allow_take_back()
        self.waiting_changed()

    def waiting_changed(self) -> None:
        """Show the waiting messages, and save them with the draft."""
        self._save_soon()
        self._screen.state.changed()

    def give_back(self, text: str) -> None:
        """Put unsent text, with its mentions marked, in the prompt box, above what is typed there."""
        below = self._prompt.draft.said
        self._prompt.put(f"{text}\n{below}" if below.strip() else text)

    def _sent(self, draft: Draft, *, is_next: bool = True) -> None:
        self._history.add(draft)
        self._mentions.forget()
        self._meter.send_draft(is_next=is_next)
        self._save_soon()

    def pasted(self, text: str) -> None:
        """Attach a picture whose path was pasted, as dragging a file into a terminal does."""
        path = picture_path(text)
        if path:
            self._screen.work(partial(self._mentions.fold_pasted, text.strip(), path))

    # -- counted

    def changed(self) -> None:
        """Handle a change of the draft: fit the box, and schedule counting and saving."""
        self._prompt.grow()
        self._prompt.offer_commands()
        self._save_soon()
        if self._count_timer is None:
            self._count_timer = self._screen.set_timer(_COUNT_PAUSE, self.count)
        else:
            self._count_timer.reset()

    def count(self) -> None:
        """Count the draft's tokens in the background."""
        self._count_timer = None
        self._counting.ask(self._screen)

    async def _count(self) -> None:
        if not self._meter.is_ready:
            return
        await self._mentions.fold()
        draft = self._prompt.draft
        text = draft.whole
        is_command = parse(text) is not None or bool(complete(text))
        tokens = 0 if is_command else await asyncio.to_thread(self._meter.weigh, text)
        if tokens and draft.attached:
            tokens += sum(file.tokens for file in draft.attached)
            text = "\n\n".join((text, *(file.text for file in draft.attached)))
        if self._prompt.text or not tokens:  # an empty box: the draft was sent meanwhile
            self._meter.show_draft(text, tokens)
        self._screen.state.changed()

    # -- kept

    def session_opened(self) -> None:
        """Restore the unsent draft of the session just opened, if the prompt box is empty."""
        chat = self._screen.chat
        if chat.session.info.id == self._session:
            return
        self._session = chat.session.info.id
        if self._prompt.text:
            self._save_soon()
            return
        left = self._files.take(self._place)
        said = [message for message in chat.session.conversation.recent if message.role == "user"]
        unsent = left.unsent(said)
        if unsent:
            price = self._meter.price
            self._prompt.put(unsent if isinstance(unsent, Draft) else folded(unsent, left.pastes, price))
            self._screen.state.notice(_BACK)
        self._save_soon()

    def tidy(self) -> None:
        """Delete draft and paste files that were not used for a long time."""
        self._screen.work(partial(asyncio.to_thread, self._prune))

    def _prune(self) -> None:
        self._files.prune()
        self._pastes.prune()

    async def settle(self) -> None:
        """Save the draft before the program quits."""
        await self._saving.idle.wait()
        await self._save()

    @property
    def _place(self) -> DraftOrigin:
        chat = self._screen.chat
        return DraftOrigin(
            chat.session.info.on_disk, chat.session.info.folder, is_new=not chat.session.conversation.recent
        )

    def _save_soon(self) -> None:
        if self._save_timer is None:
            self._save_timer = self._screen.set_timer(_SAVE_WITHIN, self._save_now)

    def _save_now(self) -> None:
        self._save_timer = None
        self._saving.ask(self._screen)

    async def _save(self) -> None:
        waiting = [self._prompt.refolded(message.text) for message in self._screen.chat.waiting]
        await asyncio.to_thread(save_quietly, self._files, self._place, self._prompt.own_draft, waiting)

    # -- edited elsewhere

    async def edit_outside(self) -> None:
        """Let the user edit the draft in an external editor."""
        prompt, state = self._prompt, self._screen.state
        before = prompt.draft.whole
        try:
            text = await edit_text(self._screen.app, before)
        except ExternalError as error:
            state.notice(str(error), warning=True)
            return
        now = prompt.draft.whole
        # an unsent message may have been put back meanwhile, above the edited text
        text = now.removesuffix(before) + text
        if text != now:
            prompt.rewrite(text)
