"""/paste: attach the picture on the clipboard."""

from __future__ import annotations

from rolling_chat.commands.base import Command, CommandContext


async def _run(context: CommandContext, _argument: str) -> None:
    await context.paste_picture()


PASTE = Command("paste", "", "Attach the picture on the clipboard (Alt+V)", _run, while_busy=True)
