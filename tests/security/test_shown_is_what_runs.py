"""What a question shows is what runs: nothing in it is hidden, forged, or drawn as something else."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.text import exact, exact_spans, printable, visible
from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.run_command import RunCommand
from tests.support.tui import asking_chat, idle, make_app, reads, type_line

UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200d\u2060\u2061\u2064\u206a\u3164\ufe0f"
    "\ufeff\uffa0\U0001d173\U000e0041\U000e0100\u2800\u00a0\u2003\u3000\u205f"
)
NO_LINE_ENDS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
ALL = "".join(map(chr, range(sys.maxunicode + 1)))
EVERYTHING = st.characters(exclude_categories=())


@pytest.mark.parametrize("char", UNSEEN, ids=lambda char: f"U+{ord(char):04X}")
def test_a_character_that_is_drawn_as_nothing_or_as_a_blank_is_shown(char: str) -> None:
    assert exact(f"rm{char} -rf") == f"rm<U+{ord(char):04X}> -rf"


@pytest.mark.parametrize("char", NO_LINE_ENDS, ids=lambda char: f"U+{ord(char):04X}")
def test_only_a_line_feed_ends_a_line(char: str) -> None:
    shown = exact(f"true # go to scratch{char}cd scratch &&\nrm -rf data")
    assert [len(line.split("#")) for line in shown.splitlines()] == [2, 1]
    assert "cd scratch" in shown.splitlines()[0]


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("p\u0430ypal.com", "p<U+0430>ypal.com"),
        ("curl ex\u0430mple.org", "curl ex<U+0430>mple.org"),
        ("\u0441at", "<U+0441>at"),
        ("\u043f\u0440\u0438\u0432e\u0442", "\u043f\u0440\u0438\u0432<U+0065>\u0442"),
        ("g\u03bfogle", "g<U+03BF>ogle"),
        ("\U0001d42bm", "<U+1D42B>m"),
        ("pay_\u0440\u0430", "pay_<U+0440><U+0430>"),
        ("v2\u0430", "v2<U+0430>"),
    ],
)
def test_a_word_of_mixed_scripts_is_marked(word: str, shown: str) -> None:
    assert exact(word) == shown


@pytest.mark.parametrize(
    "text",
    ["git commit -m 'Grüße, привет мир, 漢字です, Python入門, 5 µs, naïve, grün_2, x_2'", "ls 'été' | wc -l"],
)
def test_ordinary_text_of_one_script_a_word_is_shown_as_it_is(text: str) -> None:
    assert exact(text) == text


def test_a_byte_that_is_no_text_and_half_a_character_are_shown() -> None:
    assert exact("rm \udce9\udc80") == "rm <0xE9><0x80>"
    assert exact("a\ud800b") == "a<U+D800>b"


def test_codes_that_are_real_are_told_from_those_that_are_written() -> None:
    assert list(exact_spans("<U+202E>\u202e")) == [("<U+202E>", False), ("<U+202E>", True)]


def test_what_is_drawn_as_nothing_is_what_unicode_says() -> None:
    hidden = regex.findall(r"\p{Default_Ignorable_Code_Point}", ALL)
    assert len(hidden) > 4000
    assert not set(exact("".join(hidden))) & set(hidden)
    assert not set(printable("".join(hidden), 0)) & set(hidden)


def test_no_code_point_passes_that_is_not_printable() -> None:
    unfit = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
    chars = [char for char in ALL[:0x3400] + ALL[0x3400::41] if unicodedata.category(char) in unfit]
    assert set(exact("".join(chars))) & set(chars) == {"\n", " "}


@given(st.text(EVERYTHING))
def test_what_is_shown_is_printable_and_of_the_same_lines(text: str) -> None:
    shown = exact(text)
    assert shown.replace("\n", "").isprintable()
    assert shown.count("\n") == text.count("\n")
    assert printable(text, 0).isprintable()


@given(st.text(EVERYTHING))
def test_what_is_for_reading_holds_nothing_that_steers(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    categories = {unicodedata.category(char) for char in shown if char not in "\n\u200c\u200d"}
    assert not categories & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


async def test_the_question_draws_every_character_of_the_command(tmp_path: Path) -> None:
    command = "true # go to scratch\rcd scratch &&\nrm\u3164x \udce9 p\u0430y"
    async with make_app(asking_chat(tmp_path, command), tmp_path).run_test() as pilot:
        await type_line(pilot, "go")
        await reads(pilot, "true # go to scratch␍cd scratch &&", "rm<U+3164>x <0xE9> p<U+0430>y")
        await pilot.press("escape")
        await idle(pilot)


@pytest.mark.skipif(os.name == "nt", reason="names are bytes only where the system says so")
async def test_the_bytes_that_are_shown_are_the_bytes_that_run(tmp_path: Path) -> None:
    arguments = json.loads(r"""{"command": "printf %s \"\udcc3\udca9\r\" | od -An -tx1"}""")
    assert exact(RunCommand().describe(arguments)) == 'printf %s "<0xC3><0xA9>␍" | od -An -tx1'
    result = await RunCommand().run(arguments, ToolContext(tmp_path, {"PATH": os.environ["PATH"]}))
    assert result.text.split()[:3] == ["c3", "a9", "0d"]


@pytest.mark.parametrize("command", ["echo \ud800", "echo \x00"])
def test_what_no_shell_takes_is_refused_before_it_is_asked_for(command: str) -> None:
    with pytest.raises(ToolError, match="which no shell takes"):
        RunCommand().describe({"command": command})
