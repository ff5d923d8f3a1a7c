"""Ask the provider how many tokens a prompt has, where our upper bound cannot tell whether it fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rolling_chat.agent.request.builder import ToolChoice
from rolling_chat.agent.request.planner import Planner
from rolling_chat.agent.runtime import Runtime
from rolling_chat.context import FinalPrompt
from rolling_chat.messages import Message
from rolling_chat.partly_read import NotReadError
from rolling_chat.providers.addresses import is_near, who_counts
from rolling_chat.providers.background_thread import in_background

_PATIENCE = 3.0  # seconds for a count that decides whether a request goes
_NEAR_PATIENCE = 0.3  # seconds for one that is only for the gauge: a server nearby answers in milliseconds
_NEGLIGIBLE = 0.01  # of a prompt: what may be estimated in it without asking
_ATTEMPTS = 3
_AT_WORST = 4.0  # times our estimate: what a tokenizer of bytes may count of prose
_AT_MOST = 2.0  # how many times too high an estimate may be


class PromptCounter:
    """Asks the provider for the tokens of the next request, and takes its answer over as measured.

    A server nearby counts in milliseconds: it is also asked before the first request, and whenever much is
    only estimated, so that the gauge is right and the server refuses nothing.
    """

    def __init__(self, runtime: Runtime, planner: Planner) -> None:
        self._runtime = runtime
        self._planner = planner
        self._unanswered: set[tuple[str, str | None]] = set()  # models and addresses without a count in time

    async def settle(self, branch: Sequence[Message], tool_choice: ToolChoice) -> bool:
        """Have a prompt counted that only its upper bound makes too long; return whether it is known now."""
        if self._place in self._unanswered and not self._is_free:
            return False
        return bool(await self._count(branch, tool_choice, _may_fit, _PATIENCE))

    async def count_beginning(self, branch: Sequence[Message]) -> None:
        """Have a server nearby count the prompt before anything is sent, unless a request is under way."""
        plan = self._planner.plan_state.plan
        if self._is_free and (plan is None or plan.sent is None):
            await self._count(branch, "auto", _is_uncertain, _NEAR_PATIENCE)

    async def count_uncertain(self, branch: Sequence[Message], tool_choice: ToolChoice) -> None:
        """Have a request with much that is only estimated counted by a server of the user's own.

        One nearby is asked whenever that is so, one elsewhere only for a long request to a model that has
        reported nothing yet: its tokenizer may be any. One that does not answer in time is asked no more.
        """
        if self._place in self._unanswered or who_counts(*self._place) != "server":
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
        """Whether a server of the user's own counts, and is so near that it may be asked at any time."""
        return who_counts(*self._place) == "server" and is_near(self._place[1])

    async def _count(
        self,
        branch: Sequence[Message],
        tool_choice: ToolChoice,
        wanted: Callable[[FinalPrompt], bool],
        seconds: float,
    ) -> bool | None:
        """Return whether the prompt is measured now; None where the provider did not count it."""
        planner = self._planner
        if not who_counts(*self._place) or planner.setup.measurements.is_miscounted:
            return False
        for _ in range(_ATTEMPTS):
            revision, since = planner.plan_state.revision, planner.plan_state.plan
            try:
                planned = await in_background(partial(planner.plan_untrimmed, branch, tool_choice, wanted))
            except NotReadError:
                planned = None  # what is so long is not sent as it stands
            if planned is None:
                return False
            tokens = await self._runtime.provider.count_tokens(planned.request, seconds)
            if not tokens:
                return None
            if planner.plan_state.revision == revision and planner.plan_state.plan is since:
                return planner.feedback.confirm(planned.plan, tokens, is_counted=True)
            # the gauge has looked meanwhile, or the user switched something: the count is remembered
        return False


def _estimated(final: FinalPrompt) -> int:
    """The tokens of a prompt that nobody has counted yet."""
    sent = final.plan.sent
    if sent is None or not final.report.exact:
        return final.report.token_count
    return sum(item.tokens for item in sent.items if not item.measured)


def _is_uncertain(final: FinalPrompt) -> bool:
    """Whether a hundredth of a prompt or more is estimated, and it is not far beyond the window."""
    report = final.report
    is_known = _estimated(final) < _NEGLIGIBLE * report.token_count
    return not is_known and report.token_count <= report.window * _AT_MOST


def _is_long(final: FinalPrompt) -> bool:
    """Whether a prompt may be too long if the model counts several times as much as we do."""
    return final.report.token_count * _AT_WORST > final.report.room and _is_uncertain(final)


def _may_fit(final: FinalPrompt) -> bool:
    """Whether a prompt is too long by its bound, and may fit if what is estimated was estimated too high."""
    report, estimated = final.report, _estimated(final)
    room = report.window - report.reserve  # what was counted needs hardly a margin
    return report.bound > report.room and report.token_count - estimated + estimated / _AT_MOST <= room
