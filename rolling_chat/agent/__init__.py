"""The agent: chats, their turns and tool calls, permissions, and the planning of requests.

Public names are imported when they are first used, so that a command that needs only one part, such as
`rolling-chat models`, does not load the loop and every tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat.lazily import public_names

if TYPE_CHECKING:
    from rolling_chat.agent.chat import Chat
    from rolling_chat.agent.errors import ChatError, NoModelError
    from rolling_chat.agent.file_states import FileState
    from rolling_chat.agent.file_undo import FileMove
    from rolling_chat.agent.history import SaidTurn
    from rolling_chat.agent.memory.pin_scope import PinScope
    from rolling_chat.agent.memory.pins import PinChange, PinEntry, PinPrice
    from rolling_chat.agent.memory.proposal import Proposal
    from rolling_chat.agent.mentioned_files import GivenText, MentionedFile, as_typed
    from rolling_chat.agent.permissions import Policy
    from rolling_chat.agent.request.size_estimates import StreamedReply
    from rolling_chat.agent.runtime import Runtime
    from rolling_chat.agent.turn.attaching import AttachmentRefusedError
    from rolling_chat.agent.turn.waiting import WaitingMessage, WaitingMessages
    from rolling_chat.context.summary_left_out import LeftOutLine
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
    "GivenText",
    "LeftBranch",
    "LeftOutLine",
    "MentionedFile",
    "NoModelError",
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
    "AttachmentRefusedError": ".turn.attaching",
    "Chat": ".chat",
    "ChatError": ".errors",
    "FileIndex": "rolling_chat.tools.file_index",
    "FileMove": ".file_undo",
    "FileState": ".file_states",
    "GivenText": ".mentioned_files",
    "LeftBranch": "rolling_chat.sessions.records",
    "LeftOutLine": "rolling_chat.context.summary_left_out",
    "MentionedFile": ".mentioned_files",
    "NoModelError": ".errors",
    "PinChange": ".memory.pins",
    "PinEntry": ".memory.pins",
    "PinPrice": ".memory.pins",
    "PinScope": ".memory.pin_scope",
    "Policy": ".permissions",
    "Proposal": ".memory.proposal",
    "Runtime": ".runtime",
    "SaidTurn": ".history",
    "SearchHit": "rolling_chat.sessions.records",
    "SessionInfo": "rolling_chat.sessions.records",
    "StoredSummary": "rolling_chat.sessions.records",
    "StreamedReply": ".request.size_estimates",
    "WaitingMessage": ".turn.waiting",
    "WaitingMessages": ".turn.waiting",
    "as_typed": ".mentioned_files",
}

__getattr__ = public_names(__name__, _MODULES)
