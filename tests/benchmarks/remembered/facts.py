"""What is told, what is talked about afterwards, and what is asked at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """A value that the user told once, and how it is asked for in other words.

    `pattern` is the value as a regular expression, in any spelling that a reader would accept.
    """

    name: str
    question: str
    pattern: str

    def is_in(self, text: str) -> bool:
        """Return whether a text has the value."""
        return re.search(self.pattern, text, re.IGNORECASE) is not None


FACTS = (
    Fact("name", "What is my service called?", r"\bkestrel\b"),
    Fact("port", "On which port does my service listen?", r"\b8,?471\b"),
    Fact("file", "In which file are the settings of my service?", r"conf/kestrel\.toml"),
    Fact("host", "On which host does our database run?", r"db-osprey"),
    Fact("backups", "For how many days do we keep backups?", r"\b45\b|forty[- ]five"),
    Fact("release", "When do we release?", r"march\s+14|14(?:th)?\s+(?:of\s+)?march|\b0?3[-/]14\b"),
    Fact("reviewer", "Who reviews our migrations?", r"\bmarta\b"),
    Fact("error", "Which error code was in my log last night?", r"\bE-?4417\b"),
)


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield " ".join(paragraph.split())


TOLD = tuple(
    _paragraphs("""\
My service is called Kestrel, and it listens on port 8471. Say in one sentence that you noted it.

The settings of Kestrel are in conf/kestrel.toml, and its database runs on the host db-osprey. Note
that, too, in one sentence.

We have decided to keep backups for 45 days, and to release on March 14. Just confirm.

Marta reviews our migrations. Last night the log had the error E4417, quota exceeded; we look at it
later. Just confirm.
""")
)
"""Eight facts in four turns."""

MATTER = tuple(
    _paragraphs("""\
Now something else. I bake bread at home, with 72 % water and 14 hours in the fridge. Why does the
cold change how it tastes? Two sentences are enough.

What is the difference between a list and a tuple in Python, and when would you take which? I mostly
write small scripts that read CSV files of some 300 lines.

My neighbor has two cats that fight whenever a third one walks past the window. What could he try
first? He lives on the second floor.

Explain in short what a hash map does when two keys collide. I once read about chaining and about
open addressing, and forgot which of them Python takes.

I want to run ten kilometers in under 55 minutes by summer. At the moment I need 62. How should a
week of training look?

What does the word serendipity mean, and where does it come from? A friend of mine used it three
times yesterday.

In a SQL query, what is the difference between WHERE and HAVING? An example with orders by customer
would help.

My tomato plants on the balcony have yellow leaves at the bottom. I water them every evening, about
two liters for six plants. What is the likely cause?

How does a refrigerator get cold inside? Explain it to a child of nine years, please.

When should I use a generator instead of a list in Python? My files have up to two million lines.

We are three adults and a dog and have four days in the Alps in June. Which kind of tour would you
suggest, huts or a base in the valley?

What is the difference between TCP and UDP? I heard that video calls take the second, and I do not
see why losing data would be good.

My guitar goes out of tune within 20 minutes. The strings are a week old. What do I check first?

Explain the rule of three for code: when is it time to make a function of repeated lines?

Why is the sky blue by day and red in the evening? I know that it has to do with scattering.

Someone at work says that daily meetings of 15 minutes are a waste of time. What speaks for them,
and what against them?

How does git rebase differ from git merge? In our team there are five people, and the history looks
like a metro map.

I sleep badly when I drink coffee after four in the afternoon. How long does caffeine stay in the
body?

What is a deadlock? Please give the smallest example with two threads and two locks.

My bicycle chain skips under load, mostly on the two smallest cogs. It has done 4,000 kilometers.
Chain or cassette?

Why do we say that floating point numbers are not exact? 0.1 + 0.2 was my first surprise.

A recipe asks for 250 grams of butter, and I have only oil. What do I change in a cake?

What does idempotent mean for a web API, and which of the HTTP methods should be so?

We plan a quiz for 12 people. Could you suggest three kinds of questions that are fun for children
and adults alike?

How do noise-canceling headphones work, and why are they better at low tones than at voices?
""")
)
"""Twenty-five turns of other matter, with figures of their own."""
