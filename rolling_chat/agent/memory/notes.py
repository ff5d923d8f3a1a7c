"""The model's notes in one session: made by its calls on the branch, and edited by the user."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.memory.pin_scope import note_id, placed
from rolling_chat.agent.session_state import SessionState
from rolling_chat.context.notice_contents import NO_CONTENTS, NoticeContents
from rolling_chat.context.pins import resolve_pins
from rolling_chat.context.tokens import bounding_estimator
from rolling_chat.notes import (
    NO_EDITS,
    Note,
    NoteEdits,
    NoteKey,
    max_notes_tokens,
    normalize_note,
    note_of_call,
    notes_after,
    parse_key,
)
from rolling_chat.text import one_line


class SessionNotes:
    """Reads, changes and removes the notes of one session (`tools.note_pad.NotePad`).

    Notes belong to the branch of the calls that made them. Methods raise ChatError if they fail.
    """

    def __init__(self, state: SessionState) -> None:
        self._state = state

    @property
    def notes(self) -> Sequence[Note]:
        """The notes on the branch, oldest first, without those that the user removed or excluded."""
        conversation, planner = self._state.conversation, self._state.planner
        edits, excluded = self._edits_and_excluded()
        # the plan has the notes of messages that were not read, which the prompt omits
        plan = planner.plan_state.plan
        notice = plan.decisions.notice if plan is not None else NO_CONTENTS
        recent = enumerate(conversation.recent, conversation.first_index)
        notes = notes_after((*notice.notes, *notice.hidden_notes), recent, edits)
        return [note for note in notes.values() if note.text and note.key.index not in excluded]

    def _edits_and_excluded(self) -> tuple[NoteEdits, Set[int]]:
        """Return the user's edits of notes on this branch, and the indices of excluded messages."""
        if not self._state.planner.plan_state.pins:
            return NO_EDITS, frozenset()
        with in_words():
            messages = self._state.conversation.messages
        pins = self._state.planner.plan_state.pins.on(messages)
        return pins.notes, resolve_pins(placed(messages), pins).excluded

    @property
    def next_key(self) -> NoteKey:
        """The key for the note made by the first open call of the newest reply."""
        conversation = self._state.conversation
        recent, open_calls = conversation.recent, conversation.open_calls()
        at = next((at for at in range(len(recent) - 1, -1, -1) if recent[at].role == "assistant"), 0)
        calls = recent[at].tool_calls if recent else ()
        before = calls[: len(calls) - len(open_calls)]
        return NoteKey(
            conversation.first_index + at, 1 + sum(note_of_call(call) is not None for call in before)
        )

    @property
    def max_tokens(self) -> int:
        """The limit for all notes together, in tokens."""
        return max_notes_tokens(self._state.setup.window)

    def count(self, notes: Sequence[Note]) -> int:
        """Return the size of notes in the prompt, in tokens: the same upper bound that the prompt uses."""
        if not notes:
            return 0
        return bounding_estimator(self._state.setup.model).bound_text(
            NoticeContents(notes=tuple(notes)).notes_block
        )

    def find(self, name: str) -> Note:
        """Return the note of this name."""
        key, notes = parse_key(name), self.notes
        for note in notes:
            if note.key == key:
                return note
        known = ", ".join(note.key.name for note in notes)
        known = f"the notes are {known}" if known else "there are none on this branch"
        raise ChatError(f"There is no note {one_line(name, 20)!r}; {known}.")

    def change(self, name: str, text: str) -> Note:
        """Replace a note's text, which no later call of the model changes; return the note."""
        changed = normalize_note(text)
        if not changed:
            raise ChatError(f"The note is empty; /notes delete {name} removes it.")
        note = replace(self.find(name), text=changed, by_user=True)
        others = [one for one in self.notes if one.key != note.key]
        size = self.count([*others, note])
        if size > self.max_tokens:
            raise ChatError(
                f"Not changed: all notes would take {size:,} tokens, and {self.max_tokens:,} are the most. "
                "Make it shorter, or delete another one."
            )
        self._keep(note.key, changed)
        return note

    def remove(self, name: str) -> Note:
        """Remove a note; return it."""
        note = self.find(name)
        self._keep(note.key, "")
        return note

    def _keep(self, key: NoteKey, text: str) -> None:
        state = self._state
        if state.is_followed:
            state.make_ours()
        with in_words():
            message = state.conversation.messages[key.index - 1]
        notes = {**state.planner.plan_state.pins.notes, note_id(message.id, key.number): text}
        state.keep_pins(replace(state.planner.plan_state.pins, notes=notes))
