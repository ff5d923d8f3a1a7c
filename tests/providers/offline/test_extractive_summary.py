"""Extractive summaries stay short and in order."""

from __future__ import annotations

from rolling_chat.providers.offline.extractive_summary import extract_summary
from rolling_chat.providers.offline.token_counts import count_text


def test_the_newest_win_the_room_and_order_is_kept() -> None:
    texts = [f"Fact number {number} is kept in file{number}.txt." for number in range(500)]
    lines = extract_summary(texts).splitlines()

    assert count_text("\n".join(lines)) <= 800
    assert lines[-1].endswith("file499.txt.")
    assert "file0.txt" not in lines[0]
    numbers = [int(line.split()[3]) for line in lines]
    assert numbers == sorted(numbers)


def test_the_lines_of_an_old_summary_are_not_bulleted_twice() -> None:
    assert extract_summary(["- The port is 8080."]) == "- The port is 8080."


def test_there_is_always_a_summary() -> None:
    assert extract_summary(["", "ok"])
