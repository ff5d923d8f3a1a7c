"""/diff: show the file changes of this session's tools as one diff."""

from __future__ import annotations

from rolling_chat.commands.base import Command, CommandContext


async def _run(context: CommandContext, _argument: str) -> None:
    session, head = context.chat.session, context.chat.session.head
    diff = await context.wait_for(lambda _: session.files.diff(head), "comparing files")
    if diff is None:
        return
    if not diff:
        context.say("No file differs from what it was before this session changed it.")
        return
    context.show_text("Changes of this session", diff)


DIFF = Command(
    "diff", "", "Show what this session changed in files, beside what is on disk now", _run, while_busy=True
)
