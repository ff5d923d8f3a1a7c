"""/theme: change the colors."""

from __future__ import annotations

from rolling_chat.commands.base import Choice, Command, CommandContext, first_word


def _choices(context: CommandContext) -> list[Choice]:
    return [Choice(known, known) for known in context.theme_names]


async def _run(context: CommandContext, argument: str) -> None:
    name: str | None = argument
    if not name:
        name = await context.pick("Theme", _choices(context), current=context.theme_name)
    if not name:
        return
    if name not in context.theme_names:
        there = ", ".join(context.theme_names)
        context.say(f"There is no theme {name!r}; there are {there}.", warning=True)
        return
    context.set_theme(name)
    context.say(f"Theme: {name}.")


THEME = Command(
    "theme", "[name]", "Change the colors; without a name, list the themes", _run, while_busy=True,
    arguments=first_word(_choices, closed=True),
)  # fmt: skip
