"""The servers of a walk: both wire formats, strict about every request, faulty in their answers."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Collection
from typing import Any

from aiohttp import web

from tests.soak.faults import REFUSALS, WITHOUT_NUMBERS, choose_fault
from tests.soak.journal import Journal
from tests.soak.replies import SECRET, make_reply
from tests.soak.wire_rules import broken_anthropic_body, broken_openai_body
from tests.support.servers import AnthropicServer, Fail, OpenAIServer
from tests.support.servers.running import ScriptedServer
from tests.support.servers.script import Step

# Texts that are followed through the program: `say12x` was typed, `mark7x` came from a server.
MARK = re.compile(r"\b(?:say|mark)\d+x\b")
KEY = "sk-soak-right-key"
_LEAST_WINDOW = 5_000  # tokens: tools, instructions and a reply still fit
_SHRINKS = 0.015  # how often, a request
_LESSONS = 4  # refusals that a smaller window may cost: two processes, each sends again twice at most


class Elsewhere(ScriptedServer):
    """Another origin, which must never see a request."""

    path = "/{rest:.*}"

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._journal.violate("a request followed a redirect to another origin", path=request.path)
        return web.Response(status=404)


class Strict(ScriptedServer):
    """What both formats share: a base to be mixed in before a real server.

    `served` counts the requests; `tokens` is the count of the newest one, `messages` its messages.
    While `calm` it answers plainly.
    """

    wire = ""

    def watch(self, journal: Journal, seed: int, elsewhere: str, without: Collection[str]) -> None:
        """Say where to note what happens, and which faults are left out."""
        self._journal, self._seed, self._elsewhere, self._without = journal, seed, elsewhere, without
        self._script = self._choose
        self._lessons = 0
        self._shape = "openai"
        self.calm = False
        self.served = 0
        self.served_at = 0.0  # seconds, on the clock of `time.monotonic`
        self.tokens = 0
        self.messages: list[dict[str, Any]] = []
        self.marks: set[str] = set()

    def problems(self, body: dict[str, Any]) -> list[str]:
        """What is malformed in `body`."""
        raise NotImplementedError

    def count(self, body: dict[str, Any]) -> int:
        try:
            return super().count(body)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._journal.violate(f"{self.wire}: a body that cannot be counted: {error!r}", body=body)
            return 0

    def refusal(self, body: dict[str, Any], tokens: int) -> Fail | None:
        text = json.dumps(body, ensure_ascii=False)
        self.served += 1
        self.served_at = time.monotonic()
        self.marks |= set(MARK.findall(text))
        self.tokens, self.messages = tokens, body["messages"]
        del self.requests[:-3]  # a long session would not fit into memory
        if SECRET in text:
            self._journal.violate("a file outside the folder was read unasked")
        if problems := self.problems(body):
            self._journal.violate(f"{self.wire}: malformed: {'; '.join(problems[:3])}", body=body)
            return Fail(400, {"error": {"message": problems[0]}})
        room = body.get("max_tokens") or body.get("max_completion_tokens") or 0
        if tokens + room <= self.window:
            if self._shape in WITHOUT_NUMBERS:
                self._lessons = _LESSONS  # it taught nothing that could be kept
            return None
        self._lessons -= 1
        if self._lessons < 0:
            what = f"{self.wire}: over the window: {tokens} + {room} > {self.window}"
            self._journal.violate(what, served=self.served)
        return self._too_long(tokens + room)

    def _too_long(self, tokens: int) -> Fail:
        """Refuse a request of so many tokens, the room for its answer included: that sum is too long."""
        status, body = REFUSALS[self._shape]
        self._journal.write("refusal", wire=self.wire, request=self.served, shape=self._shape, tokens=tokens)
        text = json.dumps(body).replace("{sent}", str(tokens)).replace("{window}", str(self.window))
        return Fail(status, json.loads(text))

    def _choose(self, body: dict[str, Any]) -> Step:
        number = self.served
        rng = random.Random(f"{self._seed}:{self.wire}:{number}")
        reply = make_reply(rng, number + self._offset, has_tools=bool(body.get("tools")))
        if self.calm:
            return reply
        if "shrink" not in self._without and rng.random() < _SHRINKS and self.window > _LEAST_WINDOW:
            self.window = max(_LEAST_WINDOW, self.window * 3 // 4)
            self._lessons, self._shape = _LESSONS, rng.choice(sorted(set(REFUSALS) - set(self._without)))
            self._journal.write("shrink", wire=self.wire, request=number, window=self.window)
        fault = choose_fault(rng, self._without)
        name = fault.name if fault else ""
        self._journal.write("request", wire=self.wire, request=number, fault=name, tokens=self.tokens)
        self._journal.count(f"fault {name}" if fault else "plain answers")
        return fault.make(rng, reply, self._elsewhere, number) if fault else reply

    _offset = 0  # so that a mark belongs to one server


class StrictOpenAI(Strict, OpenAIServer):
    """Chat completions."""

    wire = "openai"

    def problems(self, body: dict[str, Any]) -> list[str]:
        return broken_openai_body(body)


class StrictAnthropic(Strict, AnthropicServer):
    """Messages."""

    wire = "anthropic"
    _offset = 100_000

    def problems(self, body: dict[str, Any]) -> list[str]:
        fault = self._fault(body)
        return [*broken_anthropic_body(body), *([fault] if fault else [])]
