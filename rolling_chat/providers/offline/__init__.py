"""The offline model `demo/offline`: no language model, but good for trying everything else.

It takes the same path as every other model, as a `CustomLLM` of litellm's. It answers from nothing
but the prompt that it was sent, so what has left the window is really gone for it. Only its name and
window are known here; `custom_llm` comes with litellm.
"""

from rolling_chat.providers.offline.window import OFFLINE_MODEL, offline_window

__all__ = ["OFFLINE_MODEL", "offline_window"]
