"""Provide the rolling window for Strands, as a conversation manager that keeps the agent's messages."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Any

from strands.agent.conversation_manager import ConversationManager
from strands.hooks import AgentInitializedEvent, HookRegistry
from strands.middleware import InvokeModelContext, InvokeModelStage

from rolling_chat.context import ContextConfig
from rolling_chat.integrations.converse_blocks import blocks_of, content_of_blocks, message_of, parts_of
from rolling_chat.integrations.window import RollingWindow


class RollingConversationManager(ConversationManager):
    """A conversation manager that sends what fits the window; `agent.messages` keeps every message.

        Agent(model=model, conversation_manager=RollingConversationManager("openai/gpt-4.1"))

    `model` is the model's name, which determines its window and tokenizer.
    """

    def __init__(self, model: str, config: ContextConfig | None = None) -> None:
        super().__init__()
        self.window = RollingWindow(model, config or ContextConfig())

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Register for each request of the agent, before it is sent."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(AgentInitializedEvent, self._join)

    def apply_management(self, agent: Any, **kwargs: Any) -> None:
        """Do nothing: the agent's messages stay, and each request is fitted separately."""

    def reduce_context(self, agent: Any, e: Exception | None = None, **kwargs: Any) -> None:  # noqa: ARG002
        """Plan less after a refusal; the next request is refused here if nothing more can be omitted."""
        if self.window.report is None:
            raise e or RuntimeError("no request was planned")
        limit = max(1, self.window.report.bound * 3 // 4)
        self.window.config = replace(self.window.config, input_limit=limit)

    def _join(self, event: AgentInitializedEvent) -> None:
        event.agent.add_middleware(InvokeModelStage.Input, self._fitted)

    def _fitted(self, context: InvokeModelContext) -> InvokeModelContext:
        prompt = context.system_prompt
        system: list[Any] = [{"text": prompt}] if isinstance(prompt, str) else list(prompt or ())
        parts = [
            (index, blocks)
            for index, one in enumerate(context.messages)
            for blocks in parts_of(one["content"])
        ]
        given = [message_of(context.messages[index]["role"], blocks) for index, blocks in parts]
        fitted = self.window.fit(content_of_blocks(system), given, context.tool_specs)
        sent: list[Any] = []
        for index, group in groupby(
            fitted.messages, lambda one: parts[one.index][0] if one.index >= 0 else -1
        ):
            messages = list(group)
            blocks = [block for one in messages for block in blocks_of(one, parts[one.index][1])]
            head = context.messages[index] if index >= 0 else {"role": messages[0].message["role"]}
            sent.append({**head, "content": blocks})
        notice = [{"text": fitted.notice}] if fitted.notice else []
        return context.replace(messages=sent, system_prompt=[*system, *notice] if notice else prompt)
