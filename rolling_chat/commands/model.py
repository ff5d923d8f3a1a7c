"""/model: change the model of this session."""

from __future__ import annotations

from rolling_chat.commands.base import Choice, Command, CommandContext, first_word


def _choices(context: CommandContext) -> list[Choice]:
    return [Choice(known, known) for known in context.chat.model_names()]


def _to_pick(context: CommandContext) -> list[Choice]:
    """With the active model, which may go by a name of its own: under the cursor, enter keeps it."""
    choices, model = _choices(context), context.chat.session.model
    here = [] if any(choice.value == model for choice in choices) else [Choice(model, model)]
    return [*here, *choices]


async def _run(context: CommandContext, argument: str) -> None:
    chat = context.chat
    name, _, address = argument.partition(" ")
    if not name:
        name = await context.pick("Model", _to_pick(context), current=chat.session.model) or ""
    if not name:
        return
    context.say(chat.session.set_model(name, address.strip()))
    for line in chat.session.model_warnings:
        context.say(line, warning=True)
    if line := await chat.session.ask_server():
        context.say(line)
    context.refresh_report()


MODEL = Command(
    "model",
    "[name [address]]",
    "Change the model or its address; without a name, list the models",
    _run,
    arguments=first_word(_choices),
)
