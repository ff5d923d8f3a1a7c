"""A session as one HTML page: no script, nothing loaded from elsewhere, foreign text only as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from html import escape

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from rolling_chat.figures import plural
from rolling_chat.messages import Message, is_picture, picture_address
from rolling_chat.pictures import data_uri, read_header, split_data_uri
from rolling_chat.sessions.export.as_markdown import (
    ENDINGS,
    content_of,
    facts_of,
    heading_of,
    said_in_task,
    shown_arguments,
)
from rolling_chat.sessions.records import SessionInfo
from rolling_chat.sessions.values import REASONING
from rolling_chat.text import one_line, without_controls

_MAX_COLORED = 100_000  # characters of one block: some lexers take long for more
_CLASSES = "c-"  # what the classes of colored code begin with


def _colored(code: str, language: str, _attributes: str) -> str:
    """Return the inside of a code block as HTML, colored by its language; empty for one that is not known."""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return ""
    if len(code) > _MAX_COLORED:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True, classprefix=_CLASSES)))


def _colors(style: str) -> str:
    return "\n".join(HtmlFormatter(style=style, classprefix=_CLASSES).get_token_style_defs("pre"))


@cache
def _code_style() -> str:
    dark = _colors("github-dark")
    return f"{_colors('default')}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


# a picture would be fetched from wherever the model said; its address is shown instead
_MARKDOWN = (
    MarkdownIt("commonmark", {"html": False, "highlight": _colored})
    .enable(["strikethrough", "table"])
    .disable("image")
)

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
pre, code { font-family: ui-monospace, monospace; font-size: .9em; }
pre { overflow-x: auto; padding: .7rem; background: color-mix(in srgb, currentColor 8%, transparent); }
section { border-top: 1px solid color-mix(in srgb, currentColor 25%, transparent); margin-top: 1.5rem; }
section h2 { font-size: .9rem; font-weight: 600; opacity: .75; }
section.user { border-left: .25rem solid #7aa2f7; padding-left: .8rem; }
dl { display: grid; grid-template-columns: max-content auto; gap: 0 1rem; font-size: .9rem; opacity: .8; }
dd { margin: 0; overflow-wrap: anywhere; }
details { margin: .6rem 0; opacity: .85; }
summary { cursor: pointer; }
img { max-width: 100%; }
"""


def to_html(info: SessionInfo, messages: Sequence[Message]) -> str:
    """Write the whole of `messages` as a page of its own."""
    title = escape(one_line(info.title, 300) or "Untitled session")
    facts = "".join(
        f"<dt>{name}</dt><dd>{escape(one_line(value, 300))}</dd>"
        for name, value in facts_of(info, len(messages)).items()
        if value
    )
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    said = "\n".join(
        "".join(_section(message, names.get(message.tool_call_id or "", ""))) for message in messages
    )
    return (
        "<!DOCTYPE html>\n"
        '<html><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}{_code_style()}</style></head>\n"
        f"<body>\n<h1>{title}</h1>\n<dl>{facts}</dl>\n{said}\n</body></html>\n"
    )


def _section(message: Message, called: str) -> Iterator[str]:
    role = message.role if message.role in ("user", "assistant", "tool") else "system"
    yield f'<section class="{role}"><h2>{escape(heading_of(message, called))}</h2>\n'
    thinking = (message.extras or {}).get(REASONING)
    if isinstance(thinking, str) and thinking.strip():
        yield f"<details><summary>thinking</summary><pre>{_text(thinking)}</pre></details>\n"
    text = without_controls(content_of(message))
    if message.role == "assistant":
        yield _MARKDOWN.render(text)
    elif message.role == "tool" and text.strip():
        lines = text.count("\n") + (not text.endswith("\n"))
        yield f"<details><summary>{plural(lines, 'line')}</summary><pre>{escape(text)}</pre></details>\n"
    elif text.strip():
        yield f"<pre>{escape(text)}</pre>\n"
    yield from _pictures(message)
    for call in message.tool_calls:
        name = f"<code>{escape(one_line(call.name, 300))}</code>{' as text' if message.writes_calls else ''}"
        yield f"<details open><summary>calls {name}</summary>"
        yield f"<pre>{escape(shown_arguments(call)[0])}</pre></details>\n"
    if in_task := said_in_task(message):
        yield f"<details><summary>what was said in the task</summary><pre>{escape(in_task)}</pre></details>\n"
    if ENDINGS[message.ending]:
        yield f"<p><em>({ENDINGS[message.ending]})</em></p>\n"
    yield "</section>"


def _pictures(message: Message) -> Iterator[str]:
    """Yield the pictures that the message itself contains; none is fetched from elsewhere."""
    for part in () if isinstance(message.content, str) else filter(is_picture, message.content):
        picture = split_data_uri(picture_address(part))
        header = read_header(picture[1]) if picture is not None else None
        if picture is not None and header is not None:
            yield f'<img alt="" src="{data_uri(header.media_type, picture[1])}">\n'


def _text(text: str) -> str:
    return escape(without_controls(text))
