"""`rolling-chat sessions import`: conversations from a file."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.agent.importing import Imported, import_transcript
from rolling_chat.cli.configured import here, settings_of
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.cli.stored import open_saved
from rolling_chat.replay import TranscriptError, read_transcripts
from rolling_chat.sessions.records import StoreError
from rolling_chat.settings.paths import Paths
from rolling_chat.text import one_line


def import_sessions(options: Options, paths: Paths) -> int:
    """Import each conversation of a file as a session; on a broken line, keep those before it."""
    file, folder = Path(options.file), str(here())
    rolling = settings_of(options, paths).context.enabled
    store = open_saved(options, paths)
    done: list[Imported] = []
    try:
        for transcript in read_transcripts(file):
            done.append(import_transcript(store, transcript, folder, rolling=rolling))
            print(_line(done[-1]))
    except (TranscriptError, StoreError) as error:
        made = sum(imported.is_new for imported in done)
        before = f"; {made} before it {'was' if made == 1 else 'were'} imported" if made else ""
        code = Exit.USAGE if isinstance(error, TranscriptError) else Exit.FAILED
        raise Failure(f"{error}{before}", code) from error
    finally:
        store.close()
    if odd := _oddities(done):
        print(f"Stored unchanged, and repaired only in prompts: {odd}.")
    return Exit.DONE


def _line(imported: Imported) -> str:
    info = imported.info
    if info is None:
        return "Skipped: a conversation without messages."
    title = one_line(info.title) or "(no title)"
    if not imported.is_new:
        return f"Skipped: session {info.id} has the same messages already  {title}"
    return f"Imported {info.short}  {info.messages:>5} messages  {title}"


def _oddities(done: list[Imported]) -> str:
    total: dict[str, int] = {}
    for imported in done:
        for what, count in imported.oddities.items():
            total[what] = total.get(what, 0) + (count if imported.is_new else 0)
    return ", ".join(f"{what}: {count:,}" for what, count in total.items() if count)
