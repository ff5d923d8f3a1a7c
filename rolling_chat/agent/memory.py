"""The conversation as the recall tool sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.agent.conversation import Conversation
from rolling_chat.context import ContextConfig
from rolling_chat.context.tokens import TokenEstimator, estimator_for
from rolling_chat.messages import Message


@dataclass(frozen=True, slots=True)
class BranchMemory:
    """The branch up to the head, counted as the pipeline counts it (`tools.memory.Memory`).

    `cap` is what one result may take in a request of this turn, in tokens.
    """

    conversation: Conversation
    cap: int
    estimator: TokenEstimator
    excluded: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        conversation: Conversation,
        model: str,
        config: ContextConfig,
        excluded: frozenset[str] = frozenset(),
    ) -> BranchMemory:
        """The memory of a turn with `model` under `config`; `excluded` are ids of messages, all that
        goes with what the person excluded among them."""
        estimator = estimator_for(model, config.token_estimator)
        return cls(conversation, config.max_tool_result_tokens, estimator, excluded)

    @property
    def branch(self) -> Sequence[Message]:
        """The messages from the first to the head."""
        return self.conversation.messages

    def count_text(self, text: str) -> int:
        """The tokens of `text`, as the cap counts them."""
        return self.estimator.count_text(text)

    def count_message(self, message: Message) -> int:
        """The tokens of a whole message; counted once, and kept with it."""
        return self.estimator.count_message(message)
