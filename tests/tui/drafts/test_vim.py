"""Vim's keys: a text with the cursor as `|`, the keys, and what vim makes of them."""

from __future__ import annotations

import random

import pytest

from rolling_chat.tui.drafts.vim import Ask, Mode, VimKeys


def press(text: str, keys: str) -> tuple[str, VimKeys, list[Ask]]:
    """Press keys in normal mode; letters are inserted in insert mode, and `^[` is Esc."""
    cursor = text.index("|")
    text = text.replace("|", "", 1)
    vim, asks, rest = VimKeys(mode=Mode.NORMAL), list[Ask](), list(keys.replace("^[", "\x1b"))
    for key in rest:
        if vim.mode is Mode.INSERT and key != "\x1b":
            text, cursor = text[:cursor] + key + text[cursor:], cursor + 1
            continue
        step = vim.escape(text, cursor) if key == "\x1b" else vim.press(key, text, cursor)
        if step is None:
            continue
        if step.edit is not None:
            start, end, new = step.edit
            text = text[:start] + new + text[end:]
        asks += step.asks
        cursor = step.cursor
    return f"{text[:cursor]}|{text[cursor:]}", vim, asks


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        # motions
        ("|one two.three", "w", "one |two.three"),
        ("|one two.three", "2W", "one two.thre|e"),
        ("one two.|three", "b", "one two|.three"),
        ("one two.|three", "B", "one |two.three"),
        ("|one two", "e", "on|e two"),
        ("|one two", "3l", "one| two"),
        ("one t|wo", "0", "|one two"),
        ("  one t|wo", "^", "  |one two"),
        ("|one two", "$", "one tw|o"),
        ("|one\ntwo", "l$", "on|e\ntwo"),
        ("one\nt|wo\nthree", "gg", "|one\ntwo\nthree"),
        ("|one\ntwo\n  three", "G", "one\ntwo\n  |three"),
        ("|one\ntwo\nthree", "2G", "one\n|two\nthree"),
        ("|a(b)c(d)", "f(", "a|(b)c(d)"),
        ("|a(b)c(d)", "2f(", "a(b)c|(d)"),
        ("|a(b)c(d)", "f(;", "a(b)c|(d)"),
        ("|a(b)c(d)", "t)", "a(|b)c(d)"),
        ("|a(b)c(d)", "t);", "a(b)c(|d)"),
        ("a(b)c(d|)", "F(", "a(b)c|(d)"),
        ("a(b)c(d|)", "F(;,", "a(b)c|(d)"),
        ("|one", "fz", "|one"),
        # operators
        ("|one two", "dw", "|two"),
        ("one |two\nthree", "dw", "one| \nthree"),
        ("|one two three", "d2w", "|three"),
        ("|one two three", "2dw", "|three"),
        ("one tw|o", "db", "one |o"),
        ("|one two", "de", "| two"),
        ("one |two three", "d$", "one| "),
        ("one |two three", "D", "one| "),
        ("one |two three", "d0", "|two three"),
        ("|a(b)c", "df)", "|c"),
        ("|a(b)c", "dt)", "|)c"),
        ("one\nt|wo\nthree", "dd", "one\n|three"),
        ("one\ntwo\nth|ree", "dd", "one\n|two"),
        ("|one", "dd", "|"),
        ("|one\ntwo\nthree", "2dd", "|three"),
        ("|one\ntwo\nthree", "dj", "|three"),
        ("one\ntwo\n|three", "dk", "|one"),
        ("one\n|two\nthree", "dG", "|one"),
        ("one\n|two\nthree", "dgg", "|three"),
        ("o|ne", "x", "o|e"),
        ("o|ne", "9x", "|o"),
        ("o|ne", "X", "|ne"),
        ("|one two", "cwsix^[", "si|x two"),
        ("one |two", "cesix^[", "one si|x"),
        ("one\nt|wo\nthree", "ccnew^[", "one\nne|w\nthree"),
        ("one |two", "Cend^[", "one en|d"),
        ("o|ne", "snew^[", "one|we"),
        # text objects
        ("say one t|wo three", "diw", "say one | three"),
        ("say one t|wo three", "daw", "say one |three"),
        ("say one tw|o", "daw", "say on|e"),
        ("f(a, |b)", "di(", "f(|)"),
        ("f(a, g(|b), c)", "da(", "f(a, g|, c)"),
        ("f(a, g(b)|, c)", "ci(x^[", "f(|x)"),
        ('say "one |two" now', 'ci"x^[', 'say "|x" now'),
        ('|say "one two" now', 'di"', 'say "|" now'),
        ("x = {a: |1}", "di{", "x = {|}"),
        ("no |brackets", "di(", "no |brackets"),
        # put, join, case, replace
        ("|one two", "dwp", "tone| wo"),
        ("|one\ntwo", "ddp", "two\n|one"),
        ("one\n|two", "ddP", "|two\none"),
        ("|one\ntwo", "yyjp", "one\ntwo\n|one"),
        ("|ab cd", "yw$p", "ab cdab| "),
        ("|ab", "ylp", "a|ab"),
        ("|ab", "yl3p", "aaa|ab"),
        ("o|ne\n  two", "J", "one| two"),
        ("|one", "~", "O|ne"),
        ("|one", "3~", "ON|E"),
        ("|one", "rx", "|xne"),
        ("|one", "2rx", "x|xe"),
        ("on|e", "2rx", "on|e"),
        # inserting
        ("o|ne", "ix^[", "o|xne"),
        ("o|ne", "ax^[", "on|xe"),
        ("  o|ne", "Ix^[", "  |xone"),
        ("o|ne", "Ax^[", "one|x"),
        ("o|ne\ntwo", "onew^[", "one\nne|w\ntwo"),
        ("one\nt|wo", "Onew^[", "one\nne|w\ntwo"),
        # again
        ("|one two three", "dw.", "|three"),
        ("|abcd", "x..", "|d"),
        ("|one two", "cwsix^[w.", "six si|x"),
        ("|a\nb\nc", "A;^[j.j.", "a;\nb;\nc|;"),
        ("|one", "onew^[.", "one\nnew\nne|w"),
        # visual
        ("|one two", "vey", "|one two"),
        ("|one two", "ved", "| two"),
        ("one t|wo", "vbd", "one |o"),
        ("|one two", "veoh~", "|ONE two"),
        ("|one two", "vecsix^[", "si|x two"),
        ("say o|ne two", "viwd", "say | two"),
    ],
)
def test_keys_do_what_they_do_in_vim(before: str, keys: str, after: str) -> None:
    assert press(before, keys)[0] == after


def test_undo_redo_and_the_history_are_asked_of_the_box() -> None:
    assert press("|one", "2u")[2] == [Ask.UNDO, Ask.UNDO]
    assert press("|one\ntwo", "k")[2] == [Ask.OLDER]
    assert press("one\n|two", "j")[2] == [Ask.NEWER]


def test_esc_takes_back_a_command_that_is_not_complete_and_leaves_the_rest_alone() -> None:
    vim = VimKeys(mode=Mode.NORMAL)
    assert vim.press("d", "one", 0) is not None
    assert vim.is_typing
    assert vim.escape("one", 0) is not None
    assert not vim.is_typing
    assert vim.escape("one", 0) is None  # for the screen, where it stops the answer


def test_no_sequence_of_keys_leaves_the_text() -> None:
    letters = "hjklwWbBeE0^$gGfFtT;,dcyxXsSDCYpPuJ~vrioaAIO.123()\"' \x1b"
    for seed in range(400):
        draw = random.Random(seed)
        text = "".join(draw.choice('ab (\n"x.)') for _ in range(draw.randrange(12)))
        place = draw.randrange(len(text) + 1)
        keys = "".join(draw.choice(letters) for _ in range(30))
        after, vim, _ = press(f"{text[:place]}|{text[place:]}", keys)
        assert "|" in after, (seed, keys)
        assert vim.mode in Mode
