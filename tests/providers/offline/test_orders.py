"""Plain orders are understood; talk about files is not an order."""

from __future__ import annotations

import pytest

from rolling_chat.providers.offline.orders import Order, read_orders, read_questions


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("list files", Order("list", path=".")),
        ("List the files in src/parser.", Order("list", path="src/parser")),
        ("please list all files in the folder docs", Order("list", path="docs")),
        ("show me the files", Order("list", path=".")),
        ("ls", Order("list", path=".")),
        ("read README.md", Order("read", "README.md")),
        ("Can you read the file `my notes.txt`?", Order("read", "my notes.txt", question="?".strip("?"))),
        ("read src/a.py lines 10-20", Order("read", "src/a.py", start=10, end=20, question="lines 10-20")),
        (
            "read conf.toml and tell me the port",
            Order("read", "conf.toml", question="and tell me the port"),
        ),
        ("search for TODO", Order("search", "TODO", path=".")),
        ('search for "def main" in src/', Order("search", "def main", path="src/")),
        ("grep needle in the files", Order("search", "needle", path=".")),
        ("run `ls -la | wc -l`", Order("run", "ls -la | wc -l")),
        ("run make test", Order("run", "make test")),
        ("Run: echo hello", Order("run", "echo hello")),
        ("replace `a b` with `c` in notes.txt", Order("edit", "a b", path="notes.txt", new="c")),
        (
            "Please change every 'x' to \"y\" in the file src/a.py.",
            Order("edit", "x", path="src/a.py", new="y", every=True),
        ),
        (
            "replace `a` by `b` in notes.txt everywhere",
            Order("edit", "a", path="notes.txt", new="b", every=True),
        ),
        ("write `hello; world` to new.txt", Order("write", path="new.txt", new="hello; world")),
        ("move a.txt to src/b.txt", Order("move", path="a.txt", new="src/b.txt")),
        ("rename the file `a b` to `c d`", Order("move", path="a b", new="c d")),
        ("delete x.txt", Order("delete", path="x.txt")),
        ("make a todo list: a, b, c", Order("todo", "a, b, c")),
        ("Set the to-do list: [x] a, [>] b.", Order("todo", "[x] a, [>] b")),
        ("outline x.py", Order("outline", path="x.py")),
        ("show me the outline of src", Order("outline", path="src")),
        ("fetch http://127.0.0.1:8000/a?b=c.", Order("fetch", "http://127.0.0.1:8000/a?b=c")),
        (
            "fetch https://example.com and tell me the port",
            Order("fetch", "https://example.com", question="and tell me the port"),
        ),
    ],
)
def test_an_order_is_read(text: str, order: Order) -> None:
    assert read_orders(text) == [(order,)]


def test_steps_follow_one_another_and_several_files_go_together() -> None:
    assert read_orders("read a.txt and b.txt, then run `make; make test`; list files") == [
        (Order("read", "a.txt"), Order("read", "b.txt")),
        (Order("run", "make; make test"),),
        (Order("list", path="."),),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Why does the program run slowly?",
        "I read a book yesterday.",
        "The list of files is in index.txt",
        "What did you read in notes.txt?",
        "",
        "run",
        "x" * 100_000,
        "read " + "a" * 3_000,
    ],
)
def test_talk_is_no_order(text: str) -> None:
    assert read_orders(text) == []


def test_what_is_a_question() -> None:
    assert all(map(read_questions, ("Where is it?", "what is my name", "tell me the port", "it is red?")))
    assert not any(map(read_questions, ("My name is Ada.", "Thanks!", "", " \n")))


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        ("The parser is in lexer.py. Where is the parser?", ["Where is the parser?"]),
        ("Where is it? And why?", ["Where is it?", "And why?"]),
        ("What is red?\n\nname = 'apple'\nis it? nobody knows\n\nThe end.", ["What is red?"]),
        ("find the port\n\nport = 8080\nhost = 'a'", ["find the port"]),
        ("port = 8080\nname = 'a'\n\ntell me the port", ["tell me the port"]),
    ],
)
def test_a_text_sent_along_with_a_question_is_none(text: str, questions: list[str]) -> None:
    assert read_questions(text) == questions
