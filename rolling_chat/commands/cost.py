"""/cost: show the usage and the cost of this session."""

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
_MISSES = (
    Column("cache missed"),
    Column("requests", right=True),
    Column("read anew", right=True),
    Column("because", spare=True),
)
_BECAUSE = {
    "expired": "nothing was sent for longer than the provider keeps a prompt",
    "trimmed": "older messages left the prompt, or were shortened in it",
    "model": "another model or another reasoning effort has a cache of its own",
    "tools": "the tools changed, which stand before everything else",
    "instructions": "the system prompt or an instruction file changed",
    "provider": "the prompt began as before: the provider had dropped it early",
}


def _miss_row(cause: str, requests: int, tokens: int) -> tuple[str, ...]:
    return (cause, f"{requests:,}", f"{tokens:,}", _BECAUSE.get(cause, ""))


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
    session = context.chat.session
    used, spent, misses = await context.chat.apart(
        lambda: (session.usage_by_purpose(), session.spending.lines(), session.cache_misses())
    )
    total = sum((usage for _, usage, _ in used.values()), Usage())
    requests = sum(count for count, _, _ in used.values())
    unpriced = sum(count for _, _, count in used.values())
    if not requests:
        context.say("Nothing was sent in this session yet.")
        return
    names = {"answer": "answers", "summary": "summaries", "task": "tasks"}
    rows = [_row(names.get(purpose, purpose), count, usage) for purpose, (count, usage, _) in used.items()]
    rows.append(_row("all", requests, total))
    cached = 100 * total.cached_read_tokens / total.input_tokens if total.input_tokens else 0.0
    lead = [f"{figures.percent(cached)} of the input came from the provider's cache"]
    if unpriced:
        lead.append(f"the price of {figures.plural(unpriced, 'request')} is unknown, and not in the cost")
    lead += spent
    tables = [Table(_HEAD, tuple(rows))]
    if misses:
        tables.append(Table(_MISSES, tuple(_miss_row(*miss) for miss in misses)))
    context.show_tables("Cost of this session", lead, tables)


COST = Command("cost", "", "What the session has used and cost", _run, while_busy=True)
