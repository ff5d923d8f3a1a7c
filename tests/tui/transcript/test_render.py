"""Items become lines: within the width, nothing obeyed, nothing swallowed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rolling_chat.commands.marks import Mark
from rolling_chat.task_record import TaskRecord
from rolling_chat.tui.state.items import Item, Kind, Status
from rolling_chat.tui.transcript.colors import Look, Palette
from rolling_chat.tui.transcript.lines import Line, cells
from rolling_chat.tui.transcript.render import gap_before, head_lines, lead_lines
from tests.support.transcripts import drawn_item, drawn_text

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


def _lines(item: Item, width: int = 60, *, is_open: bool = False) -> list[Line]:
    return [line for piece in drawn_item(item, Look(width, Palette()), is_open=is_open) for line in piece]


def _rendered(item: Item, width: int = 60, *, is_open: bool = False) -> str:
    return drawn_text(item, Look(width, Palette()), is_open=is_open)


def _answer(text: str, status: Status = Status.DONE) -> Item:
    return Item("a", Kind.ASSISTANT, text, status)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("width", [1, 2, 7, 38, 158])
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_within_the_width_and_steers_nothing(text: str, width: int, kind: Kind) -> None:
    for is_open in (False, True):
        for line in _lines(Item("x", kind, text, result=text), width, is_open=is_open):
            assert cell_len(line.drawn) <= width
            assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in line.drawn)
            for segment in line.segments:
                assert not segment.control
                assert segment.style is None or not segment.style.link
                assert segment.style is None or segment.style.meta.keys() <= {"link", "tab"}


@given(st.text(max_size=300), st.integers(1, 90), st.sampled_from(Kind))
def test_any_text_can_be_drawn(text: str, width: int, kind: Kind) -> None:
    assert all(cells(line) <= width for line in _lines(Item("x", kind, text), width))


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


def test_a_tool_line_says_why_it_did_not_succeed_while_there_is_room() -> None:
    item = Item(
        "t", Kind.TOOL, "read_file a.py", Status.FAILED, note="~9 tokens", outcome="There is no 'a.py'"
    )
    assert _rendered(item).endswith("failed: There is no 'a.py' · ~9 tokens")
    assert _rendered(replace(item, outcome="y" * 60)).endswith("failed · ~9 tokens")
    assert _rendered(replace(item, status=Status.DONE, outcome="exit 2")).endswith("exit 2 · ~9 tokens")


def test_a_long_command_gives_way_to_its_note() -> None:
    item = Item("t", Kind.TOOL, "run_command " + "x" * 200, Status.FAILED, note="~10 tokens")
    drawn = _rendered(item)
    assert drawn.endswith("failed · ~10 tokens")
    assert "…" in drawn


@pytest.mark.parametrize(
    ("status", "glyph", "word"),
    [
        (Status.LIVE, "⚙", "running"),
        (Status.ASKING, "?", "asks permission"),
        (Status.FAILED, "✗", "failed"),
        (Status.REFUSED, "⊘", "refused"),
        (Status.CANCELLED, "■", "cancelled"),
    ],
)
def test_states_differ_by_glyph_and_word_not_by_color_alone(status: Status, glyph: str, word: str) -> None:
    drawn = _rendered(Item("t", Kind.TOOL, "run_command ls", status))
    assert drawn.startswith(glyph)
    assert drawn.endswith(word)


@pytest.mark.parametrize(
    ("status", "words"),
    [(Status.CUT, "cut at"), (Status.CANCELLED, "stopped here"), (Status.FAILED, "broken off here")],
)
def test_a_reply_that_did_not_end_well_says_how(status: Status, words: str) -> None:
    assert words in _rendered(_answer("half", status))


def test_an_opened_tool_shows_its_whole_result_and_a_long_call_its_arguments() -> None:
    result = "\n".join(f"line {n}" for n in range(500))
    drawn = _rendered(Item("t", Kind.TOOL, "read_file a", result=result), is_open=True).split("\n")
    assert drawn[0].startswith("⚙ read_file a")
    assert drawn[1:] == [f"  │ line {n}" for n in range(500)]
    drawn_call = _rendered(Item("t", Kind.TOOL, "run_command " + "x" * 100, result="done"), is_open=True)
    assert drawn_call.replace("\n  │ ", "").count("x" * 100) == 1


def test_a_diff_in_a_result_tells_what_came_from_what_went() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new"
    lines = _lines(Item("t", Kind.TOOL, "run_command git diff", result=diff), is_open=True)
    colors = {line.text: line.segments[-1].style.color.name for line in lines if line.text[:1] in "+-@"}
    assert (colors["-old"], colors["+new"]) == (Palette().error, Palette().success)


@pytest.mark.slow
def test_a_large_answer_is_markdown_to_its_end() -> None:
    drawn = _rendered(_answer("**bold** word\n" * 40_000), 80)
    assert drawn.count("bold word") == 40_000
    assert "**" not in drawn


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
        assert all(cells(line) <= width for line in _lines(Item("x", kind, "hello", mark=mark), width))


RULE = "150 earlier messages: 141 summarized, 8 omitted, 1 still sent"


@pytest.mark.parametrize("width", [200, 78, 77, 76, 66, 65, 58, 38])
def test_the_rule_says_all_of_it_and_where_the_context_begins_however_narrow_it_is(width: int) -> None:
    *rows, empty = lead_lines(0, RULE, Look(width, Palette()))
    assert not empty.drawn
    said = " ".join(" ".join(row.drawn for row in rows).replace("─", " ").split())
    assert said == f"{RULE} context"
    assert rows[-1].drawn.endswith("─ context ──")
    assert cell_len(rows[-1].drawn) == width
    assert all(cell_len(row.drawn) <= width and not row.text for row in rows)
    assert (len(rows) == 1) == (width > len(f"── {RULE}  context ──"))


def test_a_call_that_is_excluded_says_so_once() -> None:
    item = Item("x", Kind.TOOL, "read_file a.py", mark=Mark.EXCLUDED)
    (head,) = head_lines(item, Look(80, Palette()), is_open=False, note="30 → 0 tokens · excluded")
    assert head.drawn.endswith("  ∅ excluded · 30 → 0 tokens")


RUNNING = Item(
    "t", Kind.TOOL, "task find all callers of parse_header in the lexer", Status.LIVE,
    result="❯ find all callers\n⚙ read_file src/lexer.py", live="read_file src/lexer.py",
    task=TaskRecord("s1", "gpt", 3, 41_000, 200_000, 0.12),
)  # fmt: skip


@pytest.mark.parametrize(
    ("width", "gauge"),
    [
        (40, " 41k/200k"),
        (80, "█░░░░ 41k of 200k · 3 requests · $0.12"),
        (120, "██░░░░░░░░ 41k of 200k · 3 requests · $0.12"),
    ],
)
def test_a_running_task_has_a_gauge_of_its_own_and_says_what_it_does(width: int, gauge: str) -> None:
    head, doing = (line.drawn.rstrip() for line in _lines(RUNNING, width) if line.drawn.strip())
    assert head.startswith("⚙ task find all callers")
    assert head.endswith(gauge)
    assert doing == "  │ read_file src/lexer.py"


def test_a_running_task_unfolds_to_its_conversation() -> None:
    text = _rendered(RUNNING, 80, is_open=True)
    assert "❯ find all callers" in text
    assert "⚙ read_file src/lexer.py" in text


def test_a_task_that_is_done_says_what_it_took() -> None:
    done = replace(RUNNING, status=Status.DONE, live="", note="1.2k tokens")
    (head,) = (line.drawn for line in _lines(done, 80) if line.drawn.strip())
    assert head.endswith("3 requests · $0.12 · 1.2k tokens")
