"""The tools that the model may call, such as those that read and change files and run commands."""

from rolling_chat.tools.base import Tool, ToolContext, ToolError, ToolResult

__all__ = ["Tool", "ToolContext", "ToolError", "ToolResult"]
