"""Plan every chat request that passes through a LiteLLM proxy, so that it fits the model's window.

    litellm_settings:
      callbacks: ["rolling_chat.gateway.handler"]

`handler` is made when the proxy first asks for it; LiteLLM is imported then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat.lazily import public_names

if TYPE_CHECKING:
    from rolling_chat.gateway.hooks import RollingWindow, handler

__all__ = ["RollingWindow", "handler"]

__getattr__ = public_names(__name__, {"RollingWindow": ".hooks", "handler": ".hooks"})
