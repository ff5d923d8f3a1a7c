"""Recognize a provider's error for a prompt that is too long: by its code, then its text, then its numbers.

The formats were collected from recorded answers of about thirty providers and servers. They have nothing in
common: the same refusal has status 400, 413, 422, 429, 500, 502 or comes in mid-stream, with its own code or
none, with both numbers, one or neither.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from rolling_chat.messages import Json


@dataclass(frozen=True, slots=True)
class Overflow:
    """A prompt that is too long: the provider's numbers in tokens, None if it gave none.

    `requested` is everything that the provider counted against the limit, often the prompt plus the
    requested answer. `prompt` is the prompt's part, if it was named.
    """

    limit: int | None = None
    requested: int | None = None
    prompt: int | None = None


NO_NUMBERS = Overflow()


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The parsed error of a provider: its text, and the codes and numbers in its fields.

    `said` are the messages for people in its fields, outermost first.
    """

    text: str
    said: tuple[str, ...] = ()
    codes: frozenset[str] = frozenset()
    numbers: Mapping[str, int] | None = None


_OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "exceed_context_size_error",
        "model_max_prompt_tokens_exceeded",
        "model_context_window_exceeded",
        "too_many_prompt_tokens",
        "prompt_too_long",
        "too_many_tokens",
        "request_too_large",
        "1261",  # Z.ai: "Prompt exceeds max length"
    }
)
_THROTTLING_CODES = frozenset(
    {
        "rate_limit_exceeded", "rate_limit_error", "rate_limit_reached", "ratelimitreached",
        "too_many_requests", "insufficient_quota", "throttlingexception", "throttling_error",
    }
)  # fmt: skip
_THROTTLING = re.compile(
    r"rate.?limit|too many (?:requests|tokens per)|tokens? per (?:minute|day|hour|second)"
    r"|requests? per (?:minute|day|hour|second)|\b[TR]P[MD]\b|throttl|quota"
    r"|please wait before|try again in \d",
    re.IGNORECASE,
)

# Phrases that refer only to the context window.
_PHRASES = re.compile(
    r"""
      prompt\ (?:is\ )?too\ long
    | input\ is\ too\ long
    | (?:maximum|max|available|model'?s)\ (?:context|prompt)\ (?:length|size|window)
    | context\ (?:length|limit|window|size)\s+(?:is\s+)?exceed
    | exceed\w*\ (?:the\ |your\ |model\ |its\ |available\ |max(?:imum)?\ )*(?:context|token\ limit)
    | context\ window\ exceeds\ limit
    | context\ window\ of\ (?:this|the)\ model
    | longer\ than\ the\ (?:model'?s\ )?(?:maximum\ )?context
    | input\ token\s?(?:count)?s?\ [^.]{0,40}exceeds?
    | input\ tokens\ exceed(?:ed)?
    | exceeds?\ (?:the\ )?(?:configured|maximum|max)\ (?:limit|length|number\ of\ (?:input\ )?tokens)\b
      (?!.*output)
    | prompt\ (?:token\ count|exceeds|contains)\b.{0,60}(?:exceeds|max\ length|too\ large)
    | too\ many\ tokens(?!\ per)
    | size\ limit\ exceeded\ by\ [\d,]+\ tokens
    | range\ of\ input\ length\ should\ be
    | total\ length\ of\ all\ messages\ is\ too\ long
    | reduce\ the\ length\ of\ (?:the\ )?(?:input\ )?(?:messages|prompt|either\ one)
    | reduce\ your\ prompt
    | exceeded\ model\ token\ limit
    | `?inputs`?\ tokens\ \+\ `?max_new_tokens`?\ must
    | max_tokens\ must\ be\ at\ least\ 1,\ got\ -\d
    | loaded\ with\ context\ length\ of\ only
    | reached\ context\ length\ of
    | context\ overflow
    | truncating\ input\ prompt
    | request\ (?:entity\ |body\ |size\ |payload\ )?(?:is\ )?too\ large
    | messages\[?\d*\]?\.?content.{0,40}string\ too\ long
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Limits on the answer, an image or a list: less history would help with none of them.
_ANOTHER_LIMIT = re.compile(
    r"output tokens|completion tokens|max_tokens is too large|max_tokens:? \d+ > \d+"
    r"|max_tokens'? ?(?:must|should) be (?:less|at most|between)|array too long|image"
    r"|(?:file|audio|video|document)s? (?:is |size )?(?:too|exceed)",
    re.IGNORECASE,
)
_NUMBER = r"(?<![\d,_])(\d[\d,_]{0,14})"
# (pattern, names of its groups in order). "add", "prompt" and "answer" add up to the requested tokens; "over"
# is the excess over the limit.
_NUMBERS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern.replace("#", _NUMBER), re.IGNORECASE | re.DOTALL), names)
    for pattern, names in (
        (r"# \+ # > #", ("prompt", "answer", "limit")),
        (r"must be <= #\. given: # `?inputs`? tokens and # ", ("limit", "prompt", "answer")),
        (r"size limit exceeded by # tokens.{0,200}?limit for this model is # tokens", ("over", "limit")),
        (r"tokens in the prompt cannot exceed # ?-? ?received #", ("limit", "prompt")),
        (r"range of input length should be \[\d+, ?#\]", ("limit",)),
        (
            (
                r"passed # input tokens and requested # output tokens.{0,80}?"
                r"(?:context|prompt) length is only # tokens"
            ),
            ("prompt", "answer", "limit"),
        ),
        (r"# tokens > # maximum", ("add", "limit")),
        (
            (
                r"(?:context|prompt) length (?:is|of) # tokens?.{0,40}?(?:requested|resulted in|has)"
                r" (?:about |a total of )?#"
            ),
            ("limit", "add"),
        ),
        (r"maximum prompt length is # but the request contains #", ("limit", "add")),
        (r"token count \(#\) exceeds the maximum number of tokens allowed \(#\)", ("add", "limit")),
        (r"exceeds the maximum number of tokens allowed \(#\)", ("limit",)),
        (r"configured limit of # tokens.{0,40}?resulted in # tokens", ("limit", "add")),
        (r"configured limit of # tokens", ("limit",)),
        (r"\(# tokens\) is longer than the model'?s context length \(# tokens\)", ("add", "limit")),
        (r"request \(# tokens\) exceeds the available context size \(# tokens\)", ("add", "limit")),
        (r"requested tokens \(#\) exceed context window of #", ("add", "limit")),
        (r"keep the first # tokens.{0,120}?context length of only # tokens", ("add", "limit")),
        (r"reached context length of # tokens", ("limit",)),
        (r"current length is # while limit is #", ("add", "limit")),
        (r"token count of # exceeds the limit of #", ("add", "limit")),
        (r"token limit: # \(requested: #\)", ("limit", "add")),
        (r"# tokens exceeds max context window of # tokens", ("add", "limit")),
        (r"contains # tokens, too large for model with # maximum", ("add", "limit")),
        (r"limit=# prompt=#", ("limit", "add")),
        (r"window of # tokens.{0,60}?prompt (?:has|is) # tokens", ("limit", "add")),
        (r"prompt (?:has|is) # tokens.{0,60}?window of # tokens", ("add", "limit")),
        (r"maximum context length (?:is|of) # tokens", ("limit",)),
        (r"\(# > #\)", ("add", "limit")),
    )
)
# No phrase, but tokens, a comparison and two numbers, the first of which is larger.
_COMPARISON = re.compile(
    rf"{_NUMBER}\s*(?:input |prompt |total )?tokens?\b[^.\n]{{0,80}}?"
    rf"(?:exceed\w*|longer|larger|greater|more|above|over|beyond|>)[^.\n]{{0,60}}?{_NUMBER}",
    re.IGNORECASE,
)
# the parts of a sum: in the messages, of text input, in the completion, in the output
_PARTS = re.compile(r"\(([^()]*\d (?:in the messages|of text input)[^()]*)\)", re.IGNORECASE)
_PART = re.compile(rf"{_NUMBER} (?:in|of) (?:the |your )?(\w+)", re.IGNORECASE)
_ANSWER_PARTS = frozenset({"completion", "output"})
_LIMIT_FIELDS = ("n_ctx", "max_context_length", "context_length", "max_tokens_allowed")
_REQUESTED_FIELDS = ("n_prompt_tokens", "prompt_tokens", "requested_tokens")
_END_CHARS = 4_000
_MAX_STARTS = 12  # brackets that are tried as the start of a structure
# No window is smaller. (MiniMax's "(2013)" is excluded because it matches no pattern.)
_MIN_WINDOW = 16


def read_body(text: str) -> ErrorBody:
    """Parse an error's text: JSON, an array of it, Python's representation of it, or plain words.

    Only both ends of a very long text are read: an error that quotes the request has its message at one of
    them.
    """
    if len(text) > 2 * _END_CHARS:
        text = f"{text[:_END_CHARS]}\n{text[-_END_CHARS:]}"
    codes: set[str] = set()
    numbers: dict[str, int] = {}
    said: list[str] = []
    for value in _structures(text):
        for key, leaf in _leaves(value):
            if isinstance(leaf, str) and key in {"code", "type", "status", "reason", "stop_reason"}:
                codes.add(leaf.lower())
            elif isinstance(leaf, str) and key in {"message", "error", "detail", "details", "msg"}:
                said.append(leaf)
            elif isinstance(leaf, int) and not isinstance(leaf, bool):
                numbers[key] = leaf
    # the text may also contain a code: "(context_length_exceeded) This model's …"
    codes.update(code for code in _OVERFLOW_CODES if not code.isdigit() and code in text.lower())
    return ErrorBody("\n".join((text, *said)), tuple(said), frozenset(codes), numbers)


def is_throttling(body: ErrorBody, status: int | None) -> bool:
    """Return whether the refusal is about the rate of requests or tokens, not about the window."""
    if body.codes & _THROTTLING_CODES:
        return True
    if _THROTTLING.search(body.text):
        return not body.codes & _OVERFLOW_CODES
    return status == 429 and not body.codes & _OVERFLOW_CODES


def find_overflow(body: ErrorBody, status: int | None) -> Overflow | None:
    """Return the context overflow that an error reports, or None; check `is_throttling` first."""
    if body.codes & _OVERFLOW_CODES:
        return _with_numbers(body)
    if status in {401, 403, 404}:
        return None
    if _ANOTHER_LIMIT.search(body.text) and not re.search(r"context|prompt", body.text, re.IGNORECASE):
        return None
    if _PHRASES.search(body.text) or status == 413:
        return _with_numbers(body)
    match = _COMPARISON.search(body.text)
    if match:
        requested, limit = _int(match.group(1)), _int(match.group(2))
        if requested > limit >= _MIN_WINDOW:
            return Overflow(limit, requested)
    return None


def _with_numbers(body: ErrorBody) -> Overflow:
    fields = body.numbers or {}
    limit = next((fields[name] for name in _LIMIT_FIELDS if name in fields), None)
    requested = next((fields[name] for name in _REQUESTED_FIELDS if name in fields), None)
    overflow = Overflow(limit, requested) if limit is not None else _numbers_in(body.text)
    if overflow.limit is not None and overflow.limit < _MIN_WINDOW:
        return NO_NUMBERS
    return overflow


def _numbers_in(text: str) -> Overflow:
    for pattern, names in _NUMBERS:
        match = pattern.search(text)
        if match is None:
            continue
        values: dict[str, int] = {}
        for name, value in zip(names, map(_int, match.groups()), strict=True):
            values[name] = values.get(name, 0) + value
        limit = values["limit"]
        requested = sum(values.get(name, 0) for name in ("add", "prompt", "answer"))
        if "over" in values:
            requested = limit + values["over"]
        return Overflow(limit, requested or None, values.get("prompt") or _prompt_in(text, requested))
    return NO_NUMBERS


def _prompt_in(text: str, requested: int) -> int | None:
    """Return the prompt's share of the requested tokens, if the text lists the parts of the sum."""
    parts = _PARTS.search(text)
    if parts is None:
        return None
    found = [(name.lower(), _int(digits)) for digits, name in _PART.findall(parts.group(1))]
    prompt = sum(count for name, count in found if name not in _ANSWER_PARTS)
    return prompt if sum(count for _name, count in found) == requested else None


def _int(digits: str) -> int:
    return int(re.sub(r"\D", "", digits)[:12])


def _structures(text: str) -> Iterator[Json]:
    """Yield each JSON or Python structure in `text`.

    A bracket in prose, as in `messages[3]`, counts as one too.
    """
    end = 0
    for match in islice(re.finditer(r"[{\[]", text), _MAX_STARTS):
        if match.start() < end:
            continue
        piece = text[match.start() :]
        try:
            value, length = json.JSONDecoder().raw_decode(piece)
        except (ValueError, RecursionError):
            value, length = _python_structure(piece)
        if isinstance(value, dict | list) and value:
            end = match.start() + length
            yield value


def _python_structure(piece: str) -> tuple[Json, int]:
    """Parse a Python structure that ends with the line, or with the last bracket of the text."""
    line = piece.partition("\n")[0]
    for text in dict.fromkeys((line, piece)):
        end = max(text.rfind("}"), text.rfind("]")) + 1
        try:
            return ast.literal_eval(text[:end]), end
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
    return None, 0


def _leaves(value: Json, key: str = "", depth: int = 0) -> Iterator[tuple[str, Json]]:
    if depth > 8:
        return
    match value:
        case dict():
            for name, inner in value.items():
                yield from _leaves(inner, str(name), depth + 1)
        case list():
            for inner in value:
                yield from _leaves(inner, key, depth + 1)
        case _:
            yield key, value
