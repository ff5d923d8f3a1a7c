"""Questions to the user through the protocol's only dialog, for permissions: what is shown is what runs."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from acp import Client
from acp.schema import (
    AllowedOutcome,
    PermissionOption,
    PermissionOptionKind,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    ToolKind,
)

from rolling_chat import figures
from rolling_chat.acp.content import CallContent, diff_content, exact_lines, fenced_content
from rolling_chat.acp.tool_calls import kind_of, title_of
from rolling_chat.events import (
    Attach,
    AttachmentQuestion,
    Permission,
    PermissionAnswer,
    PermissionRequest,
    SpendingQuestion,
)
from rolling_chat.messages import ToolCall
from rolling_chat.permissions.rule_names import name_of_rule
from rolling_chat.text import exact, one_line, printable

_log = logging.getLogger("rolling_chat.acp")

_MAX_TITLE = 4_000  # characters
_LASTING = ((Permission.SESSION, "this session"), (Permission.FOLDER, "this folder"))


@dataclass(frozen=True, slots=True)
class Offer:
    """One possible answer: its id, its label and its kind."""

    id: str
    name: str
    kind: PermissionOptionKind


class Questions:
    """Asks the user of one session; `ask_stop` stops the turn if the client cancels a question.

    A question about a call waits until the client knows the call: see `announced`.
    """

    def __init__(self, client: Client, session_id: str, folder: Path, ask_stop: Callable[[], None]) -> None:
        self._client = client
        self._session_id = session_id
        self._folder = folder
        self._ask_stop = ask_stop
        self._ids: dict[str, str] = {}
        self._announced: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._numbers = itertools.count(1)

    def announced(self, call: ToolCall, id: str) -> None:
        """Record that the client knows the call in question, by the id `id`."""
        self._ids[call.id] = id
        self._announced[call.id].set()

    def forget(self) -> None:
        """Forget the calls of a turn that is over."""
        self._ids.clear()
        self._announced.clear()

    async def ask_permission(self, request: PermissionRequest) -> PermissionAnswer:
        """Ask whether a call may run; anything but a clear yes is a no."""
        call, title, offers = request.call, _title_of(request), _permission_offers(request)
        if call.id:
            await self._announced[call.id].wait()
            self._announced[call.id].clear()
            answer = await self._ask(self._ids[call.id], title, kind_of(call), self._shown(request), offers)
        else:  # not a call of the model
            answer = await self._ask_alone(title, kind_of(call), self._shown(request), offers)
        permission = next((one for one in Permission if one.value == answer), Permission.NO)
        if permission in (Permission.SESSION, Permission.FOLDER) and request.rule is None:
            permission = Permission.NO  # it was not offered
        return PermissionAnswer(permission)

    def _shown(self, request: PermissionRequest) -> list[CallContent]:
        """Return the complete action, with everything easily overlooked as a code."""
        if request.is_diff:
            done = diff_content(request.detail, self._folder, approves=True)
        else:
            done = [fenced_content(exact_lines(request.detail))]
        if request.title in ("", f"Allow {request.call.name}?"):
            return done
        return [*done, fenced_content(exact(one_line(request.title)))]

    async def ask_attachment(self, question: AttachmentQuestion) -> Attach:
        """Ask about a file that a message mentions."""
        offers = [
            Offer(Attach.WHOLE, "Attach it" if question.is_outside else "Attach all of it", "allow_once"),
            Offer(Attach.IN_PIECES, "Let the model read it in pieces", "allow_once"),
            Offer(Attach.NAME_ONLY, "Send its name only", "reject_once"),
            Offer(Attach.NOT_SENT, "Do not send", "reject_once"),
        ]
        if not question.has_pieces:
            del offers[1]
        if question.is_outside:
            title, text = "Attach a file from outside this folder?", question.path
        else:
            title, text = f"Attach {figures.tokens(question.tokens)} tokens?", question.name
        answer = await self.choose(title, text, offers)
        return next((one for one in Attach if one.value == answer), Attach.NOT_SENT)

    async def ask_spending(self, question: SpendingQuestion) -> bool:
        """Ask whether a request may exceed a cost limit."""
        name = f"Go on; ask again after another {figures.dollars(question.limit)}"
        offers = [Offer("spend", name, "allow_once"), Offer("no", "Do not send", "reject_once")]
        return await self.choose("Spend more?", f"{question.line}.", offers) == "spend"

    async def choose(self, title: str, text: str, offers: Sequence[Offer]) -> str:
        """Ask a question that is not about a call of the model; return the answer's id, empty for none."""
        return await self._ask_alone(one_line(title), "other", [fenced_content(exact_lines(text))], offers)

    async def _ask_alone(
        self, title: str, kind: ToolKind, content: list[CallContent], offers: Sequence[Offer]
    ) -> str:
        """Ask a question that is not about a call of the model, by showing it to the client as one."""
        call_id = f"question-{next(self._numbers)}"
        start = ToolCallStart(
            session_update="tool_call", tool_call_id=call_id, title=title, kind=kind, status="pending",
            content=content,
        )  # fmt: skip
        await self._client.session_update(self._session_id, start)
        name = ""
        try:
            answer = await self._ask(call_id, title, kind, content, offers)
            name = next((offer.name for offer in offers if offer.id == answer), "")
            return answer if name else ""
        finally:
            end = ToolCallProgress(
                session_update="tool_call_update", tool_call_id=call_id, status="completed",
                raw_output={"answer": name or "no answer"},
            )  # fmt: skip
            with suppress(ConnectionError):
                await self._client.session_update(self._session_id, end)

    async def _ask(
        self, call_id: str, title: str, kind: ToolKind, content: list[CallContent], offers: Sequence[Offer]
    ) -> str:
        """Return the answer's id; empty if the client canceled the question."""
        update = ToolCallUpdate(
            tool_call_id=call_id, title=title, kind=kind, status="pending", content=content
        )
        options = [
            PermissionOption(option_id=offer.id, name=one_line(offer.name), kind=offer.kind)
            for offer in offers
        ]
        response = await self._client.request_permission(self._session_id, update, options)
        if isinstance(response.outcome, AllowedOutcome):
            return response.outcome.option_id
        _log.info("a question was canceled")
        self._ask_stop()
        return ""


def _title_of(request: PermissionRequest) -> str:
    """Return the question on one line, with a whole command, because some clients show nothing else."""
    name = request.call.name
    if request.is_diff:
        return title_of(request.call)
    done = printable(request.detail, _MAX_TITLE)
    plain = f"Allow {name}?"
    if not request.title or request.title.startswith(plain):
        return f"{name}: {done}{exact(request.title.removeprefix(plain))}"
    return f"{exact(one_line(request.title))} {done}"


def _permission_offers(request: PermissionRequest) -> list[Offer]:
    always = [
        Offer(permission.value, f"Always: {name_of_rule(request.rule)} ({where})", "allow_always")
        for permission, where in _LASTING
        if request.rule is not None
    ]
    return [
        Offer(Permission.ONCE.value, "Once", "allow_once"),
        *always,
        Offer(Permission.NO.value, "No", "reject_once"),
    ]
