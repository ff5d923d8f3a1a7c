"""The prompt history survives what happens to files, and is found again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from rolling_chat.tui.drafts.draft_files import PasteFiles
from rolling_chat.tui.drafts.pastes import Draft, token
from rolling_chat.tui.drafts.prompt_history import History

LOG = "a line of a log\n" * 500

APPEND = """
import sys
from pathlib import Path
from rolling_chat.tui.drafts.prompt_history import History
history = History(Path(sys.argv[1]))
for number in range(200):
    history.add(f"{sys.argv[2]} {number} " + "x" * 5000)
"""


def older(history: History) -> str | None:
    draft = history.older("")
    return draft.whole if draft is not None else None


def found(history: History, words: str) -> list[str]:
    """Everything that a search goes through, newest first."""
    texts, below = [], None
    while (hit := history.search(words, below)) is not None:
        below, draft = hit
        texts.append(draft.whole)
    return texts


def test_a_torn_or_foreign_file_costs_only_the_lines_that_are_broken(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_bytes(b'"kept"\n{"not": "text"}\n\xff\xfe\n[1]\n{"text": 7}\n"torn')
    history = History(file)
    history.add("new")
    assert [older(history), older(history)] == ["new", "kept"]
    assert older(History(file)) == "new"


def test_the_same_line_twice_is_kept_once(tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    history.add("again")
    history.add("again")
    assert [older(history), older(history)] == ["again", None]


def test_a_file_that_cannot_be_written_does_not_stop_the_conversation(tmp_path: Path) -> None:
    history = History(tmp_path)  # a folder
    history.add("said")
    assert older(history) == "said"


def test_what_is_there_is_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "history"
    History(file).add("secret")
    assert file.stat().st_mode & 0o077 == 0


def test_two_terminals_lose_nothing_of_each_other(tmp_path: Path) -> None:
    file = tmp_path / "history"
    first, second = History(file), History(file)
    first.add("from the first")
    second.add("from the second")
    for history in (History(file), first, second):
        assert [older(history), older(history)] == ["from the second", "from the first"]


def test_two_processes_that_write_at_once_tear_no_line(tmp_path: Path) -> None:
    file = tmp_path / "history"
    argv = [sys.executable, "-c", APPEND, str(file)]
    both = [subprocess.Popen([*argv, name]) for name in ("one", "two")]
    assert [process.wait() for process in both] == [0, 0]
    # an empty line between two that were written at once costs nothing
    texts = [json.loads(line) for line in file.read_text().splitlines() if line]
    for name in ("one", "two"):
        assert [text.split()[1] for text in texts if text.startswith(name)] == [str(n) for n in range(200)]


def test_what_another_terminal_sends_does_not_move_the_walk(tmp_path: Path) -> None:
    file = tmp_path / "history"
    mine, other = History(file), History(file)
    for text in ("a", "b", "c"):
        mine.add(text)
    assert [older(mine), older(mine)] == ["c", "b"]
    other.add("from elsewhere")
    assert older(mine) == "a"


def test_a_paste_comes_back_folded(tmp_path: Path) -> None:
    pastes = PasteFiles(tmp_path / "pastes")
    draft = Draft(f"look at {token(1, LOG, 84)}", {1: LOG})
    History(tmp_path / "history", pastes).add(draft)
    assert len((tmp_path / "history").read_bytes()) < 300
    again = History(tmp_path / "history", pastes).older("")
    assert again == draft


def test_two_pastes_of_the_same_size_are_two_entries(tmp_path: Path) -> None:
    history = History(tmp_path / "history", PasteFiles(tmp_path / "pastes"))
    for text in (LOG, LOG.upper()):
        history.add(Draft(token(1, text, 84), {1: text}))
    assert [older(history), older(history)] == [LOG.upper(), LOG]


def test_a_file_that_somebody_emptied_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "history"
    history = History(file)
    history.add("a long line that was there before")
    file.write_text("")
    history.add("new")
    assert older(history) == "new"
    assert older(History(file)) == "new"


class TestSearch:
    """Backwards, each text once."""

    def make(self, tmp_path: Path) -> History:
        history = History(tmp_path / "history")
        for text in ("fix the lexer", "run the tests", "why Lexer?", "run the tests", "done"):
            history.add(text)
        return history

    def test_it_goes_from_the_newest_to_the_oldest(self, tmp_path: Path) -> None:
        assert found(self.make(tmp_path), "lexer") == ["why Lexer?", "fix the lexer"]

    def test_capitals_count_where_there_are_some(self, tmp_path: Path) -> None:
        assert found(self.make(tmp_path), "Lexer") == ["why Lexer?"]

    def test_a_text_that_was_sent_twice_is_found_once(self, tmp_path: Path) -> None:
        assert found(self.make(tmp_path), "tests") == ["run the tests"]

    def test_what_is_not_there_is_not_found(self, tmp_path: Path) -> None:
        assert found(self.make(tmp_path), "zebra") == []

    def test_what_another_terminal_sent_is_found(self, tmp_path: Path) -> None:
        mine = self.make(tmp_path)
        History(tmp_path / "history").add("from elsewhere")
        assert found(mine, "elsewhere") == ["from elsewhere"]
