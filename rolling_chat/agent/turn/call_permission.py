"""Decide by hooks, rules and the user's answer whether a tool call may run."""

from __future__ import annotations

from dataclasses import dataclass

from rolling_chat.agent.hooks.session_hooks import Ruling
from rolling_chat.agent.permissions import Permissions, asked_by, refused_by_user
from rolling_chat.agent.turn.hooked_calls import verdict_with
from rolling_chat.events import (
    Emit,
    Noticed,
    Permission,
    PermissionAnswered,
    PermissionAsked,
    PermissionRequest,
)
from rolling_chat.messages import ToolCall
from rolling_chat.permissions.rules import FETCH_TOOL, Subject, propose_rule
from rolling_chat.text import normalize_text
from rolling_chat.tools import Tool
from rolling_chat.tools.editing import PreparedEdit
from rolling_chat.web_addresses import parse_address


@dataclass(frozen=True, slots=True)
class CallToApprove:
    """A tool call that needs a decision.

    `detail` shows the user what it would do, and `edit` is the change it would make, if any. `ruling` is that
    of the hooks. `remark` is shown with the question. `doubtful`: the model wrote the call as text and may
    have meant to quote it. `asker` is the task that asks, if any.
    """

    call: ToolCall
    tool: Tool
    detail: str
    edit: PreparedEdit | None
    ruling: Ruling
    remark: str = ""
    doubtful: bool = False
    asker: str = ""


async def refusal_of(wanted: CallToApprove, permissions: Permissions, emit: Emit) -> str:
    """Return what the model reads if rules or the user refuse the call; empty if it may run."""
    call, tool, detail, edit = wanted.call, wanted.tool, wanted.detail, wanted.edit
    subject: Subject = detail if edit is None else edit.paths
    exact_only = () if edit is None else edit.exact_only(permissions.runtime.paths.own)
    verdict = permissions.verdict(
        tool, subject, is_edit=edit is not None, exact_only=exact_only, doubtful=wanted.doubtful
    )
    can_ask = permissions.listener.ask is not None
    was_refused = (tool.name, detail) in permissions.refused_calls
    must_ask = wanted.doubtful or bool(exact_only) or was_refused
    verdict = verdict_with(verdict, wanted.ruling, subject, must_ask=must_ask, can_ask=can_ask)
    if verdict == "allowed":
        return ""
    if verdict == "refused":
        return permissions.refusal(tool, subject, doubtful=wanted.doubtful)
    rule = propose_rule(tool.name, subject, exact_only)
    if edit is None:
        request = PermissionRequest(call, _title(wanted), detail, rule)
    else:
        request = PermissionRequest(call, _title(wanted), edit.diff, rule, is_diff=True)
    await emit(PermissionAsked(request))
    answer = await permissions.decide(request)
    await emit(PermissionAnswered(call))
    if fault := permissions.take_fault():
        await emit(Noticed(fault, warning=True))
    if answer.permission is not Permission.NO:
        return ""
    permissions.refused_calls.add((tool.name, detail))
    return refused_by_user(normalize_text(answer.words))


def _title(wanted: CallToApprove) -> str:
    title = f"Allow {wanted.tool.name}?"
    if wanted.tool.name == FETCH_TOOL:
        title = f"Fetch from {parse_address(wanted.detail).site}?"
    title += f" ({wanted.remark})" if wanted.remark else ""
    title += " The model wrote this call as text." if wanted.doubtful else ""
    return asked_by(wanted.asker, title)
