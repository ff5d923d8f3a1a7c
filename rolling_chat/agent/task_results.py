"""The figures and the shortened conversation that are stored with the result of a task."""

from __future__ import annotations

from rolling_chat.messages import SHOWN, Ending, Json
from rolling_chat.sessions.records import AskedBy, SessionInfo
from rolling_chat.sessions.store import SessionStore
from rolling_chat.task_record import TASK, TaskRecord, conversation_text
from rolling_chat.text import normalize_text

_MAX_SHOWN = 60_000  # characters of the end of the conversation


def task_extras(store: SessionStore, asked_by: AskedBy, text: str, ending: Ending) -> dict[str, Json]:
    """Return the extras of a task's result, which is `text`; none if the task never began.

    They are read from the store, so that the conversation is also kept if the task's process was killed.
    """
    info = store.task(asked_by)
    if info is None:
        return {}
    conversation = conversation_text(store.branch(info.id))
    if ending is not Ending.COMPLETE:  # otherwise the conversation already ends with it
        conversation = f"{conversation}\n{text}"
    if len(conversation) > _MAX_SHOWN:
        conversation = f"… (what was before: /resume {info.short})\n{conversation[-_MAX_SHOWN:]}"
    head = f"[{info.model}; all of it: /resume {info.short}]"
    return {SHOWN: normalize_text(f"{head}\n{conversation}"), TASK: _record(store, info).as_json()}


def _record(store: SessionStore, info: SessionInfo) -> TaskRecord:
    rows, last = store.usage_rows("model", info.id), store.last_answer(info.id)
    window = last.totals.get("max_input_tokens") if last is not None else None
    return TaskRecord(
        info.id,
        info.model,
        requests=sum(row.requests for row in rows),
        tokens=last.estimated if last is not None else 0,
        window=window if isinstance(window, int) else 0,
        cost=store.usage(info.id).cost,
    )
