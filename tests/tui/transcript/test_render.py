"""Items become lines: within the width, nothing obeyed, nothing swallowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rolling_chat.commands.marks import Mark
from rolling_chat.tui.transcript.items import Item, Kind, Status
from rolling_chat.tui.transcript.palette import Palette
from rolling_chat.tui.transcript.render import Line, Look, gap_before, render_item

HOSTILE = [
    "\x1b]0;title\x07\x1b[2J\x1b[H gone?",
    "[bold red]not markup[/] [@click=app.quit]no link[/]",
    "[click](javascript:alert(1)) <http://evil.example> ![x](file:///etc/passwd)",
    "> " * 60 + "deep",
    "- " * 60 + "deep",
    "".join("  " * depth + "- item\n" for depth in range(40)),
    "| a | b |\n|---|---|\n" + "| long cell " * 2 + "|\n" + "| 漢字 | 👩‍👩‍👧 |\n",
    "```\nnever closed\n" + "x" * 500,
    "a" * 5000,
    "漢" * 300,
    "\u202ereversed \u2066isolated",
    "`" * 999 + "*" * 999 + "[" * 999,
    "\n" * 100,
    "| " * 200 + "\n" + "|-" * 200 + "\n",
]


def _text(lines: list[Line]) -> str:
    return "\n".join("".join(segment.text for segment in line) for line in lines)


def _rendered(item: Item, width: int = 60, *, details: bool = False) -> str:
    return _text(render_item(item, Look(width, Palette(), details)))


def _answer(text: str, status: Status = Status.DONE) -> Item:
    return Item("a", Kind.ASSISTANT, text, status)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("width", [1, 2, 7, 38, 158])
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_within_the_width_and_steers_nothing(text: str, width: int, kind: Kind) -> None:
    for details in (False, True):
        for line in render_item(Item("x", kind, text, detail=text), Look(width, Palette(), details)):
            drawn = "".join(segment.text for segment in line)
            assert cell_len(drawn) <= width
            assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in drawn)
            assert not any(segment.style and (segment.style.link or segment.style.meta) for segment in line)
            assert not any(segment.control for segment in line)


@given(st.text(max_size=300), st.integers(1, 90), st.sampled_from(Kind))
def test_any_text_can_be_drawn(text: str, width: int, kind: Kind) -> None:
    for line in render_item(Item("x", kind, text), Look(width, Palette())):
        assert cell_len("".join(segment.text for segment in line)) <= width


def test_every_prefix_of_an_answer_can_be_drawn() -> None:
    text = "# Title\n\nText, `code`, **bold**.\n\n```python\nx = 1\n```\n\n| a | b |\n|--|--|\n| 1 | 2 |\n"
    for end in range(len(text)):
        assert render_item(_answer(text[: end + 1], Status.LIVE), Look(40, Palette()))


def test_html_that_a_model_writes_is_text() -> None:
    drawn = _rendered(_answer("Use <div> here.\n\n<table>\n<tr>kept</tr>\n</table>\n\n<!-- also this -->"))
    for part in ("<div>", "<table>", "<tr>kept</tr>", "<!-- also this -->"):
        assert part in drawn


def test_a_link_shows_its_target() -> None:
    assert "docs (http://x.example/y)" in _rendered(_answer("[docs](http://x.example/y)"))
    assert "plan (a.png)" in _rendered(_answer("![plan](a.png)"))


def test_what_a_person_wrote_is_not_markdown() -> None:
    assert _rendered(Item("u", Kind.USER, "# not *a* title\n  kept")).split("\n")[1].startswith("    kept")
    assert "# not *a* title" in _rendered(Item("u", Kind.USER, "# not *a* title"))


def test_a_tool_call_is_one_line_with_its_note_at_the_right() -> None:
    item = Item("t", Kind.TOOL, "read_file src/lexer.py", Status.DONE, note="52k → 8.0k tokens · head")
    assert _rendered(item) == "⚙ read_file src/lexer.py            52k → 8.0k tokens · head"


def test_a_long_command_gives_way_to_its_note() -> None:
    item = Item("t", Kind.TOOL, "run_command " + "x" * 200, Status.FAILED, note="~10 tokens")
    drawn = _rendered(item)
    assert drawn.endswith("failed · ~10 tokens")
    assert "…" in drawn


@pytest.mark.parametrize(
    ("status", "glyph", "word"),
    [
        (Status.LIVE, "⚙", "running"),
        (Status.ASKING, "?", "asks leave"),
        (Status.FAILED, "✗", "failed"),
        (Status.REFUSED, "⊘", "refused"),
        (Status.CANCELLED, "■", "cancelled"),
    ],
)
def test_states_differ_by_glyph_and_word_not_by_colour_alone(status: Status, glyph: str, word: str) -> None:
    drawn = _rendered(Item("t", Kind.TOOL, "run_command ls", status))
    assert drawn.startswith(glyph)
    assert drawn.endswith(word)


@pytest.mark.parametrize(
    ("status", "words"),
    [(Status.CUT, "cut at"), (Status.CANCELLED, "stopped here"), (Status.FAILED, "broken off here")],
)
def test_a_reply_that_did_not_end_well_says_how(status: Status, words: str) -> None:
    assert words in _rendered(_answer("half", status))


def test_an_opened_tool_shows_its_result_up_to_a_limit() -> None:
    item = Item("t", Kind.TOOL, "read_file a", detail="\n".join(f"line {n}" for n in range(500)))
    drawn = _rendered(item, details=True)
    assert "line 199" in drawn
    assert "line 200" not in drawn
    assert "300 lines more" in drawn


def test_an_answer_too_large_for_markdown_is_shown_plain_and_whole() -> None:
    text = "**bold** word\n" * 40_000
    lines = render_item(_answer(text), Look(80, Palette()))
    assert sum("**bold** word" in "".join(segment.text for segment in line) for line in lines) == 40_000


def test_tool_lines_stand_together_and_turns_apart() -> None:
    tool, user = Item("t", Kind.TOOL, "x"), Item("u", Kind.USER, "y")
    assert (gap_before(tool, tool), gap_before(user, tool), gap_before(user, None)) == (0, 1, 0)


def test_blocks_drawn_one_by_one_are_the_whole_answer() -> None:
    parts = ["# One", "two *words*", "- a\n- b", "```\ncode\n\nmore\n```", "> quote", "[x]\n\n[x]: http://y"]
    whole = _rendered(_answer("\n\n".join(parts)))
    for word in ("One", "two words", "a", "b", "code", "more", "quote", "x (http://y)"):
        assert word in whole
    assert "\n\n\n" not in whole.replace(" ", "")


def test_a_link_that_is_defined_later_changes_what_was_drawn() -> None:
    assert "[x]" in _rendered(_answer("[x]"))
    assert "x (http://y)" in _rendered(_answer("[x]\n\n[x]: http://y"))
    assert "x (http://z)" in _rendered(_answer("[x]\n\n[x]: http://z"))


@pytest.mark.parametrize("kind", [Kind.USER, Kind.ASSISTANT, Kind.TOOL])
@pytest.mark.parametrize("mark", [Mark.PINNED, Mark.ALONG, Mark.EXCLUDED])
def test_what_is_pinned_or_excluded_says_so_in_words(kind: Kind, mark: Mark) -> None:
    plain = Item("x", kind, "hello")
    assert mark not in _rendered(plain)
    assert mark in _rendered(Item("x", kind, "hello", mark=mark))
    for width in (1, 7, 20):
        lines = render_item(Item("x", kind, "hello", mark=mark), Look(width, Palette()))
        assert all(cell_len("".join(segment.text for segment in line)) <= width for line in lines)


def test_what_is_excluded_is_grey_and_what_is_pinned_is_not() -> None:
    palette = Palette()
    excluded = render_item(Item("x", Kind.ASSISTANT, "hello", mark=Mark.EXCLUDED), Look(60, palette))
    assert {part.style.color.name for line in excluded for part in line if part.text.strip()} == {
        palette.muted
    }
    pinned = render_item(Item("x", Kind.ASSISTANT, "hello", mark=Mark.PINNED), Look(60, palette))
    assert palette.text in {part.style.color.name for line in pinned for part in line if part.text.strip()}
