"""What the world's user says, in several ways each."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from tests.benchmarks.long_run.words import person

GREETING = (
    "Hello. I look after some services, and you help me for a while: I tell you what we decide as it comes "
    "up, and ask for small things in between. When you do not know something, say so."
)
AGAIN = "For what comes next:"

CHATTER = (
    "The office is loud today, sorry if I am short.", "Lunch is at noon, I may be away for a bit.",
    "Thanks for the last one.", "I have a meeting in ten minutes.", "It rains again.",
    "Sorry for jumping around between topics.", "Nothing is on fire, take your time.",
    "I am back, where were we.", "This one should be quick.", "Let us get through the list.",
)  # fmt: skip

# {0} service, {1} name of what is decided, {2} value, {3} the value before, {4} somebody
STATED = (
    "We decided that the {1} of {0} is {2}.",
    "For {0} we settled on {2} as the {1}.",
    "By the way, the {1} of {0} is {2} from today.",
    "About {0}: its {1} is {2}, that is agreed.",
    "The {1} of {0} will be {2}, I wrote it to {4} as well.",
)
CHANGES = (
    "The {1} of {0} changes: it is {2} now, no longer {3}.",
    "Forget the {3} that I gave you for {0}: the {1} is {2}.",
    "{0} gets another {1}: {2} instead of {3}.",
    "I was wrong about the {1} of {0}, it is {2}.",
    "News from {0}: we made {2} the {1}.",
)
MUSINGS = (
    "{4} suggested {2} as the {1} of {0}; nothing is decided.",
    "What if the {1} of {0} was {2}? I only wonder.",
    "I thought about the {1} of {0} again, that can wait.",
    "Somebody asked me about the {1} of {0} today.",
    "{4} might want to talk about the {1} of {0}.",
)

# {0} service, {1} name, {2} path, {3} key
REMIND = (
    "Remind me: what is the {1} of {0}?",
    "Which {1} did we agree on for {0}?",
    "What did I tell you about {0}, what is its {1} by now?",
)
BOTH = (
    "For the handbook of {0} I need two things as they are now: its {1} and its {2}.",
    "What are the {1} and the {2} of {0}, as we agreed?",
)
AS_AGREED = (
    "Put the {1} that we agreed on for {0} into {2} (`{3}`).",
    "`{3}` in {2} is out of date: write the {1} of {0} there that I told you.",
)

LOOKUP = ("What is `{0}` set to in {1}?", "Look up `{0}` in {1}, please.")
EDIT = ("Set `{0}` in {1} to {2}.", "Change `{0}` in {1}: it has to be {2}.")
TRACE = (
    "Something broke. Read {0}: in which module was the first error, and which code has it?",
    "Find the first ERROR in {0} and name its module and its code.",
)
SEARCH = ("Where is `{0}` defined? It is somewhere in {1}.", "Find the definition of `{0}` in {1}.")
MEASURE = (
    "Run `cat {0}` and tell me the p99 of {1}.",
    "What is the p99 of {1}? `cat {0}` prints what was measured.",
)
TICKET = ("Read {0}: which version is affected?", "Which version is affected by {0}?")

FIRST = ("Have a look at {0} first.", "Before that, read {0}.")

# what a tool showed: {0} and {1} say of what
SEEN: Mapping[str, Sequence[str]] = {
    "request": (
        "The log {0} is rotated away by now. Which request was being served at its first error?",
        "Remember {0}? It is gone. I need the id of the request that its first error names.",
    ),
    "p99": (
        "What was the p99 of {1} when we measured {0} last?",
        "The load test of {0}, which p99 did {1} have there?",
    ),
    "reporter": (
        "{0} is closed and its file is gone. Who had reported it?",
        "Whose report was {0}? The file is deleted.",
    ),
}


def fill(
    rng: random.Random, ways: Sequence[str], service: str, name: str, value: str, *, old: str = ""
) -> str:
    """Say something about a service in one of these ways."""
    said = rng.choice(ways).format(service, name, value, old, person(rng))
    return said[0].upper() + said[1:] if not said.startswith(service) else said
