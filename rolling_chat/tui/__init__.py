"""The screen: a Textual app that draws what an agent turn tells, and knows no more of it."""

from rolling_chat.tui.app import RollingChatApp, run_app

__all__ = ["RollingChatApp", "run_app"]
