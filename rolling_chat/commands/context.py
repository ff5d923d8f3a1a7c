"""/context: show the report of the next request, by category and by message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.commands.base import Column, Command, CommandContext, Inspection, Table
from rolling_chat.commands.marks import Mark, mark_of
from rolling_chat.context.report import Fate, PromptReport, Row
from rolling_chat.lazily import Lazily
from rolling_chat.text import exact, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolling_chat.agent import PinScope
    from rolling_chat.messages import Message

_PREVIEW_CHARS = 60
_NAMES_SETTING = "/rolling-context set omitted_names"
_MAX_NAME = 40
_MIN_BAND = 0.005  # a narrower band rounds to nothing
_MAX_BAND = 99  # percent; a larger figure would only say that little is known
_MAX_TURNS = 50  # more turns cannot be predicted, so they are not counted down


def category_table(
    report: PromptReport,
    instructions: Sequence[tuple[str, int]] = (),
    skills: Sequence[tuple[str, int]] = (),
    servers: Sequence[tuple[str, int, int]] = (),
) -> Table:
    """Return a table that divides the window of one request by category, with hints to shrink each.

    `instructions` are the files in the system prompt and `skills` those that it lists, with their tokens;
    each has a row of its own, as do the tools of MCP `servers`, given by name, number and tokens.
    """
    notices = [("notes", report.notes, "/notes"), ("names of what left", report.names, _NAMES_SETTING)]
    own = report.system - report.notes - report.names
    rest = max(0, own - sum(size for _, size in (*instructions, *skills)))
    files = [(one_line(exact(name), _MAX_NAME), size, "/memory") for name, size in instructions]
    rows = [
        ("system prompt", rest, ""),
        *files,
        *((one_line(f"skill {name}", _MAX_NAME), size, "/skills") for name, size in skills),
        *(row for row in notices if row[1]),
        ("tools", max(0, report.tools - sum(size for *_, size in servers)), "agent.tools in the settings"),
        *(
            (one_line(f"{name} (MCP, {figures.plural(count, 'tool')})", _MAX_NAME), size, f"/mcp off {name}")
            for name, count, size in servers
        ),
        ("summary", report.summary, "/summary"),
        ("history", report.history, "/compact" if report.rolling else "/rolling-context on"),
        ("current turn", report.current, "/exclude last"),
        ("draft", report.draft, "ctrl+c"),
        ("reserve for the answer", report.reserve, "/rolling-context set reserved_output_tokens"),
        ("safety margin", report.margin, "/rolling-context set safety_margin"),
    ]
    used = sum(size for _, size, _ in rows)
    rows.append(("free", max(0, report.window - used), ""))
    return Table(
        (
            Column("category"),
            Column("tokens", right=True),
            Column("of window", right=True),
            Column("made smaller by", spare=True),
        ),
        tuple(
            (name, f"{size:,}", _share(size, report.window), how if size else "") for name, size, how in rows
        ),
    )


def message_table(rows: Sequence[Row], messages: Sequence[Message], pins: PinScope | None = None) -> Table:
    """Return a table of the branch's messages, newest first, with tokens, fate, reason and pin marks."""
    last = len(rows) - 1

    def drawn(at: int) -> tuple[str, ...]:
        row = rows[last - at]
        return _row(row, _message_of(row, messages), mark_of(row.id, pins))

    return Table(
        (
            Column("id", right=True),
            Column("role"),
            Column("tokens", right=True),
            Column("fate"),
            Column("begins"),
        ),
        Lazily(len(rows), drawn),
    )


def _message_of(row: Row, messages: Sequence[Message]) -> Message | None:
    """Return the message of a row; the branch's messages begin at index 1."""
    message = messages[row.index - 1] if 0 < row.index <= len(messages) else None
    return message if message is not None and message.id == row.id else None


def _row(row: Row, message: Message | None, mark: Mark) -> tuple[str, ...]:
    begins = preview(message) if message is not None else row.reason
    sign = f"{mark.sign} " if mark else ""
    fate = ", ".join(filter(None, (_fate(row), mark.words)))
    if row.fate is Fate.EXCLUDED and mark:
        fate = mark.words
    return (f"{sign}r{row.index}", row.role, size_of(row), fate, begins)


def size_of(row: Row) -> str:
    """Return a message's tokens, before and after if they differ: `4,963 → 898`."""
    if row.tokens_after == row.tokens_before:
        return f"{row.tokens_before:,}"
    return f"{row.tokens_before:,} → {row.tokens_after:,}"


def _fate(row: Row) -> str:
    if row.fate is Fate.SENT:
        return row.fate.word
    layer = f" (layer {row.layer})" if row.layer and row.fate is not Fate.SUMMARIZED else ""
    return f"{row.fate.word}{layer}{': ' + row.reason if row.reason else ''}"


def preview(message: Message) -> str:
    """Return the beginning of a message on one line."""
    text = " ".join(message.prose[: 4 * _PREVIEW_CHARS].split())
    if message.note:  # it is included in the count
        text = f"{text[: _PREVIEW_CHARS // 2]} {message.note}"
    calls = ", ".join(f"{call.name}(…)" for call in message.tool_calls)
    if message.writes_calls:
        text = f"calls as text: {calls} {text}".rstrip()
    text = text or calls
    return text if len(text) <= _PREVIEW_CHARS else text[: _PREVIEW_CHARS - 1] + "…"


def _share(size: int, window: int) -> str:
    return figures.percent(100 * size / window) if window else "unknown"


def sign_of(report: PromptReport) -> str:
    """Return `~` if the report's total is an estimate, else an empty text."""
    return "" if report.exact and not report.draft else "~"


def band_of(report: PromptReport) -> str:
    """Return the error band of a report's total, such as ` ±2%`; empty if it rounds to nothing."""
    if report.band < _MIN_BAND:
        return ""
    return f" ±{min(100 * report.band, _MAX_BAND):.0f}%"


def left_out(report: PromptReport) -> int:
    """Return the number of messages that are not sent: summarized, omitted or excluded."""
    return report.count(Fate.SUMMARIZED, Fate.OMITTED, Fate.EXCLUDED)


def turns_left(report: PromptReport) -> str:
    """Return `≈ 23 turns left`: until the next trim or, with rolling off, the refusal.

    It is empty if unknown, or if there are too many to matter.
    """
    left = report.turns_left
    if left is None or left >= _MAX_TURNS or not report.within_budget:
        return ""
    return f"≈ {figures.tokens(left)} {'turn' if left == 1 else 'turns'} left" if left else "<1 turn left"


def lead(report: PromptReport, cost: float | None = None) -> list[str]:
    """Return the lines above the tables: model, total and next trim; `cost` is in US dollars."""
    size = f"{sign_of(report)}{report.used:,}{band_of(report)}"
    share = f", {figures.percent(report.percent)}" if report.window else ""
    window = f" of {report.window:,}" if report.window else ""
    lines = [f"{report.model}: the next request is {size}{window} tokens{share}"]
    what = "the next trim" if report.rolling else "the refusal"
    if report.trim_at:
        turns = turns_left(report)
        lines.append(
            f"rolling context is {'on' if report.rolling else 'off'}; "
            f"{what} comes at {report.trim_at:,} tokens{f', {turns}' if turns else ''}"
        )
    if not report.within_budget:
        lines.append("it does not fit the window and would not be sent")
    count = left_out(report)
    if count:
        lines.append(f"{figures.plural(count, 'message')} left out")
    if figures.cost(cost):
        lines.append(f"the session has cost {figures.cost(cost)}")
    return lines


def inspection(context: CommandContext) -> Inspection:
    """Return the lines and tables for the next request."""
    chat, report = context.chat, context.report
    messages = message_table(report.rows, chat.session.messages, chat.session.pins.scope)
    indexes = range(len(report.rows) - 1, -1, -1)  # rows have the same indices as their messages
    lines = lead(report, chat.usage.cost)
    session = chat.session
    categories = category_table(
        report, session.instruction_sizes(), session.skill_sizes(), session.servers.sizes
    )
    return Inspection(tuple(lines), (categories, messages), indexes)


def _run(context: CommandContext, _argument: str) -> None:
    context.show_inspector(lambda: inspection(context))


CONTEXT = Command(
    "context", "", "What the next request holds, by category and by message", _run, while_busy=True
)
