"""/copy: copy an answer, a code block, a message or the whole conversation to the clipboard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.commands.base import Arguments, Choice, Command, CommandContext
from rolling_chat.commands.pinning import message_choices
from rolling_chat.message_lines import piece_text, speaker_of
from rolling_chat.tools.memory import index_named

if TYPE_CHECKING:
    from rolling_chat.messages import Message

_NO_ANSWER = "There is no answer to copy yet."


async def _run(context: CommandContext, argument: str) -> None:
    word, _, rest = argument.partition(" ")
    run = _WORDS.get(word.lower())
    if run is None:
        context.say(f"/copy takes code, message or all, or nothing, not {argument!r}.", warning=True)
    else:
        await run(context, rest.strip())


async def _answer(context: CommandContext, _argument: str) -> None:
    for _place, message in _answers(context.chat.session.messages):
        _copy(context, "the last answer", message.text)
        return
    context.say(_NO_ANSWER)


async def _code(context: CommandContext, argument: str) -> None:
    """Copy the last code block of the newest answer that has one, or the one with the given number."""
    if argument and not argument.isdecimal():
        context.say(f"/copy code takes the number of a code block, not {argument!r}.", warning=True)
        return
    for index, message in _answers(context.chat.session.messages):
        blocks = code_blocks(message.text)
        if not blocks:
            continue
        number = int(argument or len(blocks))
        if not 1 <= number <= len(blocks):
            there = figures.plural(len(blocks), "code block")
            context.say(f"There is no code block {number}: r{index} has {there}.", warning=True)
            return
        which = f"code block {number} of {len(blocks)}" if len(blocks) > 1 else "the code block"
        _copy(context, f"{which} of r{index}", blocks[number - 1])
        return
    context.say("No answer has a code block." if any(_answers(context.chat.session.messages)) else _NO_ANSWER)


async def _message(context: CommandContext, argument: str) -> None:
    messages = context.chat.session.messages
    index = int(argument) if argument.isdecimal() else index_named(argument)
    if index is None:
        ids = f"r1 to r{len(messages)}, as /context shows them" if messages else "there is none yet"
        context.say(f"/copy message takes the id of a message ({ids}).", warning=True)
    elif not 1 <= index <= len(messages):
        context.say(f"There is no r{index}: this session has r1 to r{len(messages)}.", warning=True)
    else:
        message = messages[index - 1]
        text = message.text if message.text.strip() else piece_text(message)
        _copy(context, f"r{index}, {speaker_of(message)}", text)


async def _all(context: CommandContext, _argument: str) -> None:
    session = context.chat.session
    if not session.messages:
        context.say("There is nothing to copy yet.")
        return
    messages = tuple(session.messages)
    count = figures.plural(len(messages), "message")
    text = await context.wait_for(
        lambda _: session.as_markdown(messages), "writing the conversation as Markdown"
    )
    if text is not None:
        _copy(context, f"the conversation as Markdown, {count}", text)


def _copy(context: CommandContext, what: str, text: str) -> None:
    size = figures.plural(len(text), "character")
    lines = text.count("\n") + 1
    if context.copy(text):
        context.say(f"Copied {what} ({f'{lines:,} lines, ' if lines > 1 else ''}{size}).")


def _answers(messages: Sequence[Message]) -> Iterator[tuple[int, Message]]:
    """Yield the answers that have text, with their indices, newest first."""
    for index in range(len(messages), 0, -1):
        message = messages[index - 1]
        if message.role == "assistant" and message.text.strip():
            yield index, message


def code_blocks(text: str) -> list[str]:
    """Return the code blocks of a Markdown text as in the source, without their final newlines."""
    return [code for code, _ in _code_blocks(text)]


def code_block_at(text: str, line: int) -> str | None:
    """Return the code block that contains a line of a Markdown text, counted from 0; None if none does."""
    return next((code for code, lines in _code_blocks(text) if line in lines), None)


def _code_blocks(text: str) -> list[tuple[str, range]]:
    """Return the code blocks with their lines, including the fences."""
    from markdown_it import MarkdownIt  # noqa: PLC0415  # not needed before the first paint

    tokens = MarkdownIt("commonmark").parse(text)
    return [
        (token.content.removesuffix("\n"), range(*(token.map or (0, 0))))
        for token in tokens
        if token.type in {"fence", "code_block"}
    ]


_WORDS: Mapping[str, Callable[[CommandContext, str], Awaitable[None]]] = {
    "": _answer,
    "code": _code,
    "message": _message,
    "all": _all,
}


def _choices(context: CommandContext, before: str) -> list[Choice]:
    match before.lower().split():
        case []:
            return [
                Choice("code", "code", "the last code block, or the one of a number"),
                Choice("message", "message", "one message, by its id"),
                Choice("all", "all", "the whole conversation"),
            ]
        case ["message"]:
            return message_choices(context)
        case _:
            return []


COPY = Command(
    "copy",
    "[code [n]|message id|all]",
    "Copy the last answer, a code block, a message or everything",
    _run,
    while_busy=True,
    arguments=Arguments(_choices, closed=True),
)
