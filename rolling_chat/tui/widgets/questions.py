"""The questions that a turn may ask: permission for a call, and room for the conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.events import Attach, Permission
from rolling_chat.permissions.rule_names import name_of_rule
from rolling_chat.text import one_line
from rolling_chat.tui.widgets.question import Answer, Question

if TYPE_CHECKING:
    from rolling_chat.agent.turn.oversized import LargeMessage
    from rolling_chat.events import AttachmentQuestion, PermissionRequest, SpendingQuestion

ROLL = "roll"
HEAD_AND_TAIL = "head and tail"
AS_FILE = "as a file"
EDIT = "edit"
SPEND = "spend"


def permission_question(request: PermissionRequest, clock: Callable[[], float]) -> Question:
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
    return Question(title, request.detail, answers, clock, is_diff=request.is_diff)


def address_question(model: str, addresses: Mapping[str, str], clock: Callable[[], float]) -> Question:
    """Return the question to which address to send the session; the answer "" means none."""
    answers = [Answer(place, address) for address, place in addresses.items()]
    text = f"This session is from an older version. For another address: /model {model} ADDRESS."
    nowhere = Answer("Do not send", "", escape=True)
    return Question(f"Where is {one_line(model)}?", text, (*answers, nowhere), clock)


def attachment_question(question: AttachmentQuestion, clock: Callable[[], float]) -> Question:
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
    return Question(title, detail, answers, clock)


def spending_question(question: SpendingQuestion, clock: Callable[[], float]) -> Question:
    """Return the question whether to send a request that may pass a limit of cost."""
    answers = (
        Answer(f"Go on; ask again after another {figures.dollars(question.limit)}", SPEND),
        Answer("Do not send", "", escape=True),
    )
    return Question("Spend more?", f"{question.line}.", answers, clock)


def full_question(clock: Callable[[], float]) -> Question:
    """Return the question for a prompt that does not fit while rolling context is off."""
    answers = (
        Answer("Turn rolling context on and go on", ROLL),
        Answer("Cancel", "cancel", escape=True),
    )
    text = "Rolling context would omit old messages from the prompt; all of them stay on disk."
    return Question("The conversation no longer fits", text, answers, clock)


def large_message_question(large: LargeMessage, clock: Callable[[], float]) -> Question:
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
    return Question("Your message is too large", text, answers, clock)
