"""Ask the provider for the token count of a prompt when our upper bound cannot tell whether it fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rolling_chat.agent.request.builder import ToolChoice
from rolling_chat.agent.request.planner import Planner
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.store_queue import off_loop
from rolling_chat.context import FinalPrompt
from rolling_chat.messages import Message
from rolling_chat.partly_read import NotReadError
from rolling_chat.providers.addresses import is_private_address, token_counter
from rolling_chat.providers.background_thread import in_background

_PATIENCE = 3.0  # seconds to wait for a count that decides whether a request can be sent
_NEAR_PATIENCE = 0.3  # seconds to wait for a count for the gauge; a server nearby takes milliseconds
_NEGLIGIBLE = 0.01  # share of a prompt that may be estimated without asking
_ATTEMPTS = 3
_MAX_UNDERESTIMATE = 4.0  # what a byte-level tokenizer may count for prose, as a multiple of our estimate
_MAX_OVERESTIMATE = 2.0  # our estimate as a multiple of the true count


class PromptCounter:
    """Asks the provider for the token count of the next request, and applies it to the plan.

    A server nearby counts in milliseconds. It is also asked before the first request, and whenever much of
    the prompt is only estimated, so that the gauge is right and the server refuses nothing.
    """

    def __init__(self, runtime: Runtime, planner: Planner) -> None:
        self._runtime = runtime
        self._planner = planner
        self._unanswered: set[tuple[str, str | None]] = (
            set()
        )  # models and addresses that gave no count in time

    async def settle(self, branch: Sequence[Message], tool_choice: ToolChoice) -> bool:
        """Have a prompt counted if only its upper bound is too long; return whether its size is now known."""
        if self._place in self._unanswered and not self._is_free:
            return False
        return bool(await self._count(branch, tool_choice, _may_fit, _PATIENCE))

    async def count_beginning(self, branch: Sequence[Message]) -> None:
        """Have a server nearby count the prompt before anything is sent, unless a request is in progress."""
        plan = self._planner.plan_state.plan
        if self._is_free and (plan is None or plan.sent is None):
            await self._count(branch, "auto", _is_uncertain, _NEAR_PATIENCE)

    async def count_uncertain(self, branch: Sequence[Message], tool_choice: ToolChoice) -> None:
        """Have the user's own server count a request if too much of it is only estimated.

        A remote server is only asked about a long request to a model that has reported no counts yet, because
        its tokenizer is unknown. A server that does not answer in time is not asked again.
        """
        if self._place in self._unanswered or token_counter(*self._place) != "server":
            return
        if self._is_free:
            counted = await self._count(branch, tool_choice, _is_uncertain, _NEAR_PATIENCE)
        elif not self._planner.setup.measurements.replies:
            counted = await self._count(branch, tool_choice, _is_long, _PATIENCE)
        else:
            return
        if counted is None:
            self._unanswered.add(self._place)

    @property
    def _place(self) -> tuple[str, str | None]:
        """The model and its address."""
        return self._planner.setup.model, self._planner.setup.address

    @property
    def _is_free(self) -> bool:
        """Whether the user's own server counts, and is near enough to be asked at any time."""
        return token_counter(*self._place) == "server" and is_private_address(self._place[1])

    async def _count(
        self,
        branch: Sequence[Message],
        tool_choice: ToolChoice,
        wanted: Callable[[FinalPrompt], bool],
        seconds: float,
    ) -> bool | None:
        """Have the prompt counted if it is `wanted`; return whether it is now measured.

        Return None if the provider gave no count.
        """
        planner = self._planner
        if not token_counter(*self._place) or planner.setup.measurements.is_miscounted:
            return False
        for _ in range(_ATTEMPTS):
            revision, since = planner.plan_state.revision, planner.plan_state.plan
            try:
                planned = await in_background(partial(planner.plan_untrimmed, branch, tool_choice, wanted))
            except NotReadError:
                planned = None  # too long to be sent without a trim
            if planned is None:
                return False
            tokens = await self._runtime.provider.count_tokens(planned.request, seconds)
            if not tokens:
                return None
            if planner.plan_state.revision == revision and planner.plan_state.plan is since:
                is_taken = planner.feedback.confirm(planned.plan, tokens, is_counted=True)
                await off_loop(self._runtime.store, planner.setup.keep_knowledge)
                return is_taken
            # The gauge or the user changed the plan meanwhile. Plan again; counts are cached.
        return False


def _estimated(final: FinalPrompt) -> int:
    """Return the tokens of a prompt that the provider has not counted yet."""
    sent = final.plan.sent
    if sent is None or not final.report.exact:
        return final.report.token_count
    return sum(item.tokens for item in sent.items if not item.measured)


def _is_uncertain(final: FinalPrompt) -> bool:
    """Return whether too much of a prompt is estimated, and it is not far beyond the window."""
    report = final.report
    is_known = _estimated(final) < _NEGLIGIBLE * report.token_count
    return not is_known and report.token_count <= report.window * _MAX_OVERESTIMATE


def _is_long(final: FinalPrompt) -> bool:
    """Return whether a prompt would be too long if the model counted several times as much as we do."""
    return final.report.token_count * _MAX_UNDERESTIMATE > final.report.room and _is_uncertain(final)


def _may_fit(final: FinalPrompt) -> bool:
    """Return whether a prompt is too long by its bound but would fit if its estimates were too high."""
    report, estimated = final.report, _estimated(final)
    room = report.window - report.reserve  # a counted prompt needs hardly any margin
    least = report.token_count - estimated + estimated / _MAX_OVERESTIMATE
    return report.bound > report.room and least <= room
