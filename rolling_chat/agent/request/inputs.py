"""The inputs of a prompt besides messages and plan, stored so that the prompt can be rebuilt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from threading import Lock
from typing import overload

from rolling_chat.context import Calibration, ContextConfig
from rolling_chat.context.tokens import Tools
from rolling_chat.messages import Json, JsonObject, Message
from rolling_chat.partly_read import PartlyRead
from rolling_chat.providers import wire
from rolling_chat.providers.text_calls import describe_tools
from rolling_chat.snapshots import Snapshot


class SeenBranch:
    """The branch as a model may see it, converted once per message. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kind = ("", True)
        self._originals: list[Message] = []
        self._shown: list[
            Message
        ] = []  # the system message first; never shortened in place: snapshots share it

    def below(
        self, system: Message, branch: Sequence[Message], model: str, *, pictures: bool
    ) -> Sequence[Message]:
        """Return `system` and the messages of `branch` as `model` may see them (`wire.for_model`)."""
        if isinstance(branch, PartlyRead):
            return _ShownParts(system, branch, model, pictures)
        with self._lock:
            count = _common(self._originals, branch) if self._kind == (model, pictures) else 0
            self._kind = (model, pictures)
            if count < len(self._originals) or self._shown[:1] != [system]:
                self._originals, self._shown = self._originals[:count], [system, *self._shown[1 : count + 1]]
            new = branch[count:]
            self._originals += new
            self._shown += wire.for_model(new, model, pictures=pictures)
            return Snapshot(self._shown)


class _ShownParts(Sequence[Message]):
    """A system message and a branch as a model may see it, converted as messages are read."""

    def __init__(self, system: Message, branch: PartlyRead, model: str, pictures: bool) -> None:
        self._system, self._branch = system, branch
        self._model, self._pictures = model, pictures

    @overload
    def __getitem__(self, at: int) -> Message: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Message]: ...

    def __getitem__(self, at: int | slice) -> Message | Sequence[Message]:
        indexes = range(len(self))[at]
        return self._at(indexes) if isinstance(indexes, int) else tuple(map(self._at, indexes))

    def __len__(self) -> int:
        return len(self._branch) + 1

    def _at(self, index: int) -> Message:
        if not index:
            return self._system
        (shown,) = wire.for_model((self._branch[index - 1],), self._model, pictures=self._pictures)
        return shown


def _common(one: Sequence[Message], other: Sequence[Message]) -> int:
    """Count the messages that two branches of one tree have in common."""
    count = min(len(one), len(other))
    # the same message at the same index has the same messages before it
    while count and one[count - 1] is not other[count - 1]:
        count -= 1
    return count


@dataclass(frozen=True, slots=True)
class RequestInputs:
    """The pipeline's configuration, the system prompt and the tool schemas of a request.

    With `text_tools` the system prompt describes the tools, and calls are sent as text. Without `pictures`,
    lines of text take their place.
    """

    config: ContextConfig
    system: str
    tools: tuple[JsonObject, ...]
    text_tools: bool = False
    pictures: bool = True

    @property
    def tools_as_sent(self) -> Tools:
        """The tools as they are counted: schemas, or a part of the system prompt."""
        return describe_tools(self.tools) if self.text_tools else self.tools

    def prompt(
        self, branch: Sequence[Message], model: str, seen: SeenBranch | None = None
    ) -> Sequence[Message]:
        """Return the messages to plan: the system prompt, then the branch as `model` may see it.

        `seen` remembers the messages that were converted before, for a branch that grows.
        """
        system = Message("system", self.system)
        return (seen or SeenBranch()).below(system, branch, model, pictures=self.pictures)

    def to_json(self) -> dict[str, Json]:
        """Return the inputs as plain JSON values.

        Of the calibration, only the factor by which messages are cut is included. The rest affects sizes,
        which the request's record has anyway, and would make the inputs of every request different.
        """
        shape = {"shape": self.config.calibration.shape}
        config = asdict(self.config) | {"tools": dict(self.config.tools), "calibration": shape}
        data = {"config": config, "system": self.system, "tools": [dict(tool) for tool in self.tools]}
        text_tools = {"text_tools": True} if self.text_tools else {}
        return {**data, **text_tools, **({} if self.pictures else {"pictures": False})}

    @classmethod
    def from_json(cls, data: JsonObject) -> RequestInputs:
        """Read inputs from JSON, ignoring keys that the configuration no longer has."""
        known = {field.name for field in fields(ContextConfig)}
        config = {key: value for key, value in data["config"].items() if key in known}
        config["unproven_share"] = 0.0  # it was sent: no need to test whether it fits
        config["calibration"] = Calibration(**config.get("calibration", {}))
        return cls(
            ContextConfig(**config),
            data["system"],
            tuple(data["tools"]),
            data.get("text_tools") is True,
            data.get("pictures") is not False,
        )


def digest(value: JsonObject) -> str:
    """Return a short hash of `value`; equal values have equal hashes."""
    return hashlib.sha256(canonical(value)).hexdigest()[:16]


def wire_hash(sent: Sequence[bytes], tools: Sequence[JsonObject]) -> str:
    """Return the hash of a wire form: its messages, each in canonical JSON, and its tools."""
    hashed = hashlib.sha256()
    for text in sent:
        hashed.update(text + b"\n")
    hashed.update(canonical(list(tools)))
    return hashed.hexdigest()


def canonical(value: Json) -> bytes:
    """Return `value` as canonical JSON: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str).encode()
