"""The gauge's figures: the report of the next request, plus the draft and the streaming reply."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.agent import ChatError
from rolling_chat.commands.cache_lines import cache_word, cold_cache_lines
from rolling_chat.context.report import Fate
from rolling_chat.events import (
    CallForming,
    Event,
    ReasoningAdded,
    ReplyEnded,
    RequestStarted,
    TextAdded,
    TurnEnded,
    TurnStarted,
)
from rolling_chat.messages import Usage

if TYPE_CHECKING:
    from rolling_chat.agent import Chat, StreamedReply
    from rolling_chat.context.report import PromptReport

_log = logging.getLogger("rolling_chat.tui")

_NEWEST = 64  # newest messages searched for a reply that was just stored
_LEAVING = (Fate.SUMMARIZED, Fate.OMITTED)
_SMALLER = (Fate.SHORTENED, Fate.MASKED)


class Meter:
    """Keeps the figures of the next request that the gauge and `/context` show, all from one report.

    Nothing is counted before `begin`, because the first count loads much. If a report takes long, `wanted`
    is called to have it made in the background, and the previous one is shown until then. A sent draft
    counts until the conversation contains it, a streaming reply until it is stored: at no moment is
    anything missing or counted twice.
    """

    def __init__(self, chat: Chat, wanted: Callable[[], None]) -> None:
        self._chat = chat
        self._wanted = wanted
        self._has_begun = False
        self._report: PromptReport | None = None
        self._session = ""  # the id of the report's session
        self._counted_down: tuple[str, PromptReport] | None = (
            None  # session and report of the last turns left
        )
        self._reply: StreamedReply | None = None
        self._draft = ""
        self._sending = 0
        self._weighed: tuple[object, str] = (None, "")
        self.draft_tokens = 0

    @property
    def report(self) -> PromptReport | None:
        """The last report drawn; None before the first."""
        return self._report

    @property
    def usage(self) -> Usage:
        """What the session has used and cost."""
        return self._chat.usage

    @property
    def cache(self) -> str:
        """The remaining lifetime of the provider's cache, in words; empty if unknown."""
        status = self._chat.session.planner.cache.status if self._has_begun else None
        return cache_word(status.seconds_left if status is not None else None)

    def begin(self) -> None:
        """Start counting; call it once the tokenizer is loaded."""
        self._has_begun = True

    def take(self, event: Event) -> None:
        """Update the gauge's token figures with an event of the running turn."""
        match event:
            case TurnStarted():
                self._sending = 0
            case RequestStarted(_, _, reply_id):
                self._reply = self._chat.session.state.sizes.follow(reply_id)
            case ReasoningAdded() | TextAdded() | CallForming():
                if self._reply is not None:
                    self._reply.take(event)
            case ReplyEnded() | TurnEnded():
                self._reply = None
            case _:
                pass

    def turn_over(self) -> None:
        """Stop counting the sent draft and the streamed reply separately, once the turn has ended."""
        self._reply, self._sending = None, 0

    @property
    def is_ready(self) -> bool:
        """Whether drafts can be counted yet."""
        return self._has_begun

    def weigh(self, text: str) -> int:
        """Return the tokens that a draft would add to the next request; call it from any thread."""
        return self._chat.session.state.sizes.of_draft(text) if text.strip() else 0

    def show_draft(self, draft: str, tokens: int) -> None:
        """Record the prompt box's draft and its size in tokens, for the gauge to show."""
        self._draft, self.draft_tokens = draft if tokens else "", tokens

    def price(self, text: str) -> int:
        """Estimate the tokens of a paste at once, a long one by sampling; return 0 before `begin`."""
        if not self.is_ready:
            return 0
        return self._chat.session.state.sizes.about(text) if text.strip() else 0

    def send_draft(self, *, is_next: bool = True) -> None:
        """Clear the draft; with `is_next`, count it as being sent until the turn starts."""
        self._sending = self.draft_tokens if is_next else 0
        self._draft, self.draft_tokens = "", 0

    def reading(self) -> PromptReport | None:
        """Return the report of the next request, the draft and the streamed reply included."""
        report = self._newest_report()
        if report is None:
            return None
        said = report.without_stand_ins().grown(self._streamed())
        if self._counted_down is not None and self._counted_down[0] == self._session:
            said = said.after(self._counted_down[1])
        self._counted_down = (self._session, said)
        return said.with_draft(self.draft_tokens + self._sending)

    def draft_hints(self, *, busy: bool) -> tuple[str, ...]:
        """Return texts, longest first, on the draft's tokens and what it would drop; none without a draft."""
        if not self.draft_tokens:
            return ()
        price = f"+{figures.tokens(self.draft_tokens)}"
        effect = "" if busy else self._effect()
        cold = () if busy or effect else self._cold()
        if cold:
            return f"this message {price} tokens · {cold[0]}", f"{price} · {cold[0]}", *cold, price
        if not effect:
            return f"this message {price} tokens", f"{price} tokens", price
        short = effect.replace(" messages ", " ").replace(" message ", " ")
        return (
            f"this message {price} tokens · {effect}",
            f"{price} tokens · {effect}",
            f"{price} · {short}",
            short,
        )

    def _newest_report(self) -> PromptReport | None:
        if not self._has_begun:
            return None
        session = self._chat.session.info.id
        if not self._chat.session.preview.is_ready:
            self._wanted()
            return self._report if session == self._session else None
        try:
            self._report, self._session = self._chat.session.preview.report(), session
        except ChatError as error:
            _log.warning("no report: %s", error)
        return self._report

    def _cold(self) -> tuple[str, ...]:
        """Return texts on the cost of a request when the cache is cold; none while it is warm."""
        cache, report = self._chat.session.planner.cache, self._newest_report()
        status = cache.status
        if report is None or status is None or status.seconds_left > 0:
            return ()
        tokens = report.token_count + self.draft_tokens
        return cold_cache_lines(tokens, cache.fresh_price(tokens))

    def _streamed(self) -> int:
        reply = self._reply
        if reply is None or any(
            message.id == reply.reply_id for message in self._chat.session.conversation.recent[-_NEWEST:]
        ):
            return 0
        return reply.tokens

    def _effect(self) -> str:
        """Return what sending the draft would do to the rest of the prompt; empty if there is room for it."""
        report = self._newest_report()
        # estimates have an error band: near the limit, only the pipeline can tell
        if report is None or 2 * self.draft_tokens < report.until_trim:
            return ""
        if not report.within_budget or self.draft_tokens > 2 * report.room:
            return "does not fit"
        asked = (report, self._draft)
        if self._weighed[0] != asked:
            if not self._chat.session.preview.can_vary:
                return ""
            self._weighed = (asked, _difference(report, self._chat.session.preview.report_with(self._draft)))
        return self._weighed[1]


def _difference(before: PromptReport, after: PromptReport) -> str:
    if not after.within_budget:
        return "does not fit"
    leaving = after.count(*_LEAVING) - before.count(*_LEAVING)
    if leaving > 0:
        return f"{figures.plural(leaving, 'message')} {'leaves' if leaving == 1 else 'leave'}"
    smaller = after.count(*_SMALLER) - before.count(*_SMALLER)
    return f"{smaller:,} shortened" if smaller > 0 else ""
