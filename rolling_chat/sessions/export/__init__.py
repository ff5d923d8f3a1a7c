"""A session as a document: Markdown and HTML to read, JSON and JSONL to read back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from rolling_chat.messages import Message
from rolling_chat.redaction import redact, redact_all
from rolling_chat.sessions.export.as_json import to_json, to_jsonl
from rolling_chat.sessions.export.as_markdown import to_markdown
from rolling_chat.sessions.records import SessionInfo, StoredSummary
from rolling_chat.text import without_controls

__all__ = ["EXPORT_FORMATS", "export", "format_of", "to_json", "to_jsonl", "to_markdown"]

EXPORT_FORMATS = {"markdown": "md", "jsonl": "jsonl", "html": "html", "json": "json"}
"""The formats, and what their files' names end with."""


def export(
    info: SessionInfo,
    messages: Sequence[Message],
    format: str,
    summary: StoredSummary | None = None,
    secrets: Collection[str] = (),
) -> str:
    """Return a whole conversation in one of EXPORT_FORMATS, without secrets and terminal control characters.

    `secrets`, and what has the shape of a secret, are hidden. JSON carries the `summary`, too: the others
    are to be read, or are messages alone.
    """
    info = without_secrets_in_title(info, secrets)
    messages = [_redacted(message, secrets) for message in messages]
    if summary is not None:
        summary = replace(summary, text=redact(summary.text, secrets))
    match format:
        case "markdown":
            text = to_markdown(info, messages)
        case "html":
            # markdown-it is nothing that a start should wait for
            from rolling_chat.sessions.export.as_html import to_html  # noqa: PLC0415

            text = to_html(info, messages)
        case "json":
            text = to_json(info, messages, summary)
        case "jsonl":
            text = to_jsonl(messages)
        case _:
            raise ValueError(f"there is no format {format!r}")
    return without_controls(text)


def without_secrets_in_title(info: SessionInfo, secrets: Collection[str]) -> SessionInfo:
    """Return `info` with a redacted title: it may be the beginning of what was said."""
    return replace(info, title=redact(info.title, secrets))


def _redacted(message: Message, secrets: Collection[str]) -> Message:
    return replace(
        message,
        content=redact_all(message.content, secrets),
        tool_calls=tuple(
            replace(call, arguments=redact(call.arguments, secrets)) for call in message.tool_calls
        ),
        extras=redact_all(message.extras, secrets),
    )


def format_of(file_name: str) -> str:
    """Return the export format that a file name's ending stands for; empty for any other ending."""
    ending = file_name.lower().rpartition(".")[2]
    return next((name for name, known in EXPORT_FORMATS.items() if known == ending), "")
