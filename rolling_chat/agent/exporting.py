"""Write an open session to a file that the user names."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from rolling_chat.agent.errors import ChatError
from rolling_chat.messages import Message
from rolling_chat.sessions.export import EXPORT_FORMATS, export, format_of, without_secrets_in_title
from rolling_chat.sessions.records import SessionInfo, StoredSummary
from rolling_chat.text import one_line

_SLUG_CHARACTERS = 40


def export_session(
    info: SessionInfo,
    messages: Sequence[Message],
    target: str,
    folder: Path,
    summary: StoredSummary | None = None,
    *,
    secrets: Collection[str] = (),
) -> Path:
    """Write `messages` to `target`: a file, a format, or empty for Markdown; return the file.

    A file name is relative to `folder`, and its ending determines the format; by default it is made from the
    title. Raises ChatError instead of overwriting a file. `secrets` are redacted.
    """
    info = without_secrets_in_title(info, secrets)
    word = target.strip()
    if word.lower() in (*EXPORT_FORMATS, ""):
        kind = word.lower() or "markdown"
        path = folder / f"{_slug(info.title)}-{info.short}.{EXPORT_FORMATS[kind]}"
    else:
        kind = format_of(word)
        if not kind:
            endings = ", ".join(f".{ending}" for ending in EXPORT_FORMATS.values())
            raise ChatError(
                f"/export takes a format ({', '.join(EXPORT_FORMATS)}) or a file ending with {endings}, "
                f"not {one_line(word, 60)!r}."
            )
        path = folder / Path(word).expanduser()
    try:
        with path.open("x", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(export(info, messages, kind, summary, secrets))
    except FileExistsError:
        raise ChatError(f"{one_line(str(path))} is there already; name another file: /export FILE") from None
    except (OSError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ChatError(f"The session cannot be written to {one_line(str(path))}: {one_line(why)}") from error
    return path


def session_as_markdown(
    info: SessionInfo, messages: Sequence[Message], *, secrets: Collection[str] = ()
) -> str:
    """Return the session as the Markdown that /export writes."""
    return export(info, messages, "markdown", secrets=secrets)


def _slug(title: str) -> str:
    plain = re.sub(r"[^\w]+", "-", title.lower()).strip("-_")
    return plain[:_SLUG_CHARACTERS].rstrip("-_") or "session"
