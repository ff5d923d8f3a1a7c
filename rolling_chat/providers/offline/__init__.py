"""The offline model `demo/offline`: no language model, but good for trying everything else.

It answers from nothing but the wire form of the prompt that it was sent, so what has left the window is
really gone for it. litellm is not needed for it. Only its name and window are known here; `offline_provider`
comes with the first request.
"""

from rolling_chat.providers.offline.window import OFFLINE_MODEL, offline_window

__all__ = ["OFFLINE_MODEL", "offline_window"]
