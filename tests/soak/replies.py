"""What the servers' model says: texts of every kind, and calls of tools, some of them hostile."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from tests.support.servers import Call, Reply

# Where files lie that no tool may read without being asked for; see `walk`.
SECRET = "OUTSIDE-SECRET-7f3a"
# What no terminal may ever be sent, whoever says it.
TITLE = "OWNED-BY-THE-MODEL"

_WORDS = [
    "the",
    "lexer",
    "drops",
    "trailing",
    "tabs",
    "because",
    "strip",
    "is",
    "called",
    "on",
    "every",
    "line",
    "of",
    "the",
    "parser's",
    "input",
]
_TEXTS = (
    "Short and plain.",
    "# A heading\n\nSome *words* with `code`, and:\n\n- one\n- two\n  - three\n\n1. first\n2. second\n",
    "```python\ndef f(x):\n\treturn x\n```\n\nand\n\n```\nan open fence\n",
    "| name | count |\n| --- | ---: |\n| tabs | 12 |\n| 漢字 | 3 |\n\n> quoted\n> twice\n",
    "漢字 and 👩‍💻 and é and مرحبا and \u200bzero width",
    "SAFE&#13;EVIL &#x202e;dlrow &#12; &lrm; &amp; &#27;]0;" + TITLE + "&#7; &#155;2J",
    "\x1b]0;"
    + TITLE
    + "\x07\x1b[2J\x1b[?1049l\x1b[?1000l \r over \x9b31m \u202e\u2028line\u2029par \x00 \x7f",
    "a [link](https://example.com/a?b=c) and <b>html</b> and ![image](x.png)",
    "x" * 3000,
    "- " * 300 + "deep",
    "\n" * 40 + "far below",
    "   ",
    "",
)
_CALLS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("read_file", {"path": "notes.txt"}),
    ("read_file", {"path": "big.log"}),
    ("read_file", {"path": "big.log", "start": 5, "end": 900}),
    ("read_file", {"path": "no such file"}),
    ("list_files", {"path": "."}),
    ("list_files", {}),
    ("search_files", {"pattern": "lexer"}),
    ("search_files", {"pattern": "(", "path": "."}),
    ("run_command", {"command": "echo made by hand"}),
    ("run_command", {"command": "seq 1 20000"}),
    ("run_command", {"command": "sleep 20", "timeout": 5}),
    ("run_command", {"command": "printf '\\033[2J\\r\\n\\0'; exit 3"}),
    ("run_command", {"command": "sleep 60 & echo started"}),
    ("run_command", {"command": "setsid sleep 60 & echo started"}),
    ("recall", {"id": "r1"}),
    ("recall", {"search": "lexer"}),
    ("edit_file", {"path": "notes.txt", "old": "tabs.", "new": "tabs!", "all": True}),
    ("edit_file", {"path": "notes.txt", "old": "The  lexer drops", "new": "x"}),
    ("multi_edit", {"path": "new.txt", "edits": [{"old": "one", "new": "1"}, {"old": "two", "new": "2"}]}),
    ("write_file", {"path": "new.txt", "content": "one\ntwo\n"}),
    ("write_file", {"path": "deep/er/file.txt", "content": "x" * 300}),
    ("write_file", {"path": "big.log", "content": "gone"}),
    ("move_file", {"path": "new.txt", "to": "deep/moved.txt"}),
    ("delete_file", {"path": "deep/moved.txt"}),
    ("task", {"prompt": "look for the lexer"}),
    ("task", {"prompt": "make the files", "tools": ["run_command", "write_file", "edit_file"]}),
)
_HOSTILE: tuple[tuple[str, str], ...] = (
    ("read_file", ""),
    ("read_file", "{"),
    ("read_file", "null"),
    ("read_file", '["notes.txt"]'),
    ("read_file", '{"path": 1}'),
    ("read_file", '{"path": "../home/secret.txt"}'),
    ("read_file", '{"path": "link-to-secret"}'),
    ("read_file", '{"path": "notes\\u0000.txt"}'),
    ("read_file", '{"path": "\\ud800"}'),
    ("read_file", '{"path": "notes.txt", "start": -5, "end": 1e400}'),
    ("read_file", '{"path": "notes.txt"} and more'),
    ("list_files", '{"path": "/"}'),
    ("search_files", '{"pattern": "(a+)+$", "path": "big.log"}'),
    ("search_files", '{"pattern": "SECRET", "path": "../home"}'),
    ("run_command", '{"command": ""}'),
    ("run_command", '{"command": "true # to scratch\\recho hidden"}'),
    ("run_command", '{"command": "echo \\u202e\\u2028 odd"}'),
    ("run_command", '{"command": "echo long ' + "&& true " * 300 + '"}'),
    ("no_such_tool", "{}"),
    ("read file!", "{}"),
    ("", "{}"),
    ("read_file", "[" * 3000),
    ("recall", '{"id": "r999999999999999999999"}'),
    ("recall", '{"pattern": "(a+)+$", "id": "r1"}'),
    ("write_file", '{"path": "../home/secret.txt", "content": "overwritten"}'),
    ("edit_file", '{"path": "link-to-secret", "old": "OUTSIDE", "new": "overwritten"}'),
    ("move_file", '{"path": "notes.txt", "to": "../home/stolen.txt"}'),
    ("delete_file", '{"path": "../home/secret.txt"}'),
    ("write_file", '{"path": "a\\nb\\u001b[2J.txt", "content": "x"}'),
    ("write_file", '{"path": ".", "content": "x"}'),
    ("write_file", '{"path": ".git/hooks/pre-commit", "content": "true"}'),
    ("edit_file", '{"path": "notes.txt", "old": "", "new": "x"}'),
    ("edit_file", '{"path": "notes.txt", "old": "drops", "new": "\\u202e\\u0000\\ud800", "all": "yes"}'),
    ("multi_edit", '{"path": "notes.txt", "edits": "x"}'),
    ("task", '{"prompt": "\\u001b]0;gone\\u0007 \\ud800", "tools": ["read_file"]}'),
    ("task", '{"prompt": "go on", "tools": ["task"], "model": "openai/elsewhere"}'),
    ("task", '{"prompt": "read ../home/secret.txt", "tools": "read_file"}'),
)
MANY = 500  # calls in one reply


def make_reply(rng: random.Random, number: int, *, has_tools: bool) -> Reply:
    """The reply to the `number`-th request."""
    mark = f"mark{number}x "
    calls: tuple[Call, ...] = ()
    if has_tools and rng.random() < 0.35:
        calls = tuple(_call(rng, number, index) for index in range(rng.choice((1, 1, 1, 2, 3))))
    text = mark + _text(rng) if rng.random() < 0.95 else ""
    if calls and rng.random() < 0.4:
        text = ""
    reasoning = f"I think of {mark}" + " ".join(rng.choices(_WORDS, k=12)) if rng.random() < 0.15 else ""
    return Reply(text, calls, reasoning, pause=rng.choice((0.0, 0.0, 0.01)))


def hostile_calls(rng: random.Random, number: int) -> tuple[Call, ...]:
    """Calls that no well-meaning model makes."""
    return tuple(
        Call(name, arguments, f"h{number}_{index}")
        for index, (name, arguments) in enumerate(rng.choices(_HOSTILE, k=rng.choice((1, 2, 4))))
    )


def many_calls(number: int) -> tuple[Call, ...]:
    """More calls than anybody would wait for."""
    return tuple(Call("list_files", '{"path": "."}', f"m{number}_{index}") for index in range(MANY))


def huge_call(number: int) -> tuple[Call, ...]:
    """One call whose arguments are 200 kB."""
    return (Call("read_file", json.dumps({"path": "x" * 200_000}), f"g{number}"),)


def _call(rng: random.Random, number: int, index: int) -> Call:
    name, arguments = rng.choice(_CALLS)
    return Call(name, json.dumps(arguments), f"c{number}_{index}")


def _text(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return " ".join(rng.choices(_WORDS, k=rng.choice((5, 20, 80, 300)))) + "."
    return "\n\n".join(rng.choices(_TEXTS, k=rng.choice((1, 1, 2, 4))))
