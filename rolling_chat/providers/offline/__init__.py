"""The offline model `demo/offline`: not a language model, but enough to try everything else.

It answers only from the wire form of the prompt, so it really forgets what left the window. It does not need
litellm. Only its name and window are defined here; `offline_provider` is imported with the first request.
"""

from rolling_chat.providers.offline.window import OFFLINE_MODEL, offline_window

__all__ = ["OFFLINE_MODEL", "offline_window"]
