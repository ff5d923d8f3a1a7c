"""Modes and options of a session: permission policy, model, effort, and rolling context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from acp.schema import (
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from rolling_chat import figures
from rolling_chat.agent import Chat, ChatError, Policy
from rolling_chat.agent.model_list import ListedModel
from rolling_chat.commands.effort import EFFORT_NAMES
from rolling_chat.commands.mode import POLICIES
from rolling_chat.settings.schema import EFFORTS
from rolling_chat.text import one_line

Options = list[SessionConfigOptionSelect | SessionConfigOptionBoolean]

MODE, MODEL, EFFORT, ROLLING = "mode", "model", "effort", "rolling_context"
_DEFAULT = "default"


def modes_of(chat: Chat) -> SessionModeState:
    """Return the modes and the active one."""
    modes = [SessionMode(id=name, name=name, description=meaning) for name, meaning in POLICIES.items()]
    return SessionModeState(current_mode_id=chat.session.permissions.policy, available_modes=modes)


def set_mode(chat: Chat, name: str) -> None:
    """Activate a mode. Raises ChatError."""
    policy: Policy | None = next((one for one in POLICIES if one == name), None)
    if policy is None:
        raise ChatError(f"There is no mode {one_line(name, 40)!r}; the modes are: {', '.join(POLICIES)}.")
    chat.session.permissions.policy = policy


def values_of(chat: Chat) -> tuple[str, ...]:
    """Return the values of all options, in their order."""
    session = chat.session
    policy, effort = session.permissions.policy, session.setup.effort or _DEFAULT
    return policy, session.chosen.model, effort, "on" if session.rolling else "off"


def options_of(chat: Chat, models: Sequence[ListedModel]) -> Options:
    """Return all options with their values."""
    mode, model, effort, rolling = values_of(chat)
    rolls = (
        _choice("on", "old messages leave the prompt when it is full, and stay on disk"),
        _choice("off", "everything is sent; what no longer fits is refused"),
    )
    return [
        _select(
            MODE, "Mode", "What asks for permission", category="mode", current=mode,
            choices=(_choice(name, meaning) for name, meaning in POLICIES.items()),
        ),
        _select(
            MODEL, "Model", "The model that answers", category="model", current=model,
            choices=_model_choices(model, models),
        ),
        _select(
            EFFORT, "Effort", "How much the model may think before it answers", category="thought_level",
            current=effort, choices=(_choice(name) for name in EFFORT_NAMES),
        ),
        _select(
            ROLLING, "Rolling context", "Whether old messages leave a full prompt; new sessions begin so",
            category="model_config", current=rolling, choices=rolls,
        ),
    ]  # fmt: skip


async def set_option(chat: Chat, name: str, value: str) -> list[str]:
    """Set an option; return lines for the user about it. Raises ChatError."""
    session = chat.session
    match name, value:
        case "mode", _:
            set_mode(chat, value)
            return []
        case "model", _:
            session.gate.require_idle()
            if value == session.chosen.model:
                return []
            session.set_model(value)
            return [*session.model_warnings, *filter(None, [await session.ask_server()])]
        case "effort", _:
            effort = next((one for one in EFFORTS if one == ("" if value == _DEFAULT else value)), None)
            if effort is None:
                raise ChatError(f"Effort takes {', '.join(EFFORT_NAMES)}, not {one_line(value, 40)!r}.")
            session.gate.require_idle()
            session.state.use_effort(effort)
            if not effort or session.setup.effort:
                return []
            return [f"{session.model} does not reason; the effort counts for a model that does."]
        case "rolling_context", "on" | "off":
            session.gate.require_idle()
            return [*filter(None, [session.overrides.set_rolling(value == "on")])]
        case _:
            raise ChatError(f"There is no option {one_line(name, 40)} {one_line(value, 40)!r}.")


def _select(
    id: str,
    name: str,
    description: str,
    *,
    category: str,
    current: str,
    choices: Iterable[SessionConfigSelectOption],
) -> SessionConfigOptionSelect:
    return SessionConfigOptionSelect.model_validate(
        {
            "id": id, "name": name, "description": description, "category": category, "type": "select",
            "current_value": current, "options": list(choices),
        }
    )  # fmt: skip


def _choice(value: str, description: str | None = None) -> SessionConfigSelectOption:
    return SessionConfigSelectOption(value=value, name=value, description=description)


def _model_choices(current: str, models: Sequence[ListedModel]) -> Iterator[SessionConfigSelectOption]:
    """Yield the models that can be reached, and the active one even if it is not listed."""
    reached = [one for one in models if one.reached_by]
    if not any(one.name == current for one in reached):
        yield _choice(current)
    for one in reached:
        window = f"{figures.window(one.window)} window" if one.window else "window unknown"
        yield _choice(one.name, f"{window} · {one.reached_by}")
