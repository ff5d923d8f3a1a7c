"""ripgrep only spares files that cannot match: with it and without it the matches are the same."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rolling_chat.tools.search_process import required_texts, search

_RIPGREP = shutil.which("rg") or ""
needs_ripgrep = pytest.mark.skipif(not _RIPGREP, reason="no ripgrep on this machine")

# what the engines of Python and ripgrep take for different things, or only one of them knows
_PATTERNS = (
    "needle", "needle$", "^needle", r"\bneedle\b", "(?i)NEEDLE", r"n.{4}e", r"\w+\s\w+", "x|needle", r"\d\d",
    "caf.$", r"caf\w", "größe", "(?i)GRÖSSE|größe", "(?<=a )needle", r"(\w)\1", "needle(?!s)", "a++b", "$^",
    r"need\x6ce", r"\S+;$", "[^a-z]needle", r"n(e)(?:e)dle", "needle{1,2}", "(?i)kelvin|ſet", "\ufffd",
)  # fmt: skip
_LINES = (
    b"needle", b"a needle in hay\r", b"NEEDLES;", b"caf\xe9", b"caf\xc3\xa9", b"gr\xc3\xb6\xc3\x9fe",
    b"aab 12", b"\xe2\x84\xaaelvin", b"set", b"", b"needle\x0bx\x85", b"\xef\xbb\xbfneedle",
    b"x" * 700 + b" needle", "Größe ² ٣ e\u0301".encode(), b"tab\tneedle;\r",
)  # fmt: skip
_RULES = (
    "*.log", "!keep.log", "/build/", "build/", "src/*.txt", "**/deep", "a?", "[ab]*", "!src/", "#x", r"\#x",
    "x ", "x\\ ", "**", "!*/", "deep/**/b.txt", "*.t[x]t", "src", "/a", "", "!a.txt", "*/*.log", "[!a]b",
)  # fmt: skip
_NAMES = (
    "a", "b.txt", "x.log", "keep.log", "#x", "x ", ".hidden", "ab", "with\nnewline", "-e", "ü.txt", "[x]",
)  # fmt: skip
_FOLDERS = ("src", "deep", "build", "a.txt", ".git", "src/deep", "src/build/deep")


def grow(root: Path, chance: random.Random) -> None:
    """Make a tree of files in many encodings, with rules of their own for what is ignored."""
    for folder in ("", *chance.sample(_FOLDERS, 4)):
        here = root / folder
        here.mkdir(parents=True, exist_ok=True)
        for name in chance.sample(_NAMES, 5):
            lines = chance.choices(_LINES, k=chance.randint(0, 5))
            (here / name).write_bytes(_encoded(b"\n".join(lines), chance))
        if chance.random() < 0.6:
            (here / ".gitignore").write_text("\n".join(chance.sample(_RULES, 3)) + "\n")
        if chance.random() < 0.3:
            (here / ".ignore").write_text("*\n")
        if chance.random() < 0.4:
            (here / "link").symlink_to(chance.choice(["..", "a", root.parent]))


def _encoded(data: bytes, chance: random.Random) -> bytes:
    match chance.randint(0, 9):
        case 0:
            return b"\0" + data
        case 1:
            return b"x" * 9_000 + b"\n\0" + data
        case 2 | 3 as number:
            text = data.decode(errors="replace")
            return b"\xff\xfe" + text.encode("utf-16-le") if number == 2 else text.encode("utf-32")
        case 4:
            return b"\xef\xbb\xbf" + data
        case 5:
            return data + b"\n"
        case _:
            return data


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[str]:
    root = tmp_path / "root"
    root.mkdir()
    descriptor = os.open(root, os.O_RDONLY)
    yield str(descriptor)
    os.close(descriptor)


def found(pattern: str, opened: str, *parts: str, ripgrep: str = "") -> list[str] | str:
    try:
        return list(search(pattern, 500, ripgrep, str(os.dup(int(opened))), parts))
    except (re.error, FutureWarning) as error:
        return str(error)


@needs_ripgrep
@pytest.mark.parametrize("seed", [1, 2, 157])  # in the last a rule takes back another one's
def test_the_matches_are_the_same_with_ripgrep_and_without(seed: int, opened: str, tmp_path: Path) -> None:
    chance = random.Random(seed)
    grow(tmp_path / "root", chance)
    everything = found("", opened)
    for pattern in chance.sample(_PATTERNS, 9):
        assert found(pattern, opened, ripgrep=_RIPGREP) == found(pattern, opened), pattern
    for name in ("src", "deep"):
        (tmp_path / "root" / name).mkdir(exist_ok=True)
        assert found("needle", opened, name, ripgrep=_RIPGREP) == found("needle", opened, name)
    assert found("", opened, ripgrep=_RIPGREP) == everything


@pytest.mark.skipif(shutil.which("git") is None, reason="no git on this machine")
@pytest.mark.parametrize("seed", [1, 157, 233])
def test_what_is_searched_is_what_git_would_not_ignore(seed: int, opened: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    grow(root, random.Random(seed))
    shutil.rmtree(root / ".git", ignore_errors=True)
    searched = {line.partition("\0")[0] for line in found("", opened)}
    git = [
        "git",
        "-c",
        "core.excludesFile=",
        "-c",
        "core.quotePath=false",
        "ls-files",
        "-zco",
        "--exclude-per-directory=.gitignore",
    ]
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    listed = subprocess.run(git, cwd=root, check=True, capture_output=True).stdout.decode().split("\0")[:-1]
    expected = {
        name for name in listed if not (root / name).is_symlink() and found("", opened, *name.split("/"))
    }
    assert searched == expected


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("needle", ["needle"]), (r"def needle\(", ["def needle("]), ("ab|cd", ["ab", "cd"]), ("ab|.", []),
        ("colou?r", ["colo"]), ("a+bc", ["bc"]), ("(foo)+bar", ["bar"]), ("(?!foo)ba", ["ba"]), (r"\d+", []),
        ("(?i)NEEDLE", ["NEEDLE"]), ("(?i)skill", ["ll"]), ("(?x)a b c", []), ("[ab]cd", ["cd"]),
        ("a{2}bc", ["bc"]),
        (r"a\|bc", ["a|bc"]), ("a{x", []), ("", []), ("(a|b", []), (r"[])(]xy", ["xy"]), ("(?#x)ab", ["ab"]),
    ],
)  # fmt: skip
def test_a_text_that_every_match_contains_is_found(pattern: str, texts: list[str]) -> None:
    assert required_texts(pattern)[0] == texts


def test_no_match_lacks_the_texts_that_are_required() -> None:
    chance = random.Random(1)
    parts = [*"|()*+?.^$kB", "ab", "c", "(?:", "{2}", "{,1}", "[ab]", r"\w", r"\.", "(?i)"]
    lines = ["".join(chance.choices("abcABkK.\u212a", k=chance.randint(0, 7))) for _ in range(300)]
    for _ in range(3_000):
        pattern = "".join(chance.choices(parts, k=chance.randint(1, 8)))
        try:
            expression = re.compile(pattern)
        except re.error:
            continue
        texts, ignores_case = required_texts(pattern)
        for line in filter(expression.search, lines if texts else ()):
            there = line.lower() if ignores_case else line
            assert any((text.lower() if ignores_case else text) in there for text in texts), (pattern, line)


@pytest.mark.parametrize("pattern", ["[[:alpha:]]", r"\p{L}", r"\z", "[a&&b]", "(?<n>a)", r"a{2,1}"])
def test_what_other_engines_read_otherwise_is_refused(pattern: str, opened: str) -> None:
    assert isinstance(found(pattern, opened), str)


@pytest.mark.parametrize(
    "script", ["exit 7", "printf ./a", "printf 'boom\\0'", "printf './a\\0'; exit 2", "kill -9 $$"]
)
def test_a_ripgrep_that_breaks_is_done_without(script: str, opened: str, tmp_path: Path) -> None:
    (tmp_path / "root" / "b").write_text("needle\n")
    program = tmp_path / "rg"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    assert found("needle", opened, ripgrep=str(program)) == ["b\x001:needle"]
    assert found("needle", opened, ripgrep=str(tmp_path / "none")) == ["b\x001:needle"]
