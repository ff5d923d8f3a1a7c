"""/context: the report of the next request, by category and by message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat.commands import figures
from rolling_chat.commands.base import Column, Command, CommandContext, Inspection, Table
from rolling_chat.commands.marks import Mark, mark_of
from rolling_chat.context.report import Fate, PromptReport, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolling_chat.agent import Chat, HeldIds
    from rolling_chat.messages import Message

_PREVIEW_CHARS = 60


def category_table(report: PromptReport) -> Table:
    """The division of the window for one request."""
    rows = [
        ("system prompt", report.system),
        ("tools", report.tools),
        ("summary", report.summary),
        ("history", report.history),
        ("current turn", report.current),
        ("draft", report.draft),
        ("reserve for the answer", report.reserve),
        ("safety margin", report.margin),
    ]
    used = sum(size for _, size in rows)
    rows.append(("free", max(0, report.window - used)))
    return Table(
        (Column("category"), Column("tokens", right=True), Column("of window", right=True)),
        tuple((name, f"{size:,}", _share(size, report.window)) for name, size in rows),
    )


def message_table(rows: Sequence[Row], messages: Sequence[Message], held: HeldIds | None = None) -> Table:
    """Messages of the branch, newest first: its tokens, its fate and the reason; what is `held` is marked."""
    by_id = {message.id: message for message in messages if message.id}
    return Table(
        (
            Column("id", right=True),
            Column("role"),
            Column("tokens", right=True),
            Column("fate"),
            Column("begins"),
        ),
        tuple(_row(row, by_id, mark_of(row.id, held)) for row in reversed(rows)),
    )


def _row(row: Row, by_id: dict[str, Message], mark: Mark) -> tuple[str, ...]:
    message = by_id.get(row.id)
    begins = preview(message) if message is not None else row.reason
    sign = f"{mark.sign} " if mark else ""
    fate = ", ".join(filter(None, (_fate(row), mark.words)))
    if row.fate is Fate.EXCLUDED and mark:
        fate = mark.words
    return (f"{sign}r{row.index}", row.role, size_of(row), fate, begins)


def size_of(row: Row) -> str:
    """The tokens of a message, before and after where they differ: `4,963 → 898`."""
    if row.tokens_after == row.tokens_before:
        return f"{row.tokens_before:,}"
    return f"{row.tokens_before:,} → {row.tokens_after:,}"


def _fate(row: Row) -> str:
    if row.fate is Fate.SENT:
        return row.fate.value
    layer = f" (layer {row.layer})" if row.layer and row.fate is not Fate.SUMMARISED else ""
    return f"{row.fate.value}{layer}{': ' + row.reason if row.reason else ''}"


def preview(message: Message) -> str:
    """The beginning of a message on one line."""
    text = " ".join(message.text[: 4 * _PREVIEW_CHARS].split())
    if not text and message.tool_calls:
        text = ", ".join(f"{call.name}(…)" for call in message.tool_calls)
    return text if len(text) <= _PREVIEW_CHARS else text[: _PREVIEW_CHARS - 1] + "…"


def _share(size: int, window: int) -> str:
    return figures.percent(100 * size / window) if window else "unknown"


def lead(report: PromptReport) -> list[str]:
    """The lines above the tables: model, total, the mark of the next trim."""
    sign = "" if report.exact else "~"
    window = f" of {report.window:,}" if report.window else ""
    lines = [f"{report.model}: the next request is {sign}{report.used:,}{window} tokens"]
    what = "the next trim" if report.rolling else "the refusal"
    if report.trim_at:
        lines.append(
            f"rolling context is {'on' if report.rolling else 'off'}; "
            f"{what} comes at {report.trim_at:,} tokens"
        )
    if not report.within_budget:
        lines.append("it does not fit the window and would not be sent")
    return lines


def inspection(chat: Chat) -> Inspection:
    """The next request of a chat as it is now."""
    report = chat.report()
    messages = message_table(report.rows, chat.messages, chat.pins.held)
    places = tuple(row.index for row in reversed(report.rows))
    return Inspection(tuple(lead(report)), (category_table(report), messages), places)


def _run(context: CommandContext, _argument: str) -> None:
    context.show_inspector(lambda: inspection(context.chat))


CONTEXT = Command(
    "context", "", "What the next request holds, by category and by message", _run, while_busy=True
)
