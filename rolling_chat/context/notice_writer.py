"""Compose the notice in the system message, and compute the most room that it may need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from rolling_chat.context.budget import Budget
from rolling_chat.context.notice_contents import NoticeContents, OmittedName
from rolling_chat.context.omitted_names import names_within, rank_names
from rolling_chat.context.pins import NO_PINS
from rolling_chat.context.prompt_items import SUMMARIZED, Decisions, PromptItem
from rolling_chat.context.prompt_walk import PromptInputs, WalkedBranch
from rolling_chat.context.summary_text import Summary, SystemNotice, max_summary_tokens
from rolling_chat.context.tool_results import first_lines
from rolling_chat.messages import Message
from rolling_chat.notes import NOTE_TOOL, Note, NoteKey, max_notes_tokens, notes_after, without_oldest
from rolling_chat.todo_list import list_of

_MIN_TODO = 64  # tokens that a to-do list may always take, even in a small window

Turns: TypeAlias = Sequence[Sequence[PromptItem]]


@dataclass(frozen=True)
class NoticeWriter:
    """Composer of one prompt's notice.

    It includes names, the to-do list and notes unless the prompt has no room for them. Without
    `reserves_room`, names use only the room that happens to be free after everything necessary was omitted.
    """

    inputs: PromptInputs
    walked: WalkedBranch
    shows_names: bool = True
    shows_todo: bool = True
    shows_notes: bool = True
    reserves_room: bool = True

    def without_reserved_room(self) -> NoticeWriter | None:
        """Return a writer that reserves no room for names; None if this one reserves none."""
        if self.reserves_room and self.shows_names and self.inputs.config.omitted_names:
            return replace(self, reserves_room=False)
        return None

    def shorter_versions(self) -> Iterator[NoticeWriter]:
        """Yield writers of shorter and shorter notices, to be tried if nothing else helps."""
        writer = self
        if self.inputs.config.omitted_names:
            writer = replace(writer, shows_names=False)
            yield writer
        if self.walked.index.todo >= 0:
            writer = replace(writer, shows_todo=False)
            yield writer
        if self._notes:
            yield replace(writer, shows_notes=False)

    def notice(self, decisions: Decisions, summary: Summary | None) -> SystemNotice:
        """Return the notice for these decisions."""
        recall, parts = self.inputs.config.recall, unsummarized_parts(decisions, summary)
        todo, contents = self._todo_at(decisions.todo_index), decisions.notice
        if not parts:
            return SystemNotice(summary=summary, recall=recall, todo=todo, contents=contents)
        count = sum(stop - start for start, stop, _ in parts)
        return SystemNotice(count, parts[0][0], parts[-1][1] - 1, summary, recall, todo, contents)

    def budget(self, decisions: Decisions, summary: Summary | None) -> Budget:
        """Return the division of the window for the longest notice that new decisions could cause."""
        notice, sizes = self.notice(decisions, summary), self.inputs.sizes
        lists = (notice.todo, self._todo_at(self.walked.index.todo))
        notes, spare = self._longest_notes
        contents = NoticeContents(notes=notes, free=0 if self.inputs.config.room else -1)
        longest = notice.longest_form(max(lists, key=sizes.bound.bound_text), contents)
        budget = sizes.budget(longest.appended_to(self.inputs.system))
        system = budget.system + spare + (self._names_room(budget) if self.reserves_room else 0)
        # under other settings, the notice may have contained more than it could contain now
        contents = notice.contents.with_only(notes=self.shows_notes, names=self.shows_names)
        now = replace(notice, contents=contents)
        return replace(budget, system=max(system, sizes.budget(now.appended_to(self.inputs.system)).system))

    def spare(self, decisions: Decisions, summary: Summary | None) -> int:
        """Return how much more room there is if nothing new is decided, in tokens."""
        return self._budget_with(decisions, summary).available - self.budget(decisions, summary).available

    def with_lists(self, turns: Turns, decisions: Decisions) -> Decisions:
        """Return decisions with the to-do list and the notes for the notice.

        `turns` are the items that are sent. The notice contains the newest list and notes whose calls are not
        among them. An older list or note stays, even if a newer one is sent, until the notice changes anyway,
        so that the beginning of the prompt does not change.
        """
        before, plan = self.walked.before, self.inputs.given_plan
        decisions = replace(decisions, todo_index=self._todo_index(decisions), notice=before.notice)
        pins = plan.pins if plan is not None else NO_PINS
        is_same = (decisions.omitted, decisions.arguments) == (before.omitted, before.arguments)
        if is_same and pins == self.inputs.pins and self.shows_notes:
            return decisions
        notes, hidden_notes = self._choose_notes(turns, decisions)
        return replace(decisions, notice=replace(before.notice, notes=notes, hidden_notes=hidden_notes))

    def with_contents(
        self, turns: Turns, decisions: Decisions, summary: Summary | None, *, is_trim: bool
    ) -> Decisions:
        """Return decisions with the full notice; names and room are updated only if it changes anyway."""
        before, plan = self.walked.before, self.inputs.plan
        decisions = self.with_lists(turns, decisions)
        is_new = not decisions.decides_like(before) if is_trim else decisions.omitted != before.omitted
        is_new |= bool(before.notice.names) and not self.shows_names
        if not is_new and summary == (plan.summary if plan is not None else None):
            return decisions
        has_room = self.inputs.config.room
        contents = replace(
            decisions.notice, names=(), free=0 if has_room else -1, seen=len(self.inputs.branch)
        )
        decisions = self._with_names(turns, replace(decisions, notice=contents), summary)
        if not has_room:
            return decisions
        free = self._free_tokens(turns, self._budget_with(decisions, summary))
        return replace(decisions, notice=replace(decisions.notice, free=free))

    def _budget_with(self, decisions: Decisions, summary: Summary | None) -> Budget:
        return self.inputs.sizes.budget(self.notice(decisions, summary).appended_to(self.inputs.system))

    # -- notes

    @cached_property
    def _notes(self) -> Mapping[NoteKey, Note]:
        """The notes of the branch; notes that the user removed have an empty text."""
        if not self.inputs.config.notes:
            return {}
        said = ((item.index, item.normalized.message) for item in self.walked.items if item.index >= 0)
        return notes_after(self._known_notes, said, self.inputs.pins.notes)

    @property
    def _known_notes(self) -> Sequence[Note]:
        """Notes whose calls may have been omitted, including those of a plan for another model."""
        plan = self.inputs.given_plan
        if plan is None or not (plan is self.inputs.plan or plan.is_of(self.inputs.branch)):
            return ()
        contents = plan.decisions.notice
        return [note for note in (*contents.notes, *contents.hidden_notes) if note.text]

    @cached_property
    def _longest_notes(self) -> tuple[tuple[Note, ...], int]:
        """The longest set of notes that may be shown, and how many tokens longer another set might be."""
        if not self.shows_notes or not self._notes:
            return (), 0
        notes = self._within_cap(tuple(self._notes.values()))
        if len(notes) == len(self._notes):
            return notes, 0
        taken = self.inputs.sizes.cutting(NoticeContents(notes=notes).notes_block)
        return notes, max_notes_tokens(self.inputs.window) - taken

    def _choose_notes(self, turns: Turns, decisions: Decisions) -> tuple[tuple[Note, ...], tuple[Note, ...]]:
        """Return the notes to show, because the sent messages lack them or differ, and those kept hidden."""
        notes = self._notes.values()
        if not notes:
            return (), ()
        sent = {item.index for turn in turns for item in turn} - decisions.arguments
        excluded = self.inputs.pin_effects.excluded
        due = [note for note in notes if note.by_user or note.key.index not in sent]
        due = [note for note in due if note.text or note.key.index in sent]
        shown = self._within_cap([note for note in due if note.key.index not in excluded])
        if not self.shows_notes:
            shown = ()
        return shown, tuple(note for note in due if note not in shown)

    def _within_cap(self, notes: Sequence[Note]) -> tuple[Note, ...]:
        """Return the newest of the notes that fit the cap."""
        cap, count = max_notes_tokens(self.inputs.window), self.inputs.sizes.cutting
        while notes and count(NoticeContents(notes=tuple(notes)).notes_block) > cap:
            notes = without_oldest(notes)
        return tuple(notes)

    # -- names and room

    def _names_room(self, budget: Budget) -> int:
        """Return the room for names, in tokens."""
        return int(self.inputs.config.omitted_names * max(0, budget.history)) if self.shows_names else 0

    def _with_names(self, turns: Turns, decisions: Decisions, summary: Summary | None) -> Decisions:
        """Add names that occur only in omitted material, as many as there is room for."""
        budget, sizes = self._budget_with(decisions, summary), self.inputs.sizes
        sent = sum(item.bound for turn in turns for item in turn)
        max_tokens = min(self._names_room(budget), budget.available - sent)
        if max_tokens <= 0:
            return decisions
        ranked = self._ranked_names(turns, self.notice(decisions, summary).appended_to(self.inputs.system))
        names = names_within(ranked, max_tokens, sizes.cutting)
        while names:
            named = replace(decisions, notice=replace(decisions.notice, names=names))
            if self._budget_with(named, summary).system <= budget.system + max_tokens:
                return named
            names = names[: len(names) * 9 // 10]
        return decisions

    def _ranked_names(self, turns: Turns, system: Message | None) -> list[OmittedName]:
        kept = {item.index: item for turn in turns for item in turn}
        omitted = (
            (item.index, item.normalized.message)
            for item in self.walked.items
            if item.index >= 0
            and item.normalized.tool != NOTE_TOOL  # the text of notes is not searched for names
            and not (item.index in kept and kept[item.index].is_whole)
        )
        sent = [item.message for turn in turns for item in turn]
        sent = [system, *sent] if system is not None else sent
        return rank_names(omitted, sent, self.walked.before.notice.names, len(self.inputs.branch))

    def _free_tokens(self, turns: Turns, budget: Budget) -> int:
        """Return how many tokens are free before the next trim."""
        sent = sum(item.bound for turn in turns for item in turn)
        free, cap = budget.available - sent, budget.history_cap
        if cap > 0:
            free = min(free, cap - sum(item.tokens for turn in turns[:-1] for item in turn))
        return max(0, free)

    # -- the to-do list

    def _todo_index(self, decisions: Decisions) -> int:
        """Return the index of the call whose to-do list the notice shows; -1 for none."""
        before, todo = self.walked.before, self.walked.index.todo
        if not self.shows_todo or todo < 0:
            return -1
        if (decisions.omitted, decisions.arguments) == (before.omitted, before.arguments):
            return before.todo_index
        if todo in decisions.omitted or todo in decisions.arguments:
            return todo
        return before.todo_index if decisions.omitted == before.omitted else -1

    def _todo_at(self, index: int) -> str:
        """Return the to-do list set by the message at `index`; empty if there is none."""
        if not self.shows_todo or not 0 <= index < len(self.inputs.branch):
            return ""
        message = self.inputs.branch[index]
        todo = list_of(message if isinstance(message, Message) else Message.from_dict(message))
        if todo is None:
            return ""
        count, cap = self.inputs.sizes.cutting, max(_MIN_TODO, max_summary_tokens(self.inputs.window) // 2)
        return first_lines(todo.text if count(todo.text) <= cap else todo.open_text, cap, count)


def unsummarized_parts(decisions: Decisions, summary: Summary | None) -> list[tuple[int, int, str]]:
    """Return the omitted parts of the branch that `summary` does not cover."""
    is_shown = summary is not None and bool(summary.text)
    return [part for part in decisions.omitted.parts if not (is_shown and part[2] == SUMMARIZED)]
