"""What the model may do: read, list and search files, and run commands with permission."""

from rolling_chat.tools.base import Tool, ToolContext, ToolError, ToolResult
from rolling_chat.tools.registry import all_tools, choose_tools

__all__ = ["Tool", "ToolContext", "ToolError", "ToolResult", "all_tools", "choose_tools"]
