"""What the model may do: read, list and search files, and run commands with permission."""

from rolling_chat.tools.base import Tool, ToolContext, ToolError, ToolResult

__all__ = ["Tool", "ToolContext", "ToolError", "ToolResult"]
