"""Parse plain orders from a user's message: list, read, search or change files, or run a command."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rolling_chat.providers.offline.matching import split_sentences

Action: TypeAlias = Literal[
    "list", "read", "search", "run", "output", "edit", "write", "move", "delete", "fetch", "outline", "todo",
    "task",
]  # fmt: skip

_POLITE = r"(?:(?:please|now|first|next|then|finally|and|also|(?:can|could|would|will) you|let'?s)[,\s]+)*"
_QUOTED = r"`[^`\n]+`|\"[^\"\n]+\"|'[^'\n]+'"
# a name with a dot or a slash, or a well-known file name without either
_PATH = rf"(?:{_QUOTED}|[\w~.-]*[./][^\s,;`\"'!?]*|README|LICENSE|Makefile|Dockerfile|CHANGELOG)"
_FOLDER = rf"(?:{_PATH}|[\w-]+)"
_LISTING = re.compile(
    rf"{_POLITE}(?:(?:list|show)(?: me)?(?: all)?(?: of)?(?: the| my)? files?(?: (?:here|there))?"
    rf"(?: (?:in|of|under|from)(?: the)?(?: folder| directory)? (?P<folder>{_FOLDER}))?"
    rf"|(?:ls|list)(?: (?:the )?(?:folder |directory )?(?P<named>{_FOLDER}))?)"
    r"(?: (?:folder|directory))?[\s.!?]*",
    re.IGNORECASE,
)
_READING = re.compile(
    rf"{_POLITE}(?:read|open|cat|show)(?: me)?(?: the)?(?: files?)? "
    rf"(?P<paths>{_PATH}(?:(?:, and|,| and) {_PATH})*)"
    r"(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_SEARCHING = re.compile(
    rf"{_POLITE}(?:search|grep)(?: (?:the|my|all))?(?: files?)?(?: (?:in|through) (?P<where>{_PATH}))?"
    rf"(?: for)? (?P<pattern>{_QUOTED}|.+?)(?: in (?:the )?(?P<path>{_PATH}|files?|folder))?[\s.!?]*",
    re.IGNORECASE,
)
_RUNNING = re.compile(
    rf"{_POLITE}(?:run|execute|start)(?: the)?(?: command)?:? (?P<command>{_QUOTED}|.+?)"
    r"(?P<background> in (?:the )?background)?\s*",
    re.IGNORECASE,
)
_BACKGROUND = re.compile(
    rf"{_POLITE}(?:(?P<end>end|stop)|(?:show|get)(?: me)?(?: the)?(?: new)? output of) (?P<id>b\d+)[\s.!?]*",
    re.IGNORECASE,
)
_EDITING = re.compile(
    rf"{_POLITE}(?:replace|change) (?P<every>every |all )?(?P<old>{_QUOTED}) (?:with|by|to|into) "
    rf"(?P<new>{_QUOTED}) in (?:the )?(?:file )?(?P<path>{_PATH})(?P<everywhere> everywhere)?[\s.!?]*",
    re.IGNORECASE,
)
_WRITING = re.compile(
    rf"{_POLITE}write (?P<content>{_QUOTED}) (?:in)?to (?:the )?(?:new )?(?:file )?(?P<path>{_PATH})[\s.!?]*",
    re.IGNORECASE,
)
_MOVING = re.compile(
    rf"{_POLITE}(?:move|rename)(?: the)?(?: file)? (?P<path>{_PATH}) to (?P<new>{_PATH})[\s.!?]*",
    re.IGNORECASE,
)
_DELETING = re.compile(
    rf"{_POLITE}(?:delete|remove)(?: the)?(?: file)? (?P<path>{_PATH})[\s.!?]*", re.IGNORECASE
)
_FETCHING = re.compile(
    rf"{_POLITE}(?:fetch|download|open|read|get)(?: me)?(?: the)?(?: page| address| url)?(?: at)? "
    r"(?P<url>`https?://[^`\s]+`|https?://[^\s`\"'<>]*[^\s`\"'<>.,!?])(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_OUTLINING = re.compile(
    rf"{_POLITE}(?:outline|show (?:me )?(?:the|an) outline of)(?: the)?(?: files?| folder)? "
    rf"(?P<path>{_FOLDER})[\s.!?]*",
    re.IGNORECASE,
)
_LISTING_TODO = re.compile(
    rf"{_POLITE}(?:make|write|set|update)(?: me)? (?:a|the|your) to-?do(?: list)?(?: of)?:? "
    r"(?P<items>.+?)[\s.!?]*",
    re.IGNORECASE,
)
_TASKING = re.compile(
    rf"{_POLITE}(?:give|start|make|run)(?: me)?(?: a| some)? tasks?(?: with (?P<tools>\w+(?:, ?\w+)*))?: ?"
    r"(?P<tasks>.+)",
    re.IGNORECASE | re.DOTALL,
)
_PARAGRAPHS = re.compile(r"\n\s*\n")
_LINES = re.compile(r"lines? (?P<start>\d{1,7})(?:\s*(?:-|–|to|through)\s*(?P<end>\d{1,7}))?", re.IGNORECASE)
_STEP = re.compile(r"\s*(?:;|\n|,?\s+(?:and\s+)?then\s)\s*", re.IGNORECASE)
_BACKTICKED = re.compile(r"`[^`\n]*`")
# longer text is content, not an order
_MAX_ORDER = 500
_QUESTION = re.compile(
    r"\s*(?:what|where|which|who|whom|whose|when|why|how|is|are|was|were|do|does|did|can|could|has|have|had"
    r"|should|will|would|tell|find|give|show|explain|name|look up|recall|search)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Order:
    """A tool call that the user's text asks for in plain words.

    `target` is the path, pattern or command, or the old text of a change; `new` is the new text or path, or
    the names of a task's tools. `every` means all occurrences of the old text, or that a background command
    is to be ended. Lines count from 1.
    """

    action: Action
    target: str = ""
    path: str = ""
    start: int = 0
    end: int = 0
    question: str = ""
    new: str = ""
    every: bool = False
    background: bool = False


def read_orders(text: str) -> list[tuple[Order, ...]]:
    """Parse the consecutive steps that `text` orders; the orders of one step may run in parallel.

    Empty if it orders nothing: only a step that begins with the verb is an order.
    """
    steps = [_read_step(step.strip()) for step in _steps(text) if step.strip()]
    return [step for step in steps if step]


def read_questions(text: str) -> list[str]:
    """Return the sentences of `text` that are questions or requests.

    Content that is sent along with a question, such as a pipe's, comes before or after it. Therefore only the
    first and the last paragraph are searched, and a question without a question mark, which could be a line
    of a file, counts only as the very first or last sentence.
    """
    sentences = split_sentences(text)
    if not sentences:
        return []
    paragraphs = _PARAGRAPHS.split(text.strip())
    at_edges = [*split_sentences(paragraphs[0]), *split_sentences(paragraphs[-1])]
    marked = dict.fromkeys(sentence for sentence in at_edges if sentence.rstrip("\"')]* ").endswith("?"))
    if marked:
        return list(marked)
    return [
        sentence for sentence in dict.fromkeys((sentences[0], sentences[-1])) if _QUESTION.match(sentence)
    ]


def _steps(text: str) -> list[str]:
    if len(text) > 4 * _MAX_ORDER:
        return []
    hidden: list[str] = []

    def hide(match: re.Match[str]) -> str:
        hidden.append(match.group())
        return f"\x00{len(hidden) - 1}\x00"

    steps = _STEP.split(_BACKTICKED.sub(hide, text))
    return [re.sub(r"\x00(\d+)\x00", lambda match: hidden[int(match[1])], step) for step in steps]


def _read_step(step: str) -> tuple[Order, ...]:
    if len(step) > _MAX_ORDER:
        return ()
    if match := _TASKING.fullmatch(step):
        prompts = (prompt.strip() for prompt in match["tasks"].split("|"))
        return tuple(Order("task", prompt, new=match["tools"] or "") for prompt in prompts if prompt)
    if (order := _read_command(step) or _read_change(step)) is not None:
        return (order,)
    if match := _LISTING_TODO.fullmatch(step):
        return (Order("todo", match["items"]),)
    if match := _OUTLINING.fullmatch(step):
        return (Order("outline", path=_unquoted(match["path"])),)
    if match := _FETCHING.fullmatch(step):
        return (Order("fetch", _unquoted(match["url"]), question=match["rest"].strip(" .,!?")),)
    if match := _LISTING.fullmatch(step):
        return (Order("list", path=_unquoted(match["folder"] or match["named"] or ".")),)
    if match := _READING.fullmatch(step):
        lines = _LINES.search(match["rest"])
        start = int(lines["start"]) if lines else 0
        end = int(lines["end"] or lines["start"]) if lines else 0
        return tuple(
            Order("read", _unquoted(path), start=start, end=end, question=match["rest"].strip(" .,!?"))
            for path in re.findall(_PATH, match["paths"], re.IGNORECASE)
        )
    if match := _SEARCHING.fullmatch(step):
        path = match["where"] or match["path"] or "."
        path = "." if path.lower() in {"file", "files", "folder"} else path
        return (Order("search", _unquoted(match["pattern"]), path=_unquoted(path)),)
    return ()


def _read_command(step: str) -> Order | None:
    if match := _RUNNING.fullmatch(step):
        return Order("run", _unquoted(match["command"]), background=bool(match["background"]))
    if match := _BACKGROUND.fullmatch(step):
        return Order("output", match["id"].lower(), every=bool(match["end"]))
    return None


def _read_change(step: str) -> Order | None:
    if match := _EDITING.fullmatch(step):
        every = bool(match["every"] or match["everywhere"])
        old, new, path = (_unquoted(match[name]) for name in ("old", "new", "path"))
        return Order("edit", old, path=path, new=new, every=every)
    if match := _WRITING.fullmatch(step):
        return Order("write", path=_unquoted(match["path"]), new=_unquoted(match["content"]))
    if match := _MOVING.fullmatch(step):
        return Order("move", path=_unquoted(match["path"]), new=_unquoted(match["new"]))
    if match := _DELETING.fullmatch(step):
        return Order("delete", path=_unquoted(match["path"]))
    return None


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "`\"'":
        return text[1:-1]
    return text.rstrip(".!?,") or text
