"""Delete old sessions, only if the user has asked for it (`sessions.keep_days`)."""

from __future__ import annotations

import logging
from pathlib import Path

from rolling_chat.agent.attachments import delete_attachments
from rolling_chat.figures import plural
from rolling_chat.sessions.records import StoreError
from rolling_chat.sessions.store import SessionStore

log = logging.getLogger("rolling_chat.agent.retention")

_DAY = 24 * 60 * 60  # seconds
_AT_A_START = 50  # sessions; deleting more would delay the screen, so the rest waits for the next start


def delete_old_sessions(
    store: SessionStore, keep_days: int, now: float, attachments: Path, *, spare: str = ""
) -> str:
    """Delete the sessions last written to more than `keep_days` days ago; 0 deletes none.

    The session `spare`, sessions with pins, and those that are open anywhere are kept. `now` is in seconds
    since the epoch; `attachments` is the folder with the files of all sessions. Return a line that reports
    it, empty if nothing was deleted.
    """
    if keep_days <= 0:
        return ""
    oldest = now - keep_days * _DAY
    deleted = 0
    for info in reversed(store.sessions()):
        if info.updated_at >= oldest or deleted == _AT_A_START:
            break
        if info.id == spare or store.state(info.id).pins:
            continue
        try:
            store.delete(info.id)
        except StoreError as error:  # open elsewhere, most likely
            log.info("session %s is kept: %s", info.id, error)
            continue
        delete_attachments(attachments, info, store)
        deleted += 1
        log.info("deleted session %s (%r), older than %s days", info.id, info.title, keep_days)
    if not deleted:
        return ""
    days = "a day" if keep_days == 1 else f"{keep_days} days"
    sessions = plural(deleted, "session")
    return f"Deleted {sessions} that had not been used for {days} (sessions.keep_days = {keep_days})."
