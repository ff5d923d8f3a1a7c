"""/rolling-context: switch rolling context, show what it does, and preview, set and undo settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.commands.base import Arguments, Choice, Command, CommandContext
from rolling_chat.commands.context import message_table
from rolling_chat.context.report import Fate, PromptReport, Row
from rolling_chat.setting_rules import Rule
from rolling_chat.settings.schema import RULES

if TYPE_CHECKING:
    from rolling_chat.agent import Chat

_LEFT_OUT = {Fate.SUMMARIZED: "summarized", Fate.OMITTED: "omitted"}
_SMALLER = {Fate.MASKED: "masked", Fate.SHORTENED: "shortened"}
_NAME = "/rolling-context"
_RULES: dict[str, Rule] = {
    path[1]: rule for path, rule in RULES.items() if path[0] == "context" and len(path) == 2
}


async def describe(chat: Chat) -> str:
    """Return one line: whether rolling is on, the history cap and the window, and what is dropped."""
    if chat.session.rolling:
        await chat.session.preview.ready()
        report = chat.session.preview.report()
        changes = _changes(report)
        what = f"{changes}, and kept on disk" if changes else "nothing is left out now"
        return f"Rolling context is on: {_cap(report)}; {what}.{_overflow(report)}"
    report = await chat.session.overrides.preview()
    changes = _changes(report)
    would = f"{changes} in the next request" if changes else "nothing would leave now"
    return (
        "Rolling context is off: everything is sent, and what no longer fits is refused; "
        f"once it is on, {_cap(report)}, and {would}.{_overflow(report)}"
    )


def _cap(report: PromptReport) -> str:
    history, window = report.history_budget, report.window
    if not window:
        return f"history may take {figures.tokens(history)} tokens"
    share = figures.percent(100 * history / window)
    size = f"{figures.tokens(history)} of {figures.window(window)} tokens"
    line = f"history may take {size}, {share} of the window"
    if report.is_history_capped:
        line += f" ({_NAME} set max_history_tokens 0 gives it the whole window)"
    return line


def _changes(report: PromptReport) -> str:
    """Return the messages that are not sent whole: `12 messages omitted, 3 masked`; empty if all are."""
    counts = [(report.count(fate), word) for fate, word in (_LEFT_OUT | _SMALLER).items()]
    nonzero = [(count, word) for count, word in counts if count]
    if not nonzero:
        return ""
    (first, word), rest = nonzero[0], nonzero[1:]
    return ", ".join([f"{figures.plural(first, 'message')} {word}", *(f"{n:,} {word}" for n, word in rest)])


def _overflow(report: PromptReport) -> str:
    return "" if report.within_budget else " The next request does not fit even so."


async def _status(context: CommandContext, _argument: str) -> None:
    context.say(await describe(context.chat))


async def _switch(on: bool, context: CommandContext) -> None:
    warning = context.chat.session.overrides.set_rolling(on)
    context.refresh_report()
    saved = "" if warning else f" New sessions begin with it {'on' if on else 'off'}."
    context.say(await describe(context.chat) + saved)
    if warning:
        context.say(warning, warning=True)


async def _preview(context: CommandContext, argument: str) -> None:
    chat = context.chat
    settings = _pairs(argument)
    if settings is None:
        context.say(f"{_NAME} preview takes settings as KEY=VALUE, not {argument!r}.", warning=True)
        return
    report = await chat.session.overrides.preview(settings)
    under = "".join(f" with {key} = {value}" for key, value in settings.items())
    begins = f"Rolling context on{under}" if report.rolling else f"Rolling context off{under}"
    now = chat.session.preview.report()
    size = f"the next request is ~{report.token_count:,} tokens, now it is ~{now.token_count:,}"
    changes = _changes(report) or "nothing leaves"
    line = f"{begins}: {changes}; {size}; {_cap(report)}.{_overflow(report)} Nothing was changed."
    affected = [row for row in report.rows if _is_affected(row)]
    if not affected:
        context.say(line)
        return
    table = message_table(affected, chat.session.messages)
    context.show_tables("What would leave the next request", [line], [table])


def _is_affected(row: Row) -> bool:
    return row.fate in _LEFT_OUT or row.fate in _SMALLER


def _pairs(argument: str) -> dict[str, str] | None:
    """Parse `a=1 b=2`; return None if it has another form."""
    pairs = [word.partition("=") for word in argument.split()]
    if not all(key and sign for key, sign, _value in pairs):
        return None
    return {key: value for key, _sign, value in pairs}


async def _set(context: CommandContext, argument: str) -> None:
    key, _, value = argument.replace("=", " ", 1).partition(" ")
    if not key or not value.strip():
        context.say(f"{_NAME} set takes a key and a value: set max_history_tokens 0", warning=True)
        return
    before = context.chat.session.preview.report()
    line = context.chat.session.overrides.set(key, value.strip())
    context.refresh_report()
    await context.chat.session.preview.ready()
    after = context.chat.session.preview.report()
    context.say(f"{line}: {_difference(before, after)}.{_overflow(after)}")


def _difference(before: PromptReport, after: PromptReport) -> str:
    """Describe the effect of a change on the next request."""
    more = after.count(*_LEFT_OUT) - before.count(*_LEFT_OUT)
    smaller = after.count(*_SMALLER) - before.count(*_SMALLER)
    parts = []
    if more:
        verbs = ("leaves", "leave") if more > 0 else ("comes back", "come back")
        parts.append(f"{figures.plural(abs(more), 'message')} {verbs[abs(more) > 1]}")
    if smaller:
        parts.append(f"{abs(smaller):,} {'more' if smaller > 0 else 'fewer'} shortened or masked")
    if before.token_count != after.token_count:
        parts.append(f"the next request goes from ~{before.token_count:,} to ~{after.token_count:,} tokens")
    if before.history_budget != after.history_budget and after.rolling:
        parts.append(_cap(after))
    if not parts:
        return "the next request stays as it is"
    return "; ".join(parts)


def _undo(context: CommandContext, _argument: str) -> None:
    line = context.chat.session.overrides.undo()
    context.refresh_report()
    context.say(line)


async def _run(context: CommandContext, argument: str) -> None:
    word, _, rest = argument.partition(" ")
    match word.lower():
        case "on" | "off" if not rest:
            await _switch(word.lower() == "on", context)
        case "":
            await _switch(not context.chat.session.rolling, context)
        case "status" if not rest:
            await _status(context, rest)
        case "preview":
            await _preview(context, rest.strip())
        case "set":
            await _set(context, rest.strip())
        case "undo" if not rest:
            _undo(context, rest)
        case _:
            known = "on, off, status, preview, set or undo"
            context.say(f"{_NAME} takes {known}, not {argument!r}.", warning=True)


_WORDS = (
    Choice("on", "on", "let old messages leave the prompt"),
    Choice("off", "off", "send everything, refuse what does not fit"),
    Choice("status", "status", "what it does now"),
    Choice("preview", "preview", "what would leave, under other settings too"),
    Choice("set", "set", "change a setting for this run"),
    Choice("undo", "undo", "take back the last switch or setting"),
)


def _choices(_context: CommandContext, before: str) -> list[Choice]:
    """Return the words; after `set`, the settings, and then their values; after `preview`, KEY=VALUE."""
    match before.lower().split():
        case []:
            return list(_WORDS)
        case ["set"]:
            return [Choice(key, key, rule.allowed) for key, rule in _RULES.items()]
        case ["set", key] if key in _RULES:
            return [Choice(value, value) for value in _values(_RULES[key])]
        case ["preview", *_]:
            return [Choice(f"{key}=", f"{key}=", rule.allowed) for key, rule in _RULES.items()]
        case _:
            return []


def _values(rule: Rule) -> tuple[str, ...]:
    return ("true", "false") if rule.kind is bool else rule.choices


ROLLING_CONTEXT = Command(
    "rolling-context",
    "[on|off|status|preview|set|undo]",
    "Turn rolling on or off: old messages are dropped when the prompt is full",
    _run,
    while_busy=True,
    arguments=Arguments(_choices, closed=True),
)
