"""Which lines are kept of each kind of text."""

from __future__ import annotations

import json
import random

import pytest

from rolling_chat.context import CountMemo
from rolling_chat.context.cutting.kinds import detect_kind
from rolling_chat.context.cutting.pieces import split
from rolling_chat.context.tokens import estimator_for
from rolling_chat.context.tool_results import truncate_text
from tests.benchmarks.haystacks import KINDS, haystack

count = estimator_for("gpt-4o").count_text
INFO = "2026-03-01 10:00:{:02} INFO served request {}"


def _cut(text: str, cap: int = 600) -> str:
    return truncate_text(text, cap, "auto", count, CountMemo(), recall="[recall: r17]")


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("place", [0.33, 0.67])
def test_a_line_that_differs_is_kept_wherever_it_stands(name: str, place: float) -> None:
    kind = KINDS[name]
    text = haystack(kind, kind.needles[0], place, random.Random(name))
    wanted = '"status": "charged_back"' if name.startswith("JSON") else kind.needles[0]
    assert wanted in _cut(text, 2_000)


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("log", "log"),
        ("access log", "log"),
        ("search", "search results"),
        ("files", "list of files"),
        ("code", "code"),
        ("diff", "diff"),
        ("table", "table"),
        ("processes", "table"),
        ("tests", "tests"),
        ("prose", "text"),
    ],
)
def test_a_kind_is_seen(name: str, seen: str) -> None:
    text = haystack(KINDS[name], KINDS[name].needles[0], 0.5, random.Random(name))
    assert detect_kind(split(text)).name == seen


def test_a_traceback_in_a_log_is_kept_whole() -> None:
    traceback = [
        "Traceback (most recent call last):",
        *(f'  File "app/part{number}.py", line {number}, in run\n    call({number})' for number in range(6)),
        "KeyError: 'owner'",
    ]
    lines = [INFO.format(number % 60, number) for number in range(1_000)]
    assert "\n".join(traceback) in _cut("\n".join([*lines[:400], *traceback, *lines[400:]]))


def test_a_log_says_how_many_lines_were_like_one_that_is_kept() -> None:
    shorter = _cut("\n".join(INFO.format(number % 60, number) for number in range(1_000)))
    assert shorter.startswith("2026-03-01 10:00:00 INFO served request 0\n")
    left = 1_000 - sum(line.startswith("2026") for line in shorter.split("\n"))
    assert f"[log; left out: {left:,} like line 1]" in shorter


def test_the_last_line_names_the_lines_that_recall_reads() -> None:
    shorter = _cut("\n".join(INFO.format(number % 60, number) for number in range(1_000)))
    mark = next(line for line in shorter.split("\n") if line.startswith("[… lines "))
    assert shorter.split("\n")[-1] == f"[recall: r17 {mark[3:-1]}]"


def test_json_keeps_keys_first_last_and_the_row_that_differs() -> None:
    rows = [{"id": number, "state": "ok", "note": None} for number in range(1_000)]
    rows[321]["state"] = "lost"
    kept = json.loads(_cut(json.dumps({"total": 1_000, "rows": rows}, indent=1)))
    assert kept["total"] == 1_000
    assert kept["rows"][0] == rows[0]
    assert rows[321] in kept["rows"]
    assert rows[-1] in kept["rows"]
    assert kept["[truncated]"].endswith("]")


def test_long_values_of_json_share_the_room_and_all_keys_stay() -> None:
    value = {"code": 1, "stdout": "a line of output\n" * 2_000, "stderr": "no such file\n" * 900, "ok": False}
    kept = json.loads(_cut(json.dumps(value)))
    assert (kept["code"], kept["ok"]) == (1, False)
    assert kept["stdout"].startswith("a line of output\n")
    assert kept["stderr"].startswith("no such file\n")


def test_json_of_a_command_stays_json_before_its_exit_code() -> None:
    rows = json.dumps([{"id": number, "name": f"n{number}"} for number in range(900)])
    body, _, end = _cut(f"{rows}\n[exit code 3]").rpartition("\n")
    assert end == "[exit code 3]"
    assert isinstance(json.loads(body), list)


def test_a_search_keeps_a_line_of_every_file() -> None:
    lines = [f"src/part{file}.py:{line}: value = load({line})" for file in range(12) for line in range(90)]
    shorter = _cut("\n".join(lines), 900)
    assert all(f"src/part{file}.py:" in shorter for file in range(12))


def test_files_are_counted_by_folder() -> None:
    names = [f"lib/{folder}/part{number}.py" for folder in ("one", "two") for number in range(800)]
    shorter = _cut("\n".join(names))
    assert "lib/one/part" in shorter
    assert "lib/two/part" in shorter
    assert "[list of files; left out, by folder: lib/" in shorter


def test_a_diff_keeps_every_file_and_hunk_head() -> None:
    parts = []
    for file in range(6):
        parts += [f"diff --git a/f{file}.py b/f{file}.py", f"--- a/f{file}.py", f"+++ b/f{file}.py"]
        for hunk in range(2):
            parts.append(f"@@ -{hunk * 99 + 1},40 +{hunk * 99 + 1},40 @@")
            parts += [f"{'+' if line % 3 else ' '}    value_{line} = {line}" for line in range(60)]
    shorter = _cut("\n".join(parts), 1_500)
    heads = [line for line in parts if line.startswith(("diff", "---", "+++", "@@"))]
    assert all(head in shorter.split("\n") for head in heads)


def test_code_keeps_the_signatures_of_what_is_left_out() -> None:
    functions = [
        f"def work_{number}(value: int) -> int:\n" + "\n".join(f"    value += {line}" for line in range(30))
        for number in range(25)
    ]
    shorter = _cut("\n".join(functions), 1_200)
    assert all(f"def work_{number}(" in shorter for number in range(25))


def test_a_table_keeps_header_and_extremes() -> None:
    rng = random.Random(1)
    rows = [f"{number},{rng.choice('abc')},{rng.randrange(400, 600)}" for number in range(1_000)]
    rows[500], rows[600] = "500,b,399", "600,b,600"
    shorter = _cut("\n".join(["id,kind,size", *rows]))
    assert shorter.startswith("id,kind,size\n")
    assert "\n500,b,399\n" in shorter
    assert "\n600,b,600\n" in shorter


def test_failures_of_a_test_run_are_kept_whole_and_passes_are_counted() -> None:
    passed = [f"tests/test_a.py::test_{number} PASSED" for number in range(900)]
    failure = [
        "____ test_refund ____",
        "    def test_refund():",
        ">       assert total == 2",
        "E       assert 1 == 2",
    ]
    text = [
        "=== test session starts ===",
        *passed,
        "=== FAILURES ===",
        *failure,
        "=== 1 failed, 900 passed ===",
    ]
    shorter = _cut("\n".join(text))
    assert "\n".join(failure) in shorter
    assert "lines of passed tests]" in shorter


def test_parts_of_a_line_that_is_too_long_are_kept_by_themselves() -> None:
    words = ["common words of one long line,"] * 3_000
    words[1_700] = "the passphrase is heliotrope;"
    shorter = _cut(" ".join(words))
    assert "heliotrope" in shorter
    assert "characters of line 1]" in shorter


@pytest.mark.parametrize(
    "text", ["x" * 500_000, "\n" * 50_000, "a\n" * 50_000, "[" * 50_000, "{" * 9_000 + "\n1"]
)
def test_text_without_anything_to_choose_from_is_cut_all_the_same(text: str) -> None:
    shorter = _cut(text)
    assert 0 < count(shorter) <= 600
