"""Fallback models, which answer while the session's own model is overloaded or unreachable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from rolling_chat.agent.errors import ChatError
from rolling_chat.agent.models import pick_model, unknown_address_line
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session_state import SessionState
from rolling_chat.context import ContextOverflowError
from rolling_chat.providers.model_ref import ModelRef, missing_keys
from rolling_chat.providers.protocol import ErrorKind, ProviderError
from rolling_chat.providers.retries import is_outage

PATIENCE = 20.0
"""Seconds for which a model that is down is retried before the next one is asked."""

PAUSE = 60.0
"""Seconds for which a model that is down is not asked, unless its server names a longer time."""

_MAX_PAUSE = 3_600.0

# Errors besides an outage for which the next fallback is asked: this one cannot continue the conversation.
_UNFIT = frozenset({ErrorKind.BAD_KEY, ErrorKind.MODEL_UNKNOWN, ErrorKind.TOO_LONG})


class ModelAt(NamedTuple):
    """A model and the address of its server: empty for the provider's own, None if unknown."""

    model: str
    address: str | None


@dataclass(frozen=True, slots=True)
class _Outage:
    """The outage of a model: it is not asked before `until` (seconds since the epoch); `reason` is a line."""

    until: float
    reason: str


class Fallbacks:
    """Switches a session to the next model of the `fallback` setting in an outage, and back.

    The session's own model, `own`, is the one in its row in the store. It is asked again in the first turn
    after its pause.
    """

    def __init__(self, runtime: Runtime, state: SessionState) -> None:
        self._runtime = runtime
        self._state = state
        self._own: ModelAt | None = None  # set while a fallback answers
        self._down: dict[ModelAt, _Outage] = {}
        self._skip_reasons: dict[str, str] = {}  # why this request skipped models, by name
        self._first_error: ProviderError | None = None  # of this request

    @property
    def is_standing_in(self) -> bool:
        """Whether a fallback model answers instead of the session's own."""
        return self._own is not None

    @property
    def own(self) -> ModelAt:
        """The session's own model, which the user chose."""
        return self._own or self._active

    @property
    def patience(self) -> float | None:
        """The seconds for which to retry a request; None for as long as the settings say.

        A model that was down is asked only once, to see whether it is back.
        """
        if next(self._candidates(), None) is None:
            return None
        return 0.0 if self._active in self._down else PATIENCE

    def faults(self) -> Iterator[str]:
        """Yield a line for each model of the setting that is unknown or lacks a key."""
        for name in self._names():
            target = self.locate(name)
            if isinstance(target, str):
                yield f"fallback: {target}"

    def begin_turn(self) -> None:
        """Return to the session's own model if its pause is over."""
        if self._own is not None and not self._is_down(self._own):
            self._return()

    def begin_request(self) -> None:
        """Forget why the previous request skipped models."""
        self._skip_reasons, self._first_error = {}, None

    def forget(self) -> None:
        """Return to the session's own model and forget all outages, before the user's choice of another."""
        self._return()
        self._down.clear()

    def answered(self) -> str:
        """Record that the model has answered; return a line if it is the session's own and was down."""
        outage = self._down.pop(self._active, None)
        if outage is None or self.is_standing_in:
            return ""
        return f"{self._active.model} answers again."

    def take_over(self, error: ProviderError | ContextOverflowError) -> str:
        """Switch to the next model after `error`; return its name, or empty if none is to be asked.

        Raises ProviderError, naming all models, if there are fallbacks and none can answer.
        """
        if not self._names() or not self._calls_for_fallback(error):
            return ""
        active = self._active
        if isinstance(error, ProviderError):
            self._first_error = self._first_error or error
            if is_outage(error):
                pause = min(max(error.retry_after or 0.0, PAUSE), _MAX_PAUSE)
                self._down[active] = _Outage(self._runtime.clock() + pause, str(error))
        self._skip_reasons[active.model] = self._reason(error)
        target = next(self._candidates(), None)
        if target is not None:
            self._use(target)
            return target.model
        raise self._none_answers()

    def describe(self, before: str) -> str:
        """Return a line that says why, and for how long, the active model replaces the one `before`."""
        own, window = self.own, self._state.setup.window
        reason = self._skip_reasons[before]
        if not self.is_standing_in:
            return f"{reason} {own.model} is asked again."
        outage = self._down.get(own)
        wait = max(0.0, outage.until - self._runtime.clock()) if outage is not None else 0.0
        return (
            f"{reason} {self._active.model} answers instead: a window of {window:,} tokens, nothing cached. "
            f"Your first message after {wait:.0f} seconds goes to {own.model} again."
        )

    def locate(self, name: str) -> ModelAt | str:
        """Return a model with its address, or a line that says why it cannot be asked."""
        runtime, state, own = self._runtime, self._state, self.own
        here = replace(state.info, model=own.model, api_base=own.address)
        try:
            choice = pick_model(runtime, name, here, former=state.former_addresses)
        except (ProviderError, ChatError) as error:
            return str(error)
        if choice.address is None:
            return f"{unknown_address_line(name).capitalize()}."
        if missing := missing_keys(name, choice.address, runtime.environ):
            return f"No key for {ModelRef.parse(name).served_by}: set {' or '.join(missing)}."
        return ModelAt(name, choice.address)

    @property
    def _active(self) -> ModelAt:
        setup = self._state.setup
        return ModelAt(setup.model, setup.address)

    def _names(self) -> tuple[str, ...]:
        """Return the models of the setting, without the session's own."""
        own = self.own.model
        return tuple(name for name in dict.fromkeys(self._runtime.settings.fallback) if name != own)

    def _calls_for_fallback(self, error: ProviderError | ContextOverflowError) -> bool:
        """Return whether to ask another model; the session's own is replaced only in an outage."""
        if isinstance(error, ProviderError) and is_outage(error):
            return True
        if not self.is_standing_in:
            return False
        return isinstance(error, ContextOverflowError) or error.kind in _UNFIT

    def _reason(self, error: ProviderError | ContextOverflowError) -> str:
        if isinstance(error, ProviderError):
            return str(error)
        setup = self._state.setup
        return f"{setup.model} has a window of {setup.window:,} tokens, and this request does not fit in it."

    def _is_down(self, target: ModelAt) -> bool:
        outage = self._down.get(target)
        return outage is not None and self._runtime.clock() < outage.until

    def _candidates(self) -> Iterator[ModelAt]:
        """Yield the models that this request can still be sent to, the session's own first."""
        targets = [self.own, *map(self.locate, self._names())]
        for target in targets:
            if isinstance(target, str) or target == self._active or target.model in self._skip_reasons:
                continue
            if not self._is_down(target):
                yield target

    def _skipped(self) -> list[str]:
        """Return why models were not asked: they are unknown, lack a key, or were down before."""
        lines = []
        for name in (self.own.model, *self._names()):
            if name in self._skip_reasons:
                continue
            target = self.own if name == self.own.model else self.locate(name)
            if isinstance(target, str):
                lines.append(target)
            elif target in self._down:
                lines.append(self._down[target].reason)
        return lines

    def _use(self, target: ModelAt) -> None:
        if target == self._own:
            self._return()
            return
        self._own = self.own
        self._state.planner.plan_state.stand_in(*target)

    def _return(self) -> None:
        self._own = None
        self._state.planner.plan_state.stand_back()

    def _none_answers(self) -> ProviderError:
        """Return to the session's own model, and return an error that names all models."""
        reasons = [f"{name}: {reason}" for name, reason in self._skip_reasons.items()]
        lines = " ".join([*reasons, *self._skipped()])
        self._return()
        first = self._first_error
        kind = first.kind if first is not None else ErrorKind.OVERLOADED
        return ProviderError(kind, f"No model answers. {lines}", detail=first.detail if first else "")
