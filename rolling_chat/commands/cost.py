"""/cost: what this session has used and cost."""

from __future__ import annotations

from rolling_chat import figures
from rolling_chat.commands.base import Column, Command, CommandContext, Table
from rolling_chat.messages import Usage

_HEAD = (
    Column("what"),
    Column("requests", right=True),
    Column("input", right=True),
    Column("from cache", right=True),
    Column("into cache", right=True),
    Column("output", right=True),
    Column("cost", right=True),
)


def _row(what: str, requests: int, usage: Usage) -> tuple[str, ...]:
    return (
        what,
        f"{requests:,}",
        f"{usage.input_tokens:,}",
        f"{usage.cached_read_tokens:,}",
        f"{usage.cached_write_tokens:,}",
        f"{usage.output_tokens:,}",
        "unknown" if usage.cost is None else figures.dollars(usage.cost),
    )


async def _run(context: CommandContext, _argument: str) -> None:
    used = context.chat.session.usage_by_purpose()
    total = sum((usage for _, usage in used.values()), Usage())
    requests = sum(count for count, _ in used.values())
    if not requests:
        context.say("Nothing was sent in this session yet.")
        return
    names = {"answer": "answers", "summary": "summaries"}
    rows = [_row(names.get(purpose, purpose), *part) for purpose, part in used.items()]
    rows.append(_row("all", requests, total))
    cached = 100 * total.cached_read_tokens / total.input_tokens if total.input_tokens else 0.0
    lead = [f"{figures.percent(cached)} of the input came from the provider's cache"]
    lead += context.chat.session.spending.lines()
    context.show_tables("Cost of this session", lead, [Table(_HEAD, tuple(rows))])


COST = Command("cost", "", "What the session has used and cost", _run, while_busy=True)
