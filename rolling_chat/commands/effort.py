"""/effort: set how much the model may think before it answers."""

from __future__ import annotations

from rolling_chat.commands.base import Choice, Command, CommandContext, first_word
from rolling_chat.settings.schema import EFFORTS
from rolling_chat.text import one_line

_DEFAULT = "default"
EFFORT_NAMES = (_DEFAULT, *filter(None, EFFORTS))


def _choices(_context: CommandContext) -> list[Choice]:
    return [Choice(name, name) for name in EFFORT_NAMES]


async def _run(context: CommandContext, argument: str) -> None:
    setup = context.chat.session.setup
    current = setup.effort or _DEFAULT
    asked = argument or await context.pick("Reasoning effort", _choices(context), current=current)
    if not asked:
        return
    effort = next((one for one in EFFORTS if one == ("" if asked == _DEFAULT else asked)), None)
    if effort is None:
        context.say(f"/effort takes {', '.join(EFFORT_NAMES)}, not {one_line(asked, 40)!r}.", warning=True)
        return
    context.chat.session.state.use_effort(effort)
    context.refresh_report()
    if effort and not setup.effort:
        context.say(f"{setup.model} does not reason; the effort counts for a model that does.", warning=True)
        return
    most = f" ({setup.model} takes no more)" if setup.effort != effort else ""
    kept = f'reasoning_effort under [models."{setup.model}"] sets it for others'
    context.say(f"Reasoning effort of this session: {setup.effort or _DEFAULT}{most}; {kept}.")


EFFORT = Command(
    "effort",
    "[LEVEL]",
    "How much the model may think before it answers",
    _run,
    arguments=first_word(_choices),
)
