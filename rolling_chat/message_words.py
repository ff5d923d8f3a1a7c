"""Parts of a message shown besides its text: a reply's reasoning, a diff in place of a result."""

from __future__ import annotations

from rolling_chat.messages import SHOWN, Message


def reasoning_text(message: Message) -> str:
    """Return the readable reasoning that came with a reply; empty if there is none."""
    thought = (message.extras or {}).get("reasoning_content")
    return thought if isinstance(thought, str) else ""


def shown_instead(message: Message) -> str:
    """Return the text shown in place of a result, such as the diff of a changed file; empty if none is."""
    shown = (message.extras or {}).get(SHOWN)
    return shown if isinstance(shown, str) else ""
