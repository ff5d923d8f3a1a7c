"""`-p --json-schema FILE`: answers that match a JSON Schema, with one retry for an answer that does not."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from rolling_chat.agent import ChatError
from rolling_chat.api import Answer
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.events import Outcome
from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Json
from rolling_chat.text import one_line

_MAX_SCHEMA = 1_000_000  # bytes
_SHOWN = 300  # characters of an error
_FAULTS = 3  # errors named at most
_ASKING = "Answer with one JSON value that matches this JSON Schema, and with nothing else:"
_REPAIRING = (
    "Your answer does not match the JSON Schema. {fault}\n"
    "Answer again with the whole JSON value, and with nothing else."
)
Turn: TypeAlias = Callable[[str], Awaitable[Answer]]
_FENCED = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)


def read_schema(file: str) -> JsonSchema:
    """Read a JSON Schema from a file. Raises Failure."""
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(_MAX_SCHEMA + 1)
        if len(data) > _MAX_SCHEMA:
            raise ValueError(f"larger than {_MAX_SCHEMA:,} bytes")
        return JsonSchema(read_json(data))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        wrong = f"--json-schema {one_line(file, 200)}: {one_line(str(reason), _SHOWN)}"
        raise Failure(wrong, Exit.USAGE) from error


class JsonSchema:
    """A JSON Schema of any draft, without external references. Raises ValueError if it is invalid."""

    def __init__(self, schema: Json) -> None:
        if not isinstance(schema, Mapping):
            raise ValueError("a JSON Schema is an object")
        # importing them takes a tenth of a second, and only this option needs them
        jsonschema: Any = import_module("jsonschema")
        referencing: Any = import_module("referencing")

        self.text = json.dumps(schema, ensure_ascii=False)
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise ValueError(f"no JSON Schema: {error.message}") from error
        # with an empty registry, nothing is fetched from addresses in the schema
        self._validator: Any = kind(schema, registry=referencing.Registry())
        self._unresolvable: type[Exception] = referencing.exceptions.Unresolvable

    def fault(self, value: Json) -> str:
        """Return what is wrong with a value, in one line; empty if it is valid. Raises ChatError."""
        try:
            errors = sorted(self._validator.iter_errors(value), key=lambda error: len(error.absolute_path))
        except self._unresolvable as error:
            outside = one_line(str(error), _SHOWN)
            raise ChatError(f"The JSON Schema refers to what is not in it: {outside}") from error
        return "; ".join(
            f"{error.json_path}: {one_line(error.message, _SHOWN)}" for error in errors[:_FAULTS]
        )


class JsonAnswers:
    """Asks for answers that match a schema, and retries once."""

    def __init__(self, schema: JsonSchema) -> None:
        self._schema = schema

    async def ask(self, turn: Turn, text: str) -> tuple[Answer, Mapping[str, Json]]:
        """Run a turn with `turn`, and another if its answer does not match.

        Return the answer, with only the JSON as its text, and `structured` with the value; an answer that
        still does not match has failed. Raises ChatError.
        """
        answer = await turn(f"{text}\n\n{_ASKING}\n{self._schema.text}")
        if not answer.ok:
            return answer, {}
        value, fault = self._read(answer)
        if fault:
            again = await turn(_REPAIRING.format(fault=fault))
            answer = replace(
                again, usage=answer.usage + again.usage, tool_calls=answer.tool_calls + again.tool_calls
            )
            if not answer.ok:
                return answer, {}
            value, fault = self._read(answer)
        if fault:
            error = f"The answer does not match the JSON Schema: {fault}"
            return replace(answer, text="", outcome=Outcome.FAILED, error=error), {"reply": answer.text}
        return replace(answer, text=json.dumps(value)), {"structured": value}

    def _read(self, answer: Answer) -> tuple[Json, str]:
        """Return the value of an answer, and what is wrong with it, if anything."""
        try:
            value = json_in(answer.text)
        except ValueError as error:
            return None, f"it is not JSON: {one_line(str(error), _SHOWN)}"
        return value, self._schema.fault(value)


def json_in(text: str) -> Json:
    """Return the JSON value of a reply, or else of its first code block. Raises ValueError."""
    try:
        return read_json(text)
    except ValueError:
        fenced = _FENCED.search(text)
        if fenced is None:
            raise
        return read_json(fenced[1])
