"""Report a replay in numbers: a JSON row per request, a table row per conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from rolling_chat.context import Fate
from rolling_chat.figures import plural
from rolling_chat.messages import Json
from rolling_chat.replay.run import Replayed
from rolling_chat.replay.transcripts import Transcript
from rolling_chat.text import one_line

if TYPE_CHECKING:
    from rich.table import Table

_LONGEST_ID = 48
_COLUMNS = (
    "conversation", "requests", "max tokens", "trims",
    "dropped", "masked", "truncated", "overflows", "cached",
)  # fmt: skip


ROW_COLUMNS: Mapping[str, Literal["text", "number", "yes or no"]] = MappingProxyType(
    {
        "file": "text",
        "conversation": "text",
        "request": "number",
        "at_message": "number",
        "token_count": "number",
        "bound": "number",
        "max_input_tokens": "number",
        "reserve": "number",
        "margin": "number",
        "within_budget": "yes or no",
        "overflow": "text",
        "kept": "number",
        "dropped": "number",
        "masked": "number",
        "truncated": "number",
        "summarised": "number",
        "cached_prefix_tokens": "number",
    }
)
"""The columns that `as_row` makes, in order; `messages` follows them."""


def as_row(
    replayed: Replayed, *, file: str | None = None, prompt_of: Transcript | None = None
) -> dict[str, Json]:
    """Convert one request to a row for JSON; sizes in tokens, fates in messages.

    `file` is the file of the conversation, None for a saved session. With `prompt_of`, the replayed
    transcript, the row includes the prompt as `messages`; unchanged messages are the transcript's own
    dictionaries.
    """
    report = replayed.report
    fates = Counter(replayed.fates)
    row: dict[str, Json] = {
        "file": file,
        "conversation": replayed.conversation,
        "request": replayed.request,
        "at_message": replayed.at_message,
        "token_count": report.token_count,
        "bound": report.bound,
        "max_input_tokens": report.window,
        "reserve": report.reserve,
        "margin": report.margin,
        "within_budget": report.within_budget,
        "overflow": replayed.overflow or None,
        "kept": fates[Fate.SENT],
        "dropped": fates[Fate.OMITTED] + fates[Fate.EXCLUDED],
        "masked": fates[Fate.MASKED],
        "truncated": fates[Fate.SHORTENED],
        "summarised": fates[Fate.SUMMARIZED],
        "cached_prefix_tokens": replayed.cached_prefix_tokens,
    }
    if prompt_of is not None:
        row["messages"] = [prompt_of.as_given(message) for message in replayed.prompt]
    return row


@dataclass(slots=True)
class Tally:
    """The totals of the requests of one conversation, or of all.

    `masked`, `truncated`, `dropped` and `repaired` are the maximum of any request, because a message that was
    masked in ten requests is one message.
    """

    conversation: str
    requests: int = 0
    most_tokens: int = 0
    trims: int = 0
    dropped: int = 0
    masked: int = 0
    truncated: int = 0
    overflows: int = 0
    tokens: int = 0
    cached: int = 0
    repaired: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    first_overflow: str = ""
    smallest_window: int = 0

    def add(self, replayed: Replayed) -> None:
        """Add one request's figures to the totals."""
        fates = Counter(replayed.fates)
        self.requests += 1
        self.dropped = max(self.dropped, fates[Fate.OMITTED] + fates[Fate.EXCLUDED] + fates[Fate.SUMMARIZED])
        self.masked = max(self.masked, fates[Fate.MASKED])
        self.truncated = max(self.truncated, fates[Fate.SHORTENED])
        self._add_repairs(replayed)
        if replayed.overflow:
            self.overflows += 1
            self.smallest_window = max(self.smallest_window, replayed.smallest_window)
            if not self.first_overflow:
                where = f"{replayed.conversation}, request {replayed.request}"
                self.first_overflow = f"{where}: {replayed.overflow}"
            return
        self.trims += replayed.report.trimmed
        self.most_tokens = max(self.most_tokens, replayed.report.token_count)
        self.tokens += replayed.report.token_count
        self.cached += replayed.cached_prefix_tokens

    def _add_repairs(self, replayed: Replayed) -> None:
        repaired = sum(replayed.repairs.values())
        if repaired > self.repaired:
            self.repaired, self.reasons = repaired, Counter(replayed.repairs)

    def add_repaired(self, messages: int) -> None:
        """Count messages that had to be repaired when the transcript was read."""
        if messages:
            self.repaired += messages
            self.reasons["a field of the wrong type"] += messages

    @property
    def cached_share(self) -> float:
        """The share, 0 to 1, of sent tokens that the previous request had too: a cache could serve them."""
        return self.cached / self.tokens if self.tokens else 0.0

    def include(self, other: Tally) -> None:
        """Add the totals of another conversation, or of several."""
        self.requests += other.requests
        self.most_tokens = max(self.most_tokens, other.most_tokens)
        self.trims += other.trims
        self.dropped += other.dropped
        self.masked += other.masked
        self.truncated += other.truncated
        self.overflows += other.overflows
        self.first_overflow = self.first_overflow or other.first_overflow
        self.smallest_window = max(self.smallest_window, other.smallest_window)
        self.tokens += other.tokens
        self.cached += other.cached
        self.repaired += other.repaired
        self.reasons += other.reasons


@dataclass(slots=True)
class Totals:
    """The totals of all conversations; `left_out` counts those that could not be replayed."""

    whole: Tally = field(default_factory=lambda: Tally("all"))
    conversations: int = 0
    repaired: int = 0
    left_out: int = 0

    @classmethod
    def of(cls, tallies: Iterable[Tally]) -> Totals:
        """Add up the totals of conversations."""
        totals = cls()
        for tally in tallies:
            totals.add(tally)
        return totals

    def add(self, tally: Tally) -> None:
        """Add the totals of a conversation."""
        self.whole.include(tally)
        self.conversations += 1
        self.repaired += tally.repaired > 0

    def to_json(self) -> dict[str, Json]:
        """Return the totals as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Totals:
        """Read totals that `to_json` returned. Raises KeyError, TypeError or ValueError for anything else."""
        whole = Tally(**{**value["whole"], "reasons": Counter(value["whole"]["reasons"])})
        return cls(whole, *(int(value[name]) for name in ("conversations", "repaired", "left_out")))


def draw_table(tallies: Sequence[Tally]) -> Table:
    """Draw a table with one line per conversation, and one for all if there are several."""
    from rich.table import Table  # noqa: PLC0415  # not needed for JSON

    table = Table(box=None, pad_edge=False)
    for column in _COLUMNS:
        is_name = column == "conversation"
        # a long name is wrapped, because names often differ only at their ends
        justify: Literal["left", "right"] = "left" if is_name else "right"
        table.add_column(column, justify=justify, no_wrap=not is_name, overflow="fold")
    for tally in tallies:
        _add_line(table, tally)
    if len(tallies) > 1:
        table.add_section()
        _add_line(table, Totals.of(tallies).whole, style="bold")
    return table


def _add_line(table: Table, tally: Tally, style: str = "") -> None:
    from rich.text import Text  # noqa: PLC0415  # as above

    figures = (
        tally.requests, tally.most_tokens, tally.trims, tally.dropped, tally.masked, tally.truncated,
    )  # fmt: skip
    table.add_row(
        Text(_short_name(tally.conversation)),
        *(f"{figure:,}" for figure in figures),
        Text(f"{tally.overflows:,}", style="red" if tally.overflows else ""),
        f"{tally.cached_share:.0%}",
        style=style,
    )


def _short_name(conversation: str) -> str:
    """Return the beginning and the end of a long conversation name."""
    name = one_line(conversation)
    half = _LONGEST_ID // 2
    return name if len(name) <= _LONGEST_ID else f"{name[:half]}…{name[1 - half :]}"


def refusals_line(totals: Totals) -> str:
    """Return a line on the requests that did not fit: how many, why, and the window that they need."""
    whole = totals.whole
    if not whole.overflows:
        return ""
    return (
        f"refused: {whole.overflows:,} of {plural(whole.requests, 'request')}; "
        f"a window of {whole.smallest_window:,} tokens would do for all of them\n"
        f"the first: {one_line(whole.first_overflow)}"
    )


def repairs_line(totals: Totals) -> str:
    """Return a line on the repairs in all transcripts; empty if there were none."""
    whole = totals.whole
    if not whole.repaired:
        return ""
    what = ", ".join(f"{count:,} × {reason or 'repaired'}" for reason, count in whole.reasons.most_common(4))
    return (
        f"repaired in the prompts: {plural(whole.repaired, 'message')} "
        f"of {plural(totals.repaired, 'conversation')} ({what})"
    )
