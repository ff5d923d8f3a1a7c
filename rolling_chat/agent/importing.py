"""Import conversations from elsewhere as sessions, unchanged; only prompts repair them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import get_args

from rolling_chat.agent.plan_mode import PLAN_ENDED, PLAN_NOTE
from rolling_chat.messages import NOTE, Message, Role
from rolling_chat.replay import Transcript
from rolling_chat.sessions.ids import is_id
from rolling_chat.sessions.records import SessionInfo, SessionNotFound
from rolling_chat.sessions.store import SessionStore
from rolling_chat.sessions.titles import title_of

_AT_A_TIME = 500  # messages in one transaction, so that other processes need not wait for a long import
_ROLES = frozenset(get_args(Role))


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of importing one conversation.

    `info` is its session, None if the conversation was empty, and `is_new` whether this import created it.
    `oddities` counts the parts that no model would accept unchanged, by kind.
    """

    info: SessionInfo | None
    is_new: bool
    oddities: dict[str, int]


def import_transcript(store: SessionStore, transcript: Transcript, folder: str, *, rolling: bool) -> Imported:
    """Store a conversation as a session, unless a session with the same messages exists.

    An exported session keeps its id, by which it is recognized even if it has continued since. Without a
    title of its own, it gets one like any session; `rolling` is whether rolling context is on in it. Raises
    StoreError. After an error or an interruption, nothing of the conversation remains in the store.
    """
    messages = [*map(_without_foreign_note, transcript.messages)]
    oddities = {what: count for what, count in _oddities(transcript) if count}
    if not messages:
        return Imported(None, False, oddities)
    own = _exported(store, transcript.id)
    same = own if own is not None and _begins(store, own, messages) else _same(store, messages)
    if same is not None:
        return Imported(same, False, oddities)
    info = store.create_session(
        folder=folder, model="", rolling=rolling, title="import that was not finished",
        id=transcript.id if own is None and is_id(transcript.id) else "",
    )  # fmt: skip
    try:
        rest = iter(messages)
        while batch := list(islice(rest, _AT_A_TIME)):
            store.append_all(info.id, batch)
        user_texts = (message.text for message in messages if message.role == "user")
        title = transcript.title or next(filter(None, map(title_of, user_texts)), "")
        info = store.update_session(info.id, title=title, title_given=bool(transcript.title))
    except BaseException:
        store.delete(info.id)
        raise
    return Imported(info, True, oddities)


def _without_foreign_note(message: Message) -> Message:
    """Remove a note that this program did not write: the model would read it, but the user never see it."""
    if not message.note or message.note in (PLAN_NOTE, PLAN_ENDED):
        return message
    return replace(
        message, extras={key: value for key, value in (message.extras or {}).items() if key != NOTE}
    )


def _exported(store: SessionStore, id: str) -> SessionInfo | None:
    """Return the session in the store that a conversation was exported from or imported to, if any."""
    try:
        return store.session(id) if is_id(id) else None
    except SessionNotFound:
        return None


def _begins(store: SessionStore, info: SessionInfo, messages: Sequence[Message]) -> bool:
    branch = store.branch(info.id)[: len(messages)]
    return [one.to_dict() for one in branch] == [one.to_dict() for one in messages]


def _same(store: SessionStore, messages: Sequence[Message]) -> SessionInfo | None:
    """Return the session whose messages equal `messages`, if any."""
    wanted: list[object] | None = None
    for info in store.sessions():
        if info.messages != len(messages):
            continue
        wanted = wanted or [message.to_dict() for message in messages]
        if [message.to_dict() for message in store.branch(info.id)] == wanted:
            return info
    return None


def _oddities(transcript: Transcript) -> Iterator[tuple[str, int]]:
    roles = [message.role for message in transcript.messages]
    yield "fields of the wrong type", transcript.repaired
    yield "unknown roles", sum(role not in _ROLES for role in roles)
    yield "results without a call", sum(_orphans(transcript.messages))
    yield "calls without a result", sum(_unanswered(transcript.messages))


def _orphans(messages: Sequence[Message]) -> Iterator[bool]:
    """Yield for every result whether the reply before it has no call left for it."""
    left = 0
    for message in messages:
        if message.role == "tool":
            yield left <= 0
            left -= 1
        else:
            left = len(message.tool_calls)


def _unanswered(messages: Sequence[Message]) -> Iterator[int]:
    """Yield for every reply the number of its calls that have no result after it."""
    left = 0
    for message in messages:
        if message.role == "tool":
            left -= 1
        else:
            yield max(left, 0)
            left = len(message.tool_calls)
    yield max(left, 0)
