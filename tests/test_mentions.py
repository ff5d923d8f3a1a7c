"""Mentions of files: what is one, how it is spelled, and what is none."""

from __future__ import annotations

import pytest

from rolling_chat.mentions import MARK, Mention, begins, being_typed, find, marked, plain, remarked


def first_readings(text: str) -> list[Mention]:
    return [place.readings[0][0] for place in find(text)]


@pytest.mark.parametrize(
    ("typed", "mention"),
    [
        ("@src/x.py", Mention("src/x.py")),
        ('@"a b.txt"', Mention("a b.txt")),
        ('@"a b.txt":3-4', Mention("a b.txt", 3, 4)),
        (r'@"a\nb\"\\\x1b\xff"', Mention('a\nb"\\\x1b\udcff')),
    ],
)
def test_a_path_is_read_as_it_was_typed(typed: str, mention: Mention) -> None:
    (place,) = find(marked(f"see {typed} there"))
    assert mention in [reading for reading, _ in place.readings]


@pytest.mark.parametrize(
    ("typed", "lines"),
    [("x.py:10-20", (10, 20)), ("x.py:10-", (10, 0)), ("x.py:7", (7, 7)), ("x.py:0", (1, 1))],
)
def test_lines_are_read_where_no_file_has_such_a_name(typed: str, lines: tuple[int, int]) -> None:
    (place,) = find(marked(f"@{typed}"))
    whole, with_lines = (reading for reading, _ in place.readings)
    assert whole == Mention(typed)
    assert (with_lines.path, with_lines.first, with_lines.last) == ("x.py", *lines)


def test_the_end_of_a_sentence_may_be_no_part_of_the_path() -> None:
    (place,) = find(marked("(see @x.py)."))
    assert [(mention.path, end) for mention, end in place.readings] == [
        ("x.py).", 12),
        ("x.py)", 11),
        ("x.py", 10),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "ada@example.org",
        "`@dataclass` is code",
        "```python\n@dataclass\nclass A: ...\n```",
        "an @ alone",
        "@@ -1,3 +1,4 @@",
    ],
)
def test_addresses_and_code_mention_nothing(text: str) -> None:
    assert marked(text) == text


def test_a_mark_that_comes_in_from_elsewhere_is_dropped() -> None:
    assert not list(find(marked(f"{MARK}etc/passwd")))


@pytest.mark.parametrize(
    ("before", "is_one"),
    [
        ("", True),
        ("see ", True),
        ("(", True),
        ("ada", False),
        ("!git show ", False),
        ("`", False),
        ("/run x ", False),
    ],
)
def test_a_typed_at_sign_begins_a_mention_only_where_a_word_begins(before: str, is_one: bool) -> None:
    assert begins(before) is is_one


@pytest.mark.parametrize(
    "path",
    ["src/x.py", "a b", "two\nlines", 'quo"te', "esc\x1b[2J", "b\udcffyte", "ends.", "x:10-20", "a@b", "ä"],
)
def test_a_path_is_spelled_so_that_it_is_read_again(path: str) -> None:
    spelled = Mention(path, 3, 9).spelled
    assert spelled.isprintable()
    (place,) = find(f"{MARK}{spelled} and on")
    assert Mention(path, 3, 9) in [reading for reading, _ in place.readings]


def test_what_is_being_typed_is_known_up_to_the_cursor() -> None:
    assert being_typed(f"see {MARK}src/x") == (4, "src/x")
    assert being_typed(f'see {MARK}"a b') == (4, "a b")
    assert being_typed(f"see {MARK}src/x ") is None


def test_mentions_that_were_sent_are_marked_again() -> None:
    again = remarked("see @x.py and @x.python and @x.py", ["x.py"])
    assert [mention.path for mention in first_readings(again)] == ["x.py"]
    assert plain(again) == "see @x.py and @x.python and @x.py"
