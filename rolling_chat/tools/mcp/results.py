"""Convert a server's results of calls, resources and prompts to text and pictures.

The values are plain JSON in the protocol's own form. Everything in them is untrusted data.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rolling_chat import figures
from rolling_chat.messages import Ending, Json, JsonObject
from rolling_chat.pictures import data_uri, describe, is_cut_off, read_header, why_not
from rolling_chat.text import one_line
from rolling_chat.tools.base import ToolResult

MAX_CHARACTERS = 10_000_000
"""The maximum text of one result that is kept, as for commands; the model gets far less."""

MAX_PICTURES = 10
_MAX_URI = 300  # characters to show


@dataclass(slots=True)
class _Blocks:
    """The texts and the pictures of a result, in order."""

    server: str
    texts: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)

    def add(self, block: Json) -> None:
        """Add a block of a result or a prompt, or a line about one that cannot be shown."""
        if not isinstance(block, Mapping):
            return
        match block.get("type"):
            case "text":
                self.texts.append(_text(block.get("text")))
            case "image":
                self._add_picture(_text(block.get("data")))
            case "audio":
                self._leave_out("a recording", _text(block.get("mimeType")), _text(block.get("data")))
            case "resource":
                self.add_contents(block.get("resource"), names=True)
            case "resource_link":
                uri, name = _name(block.get("uri")), one_line(_text(block.get("name")), 100)
                self.texts.append(f"[resource {name}: @{self.server}:{uri}]")
            case _:
                self.texts.append("[a part of a kind that is not known]")

    def add_contents(self, contents: Json, *, names: bool) -> None:
        """Add the contents of a resource, with a line that names it if `names`."""
        if not isinstance(contents, Mapping):
            return
        uri, kind = _name(contents.get("uri")), _text(contents.get("mimeType"))
        if isinstance(contents.get("text"), str):
            self.texts += [f"[resource {uri}]"] if names else []
            self.texts.append(contents["text"])
        elif kind.startswith("image/"):
            self.texts += [f"[resource {uri}]"] if names else []
            self._add_picture(_text(contents.get("blob")))
        else:
            self._leave_out(f"resource {uri}", kind, _text(contents.get("blob")))

    def _add_picture(self, encoded: str) -> None:
        if len(self.pictures) >= MAX_PICTURES:
            self.texts.append(f"[one more picture: at most {MAX_PICTURES} are sent]")
            return
        data = _decoded(encoded)
        header = read_header(data)
        if header is None:
            self._leave_out("a picture", "of a format that no model takes", encoded)
            return
        why = why_not(header, len(data)) or ("its end is missing" if is_cut_off(header, data) else "")
        if why:
            self.texts.append(f"[a picture that is not sent: {why}]")
            return
        self.texts.append(f"[picture: {describe(header, len(data))}]")
        self.pictures.append(data_uri(header.media_type, data))

    def _leave_out(self, what: str, kind: str, encoded: str) -> None:
        size = figures.size(len(encoded) * 3 // 4)
        self.texts.append(f"[{what}, not shown: {', '.join(filter(None, (one_line(kind, 60), size)))}]")


def as_result(result: JsonObject, server: str) -> ToolResult:
    """Return the result of a call as the model gets it."""
    blocks = _Blocks(server)
    for block in _listed(result.get("content")):
        blocks.add(block)
    structured = result.get("structuredContent")
    # a server that sends both repeats the same data, so the structured form is used only if there is no text
    if structured is not None and not any(text.strip() for text in blocks.texts):
        blocks.texts.append(json.dumps(structured, ensure_ascii=False, indent=1))
    ending = Ending.FAILED if result.get("isError") is True else Ending.COMPLETE
    return ToolResult(_joined(blocks.texts), ending, pictures=tuple(blocks.pictures))


def resource_of(result: JsonObject, server: str) -> tuple[str, tuple[str, ...]]:
    """Return the text and the pictures of a resource that was read."""
    blocks = _Blocks(server)
    contents = _listed(result.get("contents"))
    for one in contents:
        blocks.add_contents(one, names=len(contents) > 1)
    return _joined(blocks.texts), tuple(blocks.pictures)


def prompt_text(result: JsonObject, server: str) -> str:
    """Return the messages of a prompt as one text, in which assistant messages are marked."""
    return _joined(_prompt_texts(result, server))


def _prompt_texts(result: JsonObject, server: str) -> Iterator[str]:
    for message in _listed(result.get("messages")):
        if not isinstance(message, Mapping):
            continue
        blocks = _Blocks(server)
        blocks.add(message.get("content"))
        text = "\n".join(blocks.texts).strip()
        yield f"Assistant: {text}" if message.get("role") == "assistant" else text


def _joined(texts: Iterable[str]) -> str:
    text = "\n".join(texts)
    if len(text) <= MAX_CHARACTERS:
        return text
    half = MAX_CHARACTERS // 2
    cut = len(text) - 2 * half
    return f"{text[:half]}\n[{cut:,} characters in the middle were not kept]\n{text[-half:]}"


def _decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (ValueError, binascii.Error):
        return b""


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _name(value: Json) -> str:
    return one_line(_text(value), _MAX_URI)
