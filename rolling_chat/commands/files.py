"""/files: list the files that the agent read and wrote in this session, and whether they have changed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.commands.base import Column, Command, CommandContext, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolling_chat.agent import FileState


def file_table(files: Sequence[FileState], folder: str, now: float) -> Table:
    """Return a table with one row per file; paths in `folder` are relative to it. `now` is in seconds."""
    return Table(
        (Column("when"), Column("what"), Column("times", right=True), Column("on disk"), Column("file")),
        tuple(
            (figures.age(now - file.at), file.action, str(file.times), file.since.value, _short(file, folder))
            for file in files
        ),
    )


def _short(file: FileState, folder: str) -> str:
    path = Path(file.path)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file.path


async def _run(context: CommandContext, _argument: str) -> None:
    files = await context.chat.session.files.states()
    if not files:
        context.say("No file was read or written in this session yet.")
        return
    changed = sum(file.since.value != "unchanged" for file in files)
    kept, most = await context.chat.apart(lambda: context.chat.session.files.kept_bytes)
    count = f"{figures.plural(len(files), 'file')}; {changed or 'none'} not as the session left it"
    room = f"{figures.size(kept)}, at most {figures.size(most)}; then the oldest go first"
    lead = [count, f"kept to undo changes, in all sessions: {room}"]
    table = file_table(files, context.chat.session.info.folder, time.time())
    context.show_tables("Files of this session", lead, [table])


FILES = Command(
    "files", "", "List the files that tools read or wrote, and what has changed since", _run, while_busy=True
)
