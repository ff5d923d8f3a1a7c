"""The conversation as the recall tool sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.agent.conversation import Conversation
from rolling_chat.agent.request.planner import Planner
from rolling_chat.context.tokens import TokenEstimator, estimator_for
from rolling_chat.messages import Message
from rolling_chat.sessions.records import StoreError
from rolling_chat.tools import ToolError


@dataclass(frozen=True, slots=True)
class BranchMemory:
    """The branch up to the head, with the pipeline's token counts (`tools.memory.Memory`).

    `cap` is the limit on one result in a request of this turn, in tokens.
    """

    conversation: Conversation
    planner: Planner
    cap: int
    estimator: TokenEstimator

    @classmethod
    def of(cls, conversation: Conversation, planner: Planner) -> BranchMemory:
        """Create the memory of a turn whose requests `planner` plans."""
        config = planner.setup.config
        estimator = estimator_for(planner.setup.model, config.token_estimator, memo=planner.counts.memo)
        return cls(conversation, planner, config.max_tool_result_tokens, estimator)

    async def branch(self) -> Sequence[Message]:
        """Return the messages from the first to the head, reading missing ones. Raises ToolError."""
        try:
            await self.conversation.read_rest()
        except StoreError as error:
            raise ToolError(str(error)) from error
        return self.conversation.branch

    @property
    def excluded(self) -> frozenset[str]:
        """The messages that the user excluded, and those that are omitted with them."""
        return self.planner.plan_state.pin_scope(self.conversation.messages).excluded
