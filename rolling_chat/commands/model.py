"""/model: change the model of this session."""

from __future__ import annotations

import asyncio

from rolling_chat import figures
from rolling_chat.agent.model_list import ListedModel, per_million
from rolling_chat.commands.base import Choice, Command, CommandContext, first_word


def _choices(context: CommandContext) -> list[Choice]:
    return [Choice(known, known) for known in context.chat.model_names()]


def _note(model: ListedModel) -> str:
    """Return the note of a model in the list: its window, prices per million tokens, how it is reached."""
    window = figures.window(model.window) if model.window else "window unknown"
    into, out = per_million(model.prices.input), per_million(model.prices.output)
    price = "price unknown" if into is None or out is None else f"${into:.2f} in, ${out:.2f} out"
    reach = f"set {model.needs}" if model.needs else model.reached_by
    return " · ".join((window, price, reach))


async def _to_pick(context: CommandContext) -> list[Choice]:
    """Return the models to choose from, including the active one, so that Enter keeps it."""
    listed = await asyncio.to_thread(context.chat.list_models)
    choices, model = [Choice(one.name, one.name, _note(one)) for one in listed], context.chat.session.model
    here = [] if any(choice.value == model for choice in choices) else [Choice(model, model)]
    return [*here, *choices]


async def _run(context: CommandContext, argument: str) -> None:
    chat = context.chat
    name, _, address = argument.partition(" ")
    if not name:
        name = await context.pick("Model", await _to_pick(context), current=chat.session.model) or ""
    if not name:
        return
    context.say(await chat.apart(lambda: chat.session.set_model(name, address.strip())))
    for line in chat.session.model_warnings:
        context.say(line, warning=True)
    if line := await chat.session.ask_server():
        context.say(line)
    await chat.session.count_beginning()
    context.refresh_report()


MODEL = Command(
    "model",
    "[name [address]]",
    "Change the model or its address; without a name, list the models",
    _run,
    arguments=first_word(_choices),
)
