"""The agent: one chat at a time, its loop, its tools' permissions, and everything around a request.

The public names are imported when they are first used: who needs one part, as `rolling-chat models` does,
does not wait for the loop and every tool.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rolling_chat.agent.chat import Chat
    from rolling_chat.agent.errors import ChatError
    from rolling_chat.agent.file_states import FileState
    from rolling_chat.agent.file_undo import FileMove
    from rolling_chat.agent.history import SaidTurn
    from rolling_chat.agent.memory.pin_scope import PinScope
    from rolling_chat.agent.memory.pins import PinChange, PinEntry, PinPrice
    from rolling_chat.agent.memory.summaries import Proposal
    from rolling_chat.agent.mentioned_files import MentionedFile, as_typed
    from rolling_chat.agent.permissions import Policy
    from rolling_chat.agent.request.size_estimates import StreamedReply
    from rolling_chat.agent.runtime import Runtime
    from rolling_chat.agent.turn.attaching import AttachmentRefusedError
    from rolling_chat.agent.turn.waiting import WaitingMessage, WaitingMessages
    from rolling_chat.sessions.export import EXPORT_FORMATS
    from rolling_chat.sessions.records import LeftBranch, SearchHit, SessionInfo, StoredSummary
    from rolling_chat.tools.file_index import FileIndex

__all__ = [
    "EXPORT_FORMATS",
    "AttachmentRefusedError",
    "Chat",
    "ChatError",
    "FileIndex",
    "FileMove",
    "FileState",
    "LeftBranch",
    "MentionedFile",
    "PinChange",
    "PinEntry",
    "PinPrice",
    "PinScope",
    "Policy",
    "Proposal",
    "Runtime",
    "SaidTurn",
    "SearchHit",
    "SessionInfo",
    "StoredSummary",
    "StreamedReply",
    "WaitingMessage",
    "WaitingMessages",
    "as_typed",
]

_MODULES = {
    "EXPORT_FORMATS": "rolling_chat.sessions.export",
    "AttachmentRefusedError": "rolling_chat.agent.turn.attaching",
    "Chat": "rolling_chat.agent.chat",
    "ChatError": "rolling_chat.agent.errors",
    "FileIndex": "rolling_chat.tools.file_index",
    "FileMove": "rolling_chat.agent.file_undo",
    "FileState": "rolling_chat.agent.file_states",
    "LeftBranch": "rolling_chat.sessions.records",
    "MentionedFile": "rolling_chat.agent.mentioned_files",
    "PinChange": "rolling_chat.agent.memory.pins",
    "PinEntry": "rolling_chat.agent.memory.pins",
    "PinPrice": "rolling_chat.agent.memory.pins",
    "PinScope": "rolling_chat.agent.memory.pin_scope",
    "Policy": "rolling_chat.agent.permissions",
    "Proposal": "rolling_chat.agent.memory.summaries",
    "Runtime": "rolling_chat.agent.runtime",
    "SaidTurn": "rolling_chat.agent.history",
    "SearchHit": "rolling_chat.sessions.records",
    "SessionInfo": "rolling_chat.sessions.records",
    "StoredSummary": "rolling_chat.sessions.records",
    "StreamedReply": "rolling_chat.agent.request.size_estimates",
    "WaitingMessage": "rolling_chat.agent.turn.waiting",
    "WaitingMessages": "rolling_chat.agent.turn.waiting",
    "as_typed": "rolling_chat.agent.mentioned_files",
}


def __getattr__(name: str) -> Any:
    """Import a public name; Python asks here for what is not in the module yet."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value
