"""Read a hook's answer from its exit code, plain text or JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rolling_chat.messages import JsonObject
from rolling_chat.text import normalize_text, one_line, without_controls
from rolling_chat.tools.process import Ended, Output

Decision: TypeAlias = Literal["", "allow", "ask", "deny"]
Trigger: TypeAlias = Literal["auto", "manual"]
"""Whether the program or the user started to shorten history."""

MAX_TEXT = 10_000
"""The maximum number of characters from a hook to the model."""

BLOCKED = 2
"""The exit code of a hook that refuses; its standard error says why."""

_TELLS_MODEL = frozenset({"SessionStart", "UserPromptSubmit"})  # events whose plain output goes to the model
_DECISIONS: dict[object, Decision] = {
    "approve": "allow",
    "allow": "allow",
    "ask": "ask",
    "deny": "deny",
    "block": "deny",
}
_MAX_LINE = 300


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The answer of one hook.

    `reason` is the reason for its decision, and `context` is for the model. `updated` are new arguments for a
    call. `message` is a line for the user. `stops`: the turn must end. `fault` is why the hook itself failed,
    in a few words.
    """

    decision: Decision = ""
    reason: str = ""
    context: str = ""
    updated: JsonObject | None = None
    message: str = ""
    stops: bool = False
    fault: str = ""


def read_answer(event: str, ended: Ended, errors: Output, timeout: int) -> HookAnswer:
    """Read the answer of a hook that has ended."""
    output, error_text = _text(ended.output), _text(errors)
    if ended.timed_out:
        return HookAnswer(fault=f"it took more than {timeout} seconds")
    if ended.code == BLOCKED:
        return HookAnswer("deny", _cut(error_text) or "it gave no reason")
    if ended.code:
        how = f"exit code {ended.code}" if ended.code > 0 else f"killed by signal {-ended.code}"
        return HookAnswer(fault=f"{how}{': ' if error_text else ''}{one_line(error_text, _MAX_LINE)}")
    if not output.startswith("{"):
        return HookAnswer(context=_cut(output) if event in _TELLS_MODEL else "")
    if ended.output.left_out:
        return HookAnswer(fault=f"it wrote more than {ended.output.limit:,} bytes")
    try:
        data = json.loads(output)
    except (ValueError, RecursionError):
        return HookAnswer(fault="what it wrote begins like JSON and is none")
    return _read(event, data)


def _read(event: str, data: dict[str, Any]) -> HookAnswer:
    specific = data.get("hookSpecificOutput")
    if not isinstance(specific, dict) or specific.get("hookEventName", event) != event:
        specific = {}
    stops = data.get("continue") is False
    decision = _decision(specific.get("permissionDecision")) or _decision(data.get("decision"))
    reasons = (specific.get("permissionDecisionReason"), data.get("reason"), data.get("stopReason"))
    reason = next((one for one in reasons if isinstance(one, str) and one.strip()), "")
    updated = specific.get("updatedInput")
    return HookAnswer(
        decision,
        _cut(reason) or ("it gave no reason" if stops or decision == "deny" else ""),
        _cut(_str(specific.get("additionalContext", data.get("additionalContext")))),
        updated if isinstance(updated, dict) else None,
        one_line(normalize_text(_str(data.get("systemMessage"))), _MAX_LINE),
        stops,
    )


def _decision(value: object) -> Decision:
    return _DECISIONS.get(value, "") if isinstance(value, str) else ""


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text(output: Output) -> str:
    return b"".join(output.parts).decode("utf-8", errors="replace").strip()


def _cut(text: str) -> str:
    clean = without_controls(normalize_text(text)).strip()
    return clean if len(clean) <= MAX_TEXT else f"{clean[:MAX_TEXT]}\n[… cut at {MAX_TEXT:,} characters]"
