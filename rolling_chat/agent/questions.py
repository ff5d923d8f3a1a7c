"""Questions to the user as values: their texts, and the answers to choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.events import Attach, Permission
from rolling_chat.permissions.rule_names import name_of_rule
from rolling_chat.text import one_line

if TYPE_CHECKING:  # the first question is asked before the agent is loaded
    from collections.abc import Sequence

    from rolling_chat.agent.turn.oversized import LargeMessage
    from rolling_chat.events import AttachmentQuestion, PermissionRequest, SpendingQuestion
    from rolling_chat.settings.project_files import ProjectFile
    from rolling_chat.settings.trust import FolderTrust


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a question: its label, and the value that is returned.

    `escape` marks the harmless answer, which Esc also gives, without a delay. `approves`: it cannot be given
    until everything that would be done has been visible; `unseen`: it is offered until then. `takes_words`:
    the text in the prompt box goes with it.
    """

    label: str
    value: str
    escape: bool = False
    approves: bool = False
    unseen: bool = False
    takes_words: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The user's reply: the value of the answer, and the words that the user added, if any."""

    value: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class UserQuestion:
    """A question: its title, exactly what would be done (a diff with `is_diff`), and the answers."""

    title: str
    detail: str
    answers: tuple[Answer, ...]
    is_diff: bool = False


TRUST, SHOW, NOT_NOW, NEVER = "trust", "show", "not now", "never"
_MAX_NAMED = 6  # files of a kind

ROLL = "roll"
HEAD_AND_TAIL = "head and tail"
AS_FILE = "as a file"
EDIT = "edit"
SPEND = "spend"


def trust_question(trust: FolderTrust, files: Sequence[ProjectFile]) -> UserQuestion:
    """Return the question whether to use a folder's own files: instructions, settings and the like."""
    answers = (
        Answer("Go on without them", NOT_NOW, escape=True),
        Answer("Show them first", SHOW),
        Answer("Trust them: use them now and from now on", TRUST, approves=True),
        Answer("Go on without them, and do not ask again", NEVER),
    )
    return UserQuestion("Trust this folder?", _brought_along(trust, files), answers)


def permission_question(request: PermissionRequest) -> UserQuestion:
    """Return the question whether to permit a tool call, with the rule that "Always" would add."""
    lasting = (("this session", Permission.SESSION), ("this folder", Permission.FOLDER))
    always = [
        Answer(f"Always: {name_of_rule(request.rule)} ({where})", permission, approves=True)
        for where, permission in lasting
        if request.rule is not None
    ]
    answers = (
        Answer("Once", Permission.ONCE, approves=True),
        *always,
        Answer("No", Permission.NO, escape=True),
        Answer("No, and say why", Permission.NO, takes_words=True),
        Answer("Approve unseen, once", Permission.ONCE, unseen=True),
    )
    title = one_line(request.title or request.call.name)
    return UserQuestion(title, request.detail, answers, request.is_diff)


def address_question(model: str, addresses: Mapping[str, str]) -> UserQuestion:
    """Return the question at which address a model is; the answer "" means not to send."""
    answers = [Answer(place, address) for address, place in addresses.items()]
    text = (
        f"An older version did not keep it, or somebody else chose it. For another: /model {model} ADDRESS."
    )
    nowhere = Answer("Do not send", "", escape=True)
    return UserQuestion(f"Where is {one_line(model)}?", text, (*answers, nowhere))


def attachment_question(question: AttachmentQuestion) -> UserQuestion:
    """Return the question about a file that the user mentioned: one outside the folder, or a large one."""
    answers = [
        Answer("Attach it" if question.is_outside else "Attach all of it", Attach.WHOLE),
        Answer("Let the model read it in pieces", Attach.IN_PIECES),
        Answer("Send its name only", Attach.NAME_ONLY),
        Answer("Do not send", Attach.NOT_SENT, escape=True),
    ]
    if not question.has_pieces:
        del answers[1]
    if question.is_outside:
        title, detail = "Attach a file from outside this folder?", question.path
    else:
        title = f"Attach {figures.tokens(question.tokens)} tokens?"
        detail = question.name
    return UserQuestion(title, detail, tuple(answers))


def spending_question(question: SpendingQuestion) -> UserQuestion:
    """Return the question whether to send a request that may exceed a limit on costs."""
    answers = (
        Answer(f"Go on; ask again after another {figures.dollars(question.limit)}", SPEND),
        Answer("Do not send", "", escape=True),
    )
    return UserQuestion("Spend more?", f"{question.line}.", answers)


def full_question() -> UserQuestion:
    """Return the question for a prompt that does not fit while rolling context is off."""
    answers = (
        Answer("Turn rolling context on and go on", ROLL),
        Answer("Cancel", "cancel", escape=True),
    )
    text = "Rolling context would omit old messages from the prompt; all of them stay on disk."
    return UserQuestion("The conversation no longer fits", text, answers)


def large_message_question(large: LargeMessage) -> UserQuestion:
    """Return the question for a user's message that is too large by itself."""
    answers = [
        Answer("Send its head and tail", HEAD_AND_TAIL),
        Answer("Send it as a file that the model reads in pieces", AS_FILE),
        Answer("Edit it", EDIT, escape=True),
    ]
    if not large.can_read:
        del answers[1]
    text = (
        f"It takes {figures.tokens(large.tokens)} tokens, and {figures.tokens(large.room)} are free for it. "
        "All of it stays in this session, and what is sent names a private file with all of it."
    )
    return UserQuestion("Your message is too large", text, tuple(answers))


def _brought_along(trust: FolderTrust, files: Sequence[ProjectFile]) -> str:
    lines = [f"{trust.root} has files that would be used here:", ""]
    for kind, group in groupby(files, lambda file: file.kind):
        named = list(group)
        lines += [f"  {_name(trust, file)}: {kind.words}" for file in named[:_MAX_NAMED]]
        if len(named) > _MAX_NAMED:
            lines.append(f"  and {len(named) - _MAX_NAMED:,} more of this kind")
    lines += ["", "They may come from somebody else. Nothing in them is used yet."]
    return "\n".join(lines)


def _name(trust: FolderTrust, file: ProjectFile) -> str:
    return f"{file.name} (changed since you trusted it)" if trust.has_changed(file) else file.name
