"""Drafts and pastes on disk: whose is taken by whom, and what a bad file costs."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from rolling_chat.messages import Message
from rolling_chat.process_identity import this_process
from rolling_chat.settings.errors import SettingsError
from rolling_chat.tui.drafts.draft_files import DraftFiles, DraftOrigin, LeftDraft, PasteFiles, save_quietly
from rolling_chat.tui.drafts.pastes import Draft, drawn, folded, token
from tests.support.cases import Cases

LOG = "a line of a log\n" * 500
HERE = DraftOrigin("session-1", "/work", is_new=False)
NEW = DraftOrigin("session-2", "/work", is_new=True)

LEAVE_A_DRAFT = """
import os, signal, sys
from pathlib import Path
from rolling_chat.tui.drafts.draft_files import DraftFiles, PasteFiles, DraftOrigin
from rolling_chat.tui.drafts.pastes import Draft, token
home, session, is_new, text, paste = sys.argv[1:]
files = DraftFiles(Path(home, "drafts"), PasteFiles(Path(home, "pastes")))
draft = Draft(text + token(1, paste, 0), {1: paste}) if paste else Draft(text)
files.save(DraftOrigin(session, "/work", is_new == "new"), draft)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(home: Path, place: DraftOrigin, text: str, paste: str = "") -> None:
    """Another process keeps a draft, and is killed."""
    is_new = "new" if place.is_new else "old"
    argv = [sys.executable, "-c", LEAVE_A_DRAFT, str(home), place.session, is_new, text, paste]
    assert subprocess.run(argv, check=False).returncode < 0


def files_of(home: Path) -> DraftFiles:
    return DraftFiles(home / "drafts", PasteFiles(home / "pastes"))


def test_what_a_killed_process_left_comes_back_with_its_paste_and_once(tmp_path: Path) -> None:
    killed(tmp_path, HERE, "look at ", LOG)
    assert files_of(tmp_path).take(HERE).draft.whole == f"look at {LOG}"
    assert not files_of(tmp_path).take(HERE)


def test_a_draft_of_another_session_is_left_alone(tmp_path: Path) -> None:
    killed(tmp_path, HERE, "theirs")
    assert not files_of(tmp_path).take(DraftOrigin("session-9", "/work", is_new=False))
    assert files_of(tmp_path).take(HERE).draft.text == "theirs"


def test_a_draft_of_a_session_in_which_nothing_was_said_comes_back_in_the_next_new_one(
    tmp_path: Path,
) -> None:
    killed(tmp_path, NEW, "hardly begun")
    files = files_of(tmp_path)
    assert not files.take(HERE)
    assert not files.take(DraftOrigin("session-3", "/elsewhere", is_new=True))
    assert files.take(DraftOrigin("session-3", "/work", is_new=True)).draft.text == "hardly begun"


def test_a_draft_of_a_process_that_lives_is_not_taken(tmp_path: Path) -> None:
    one, other = files_of(tmp_path), files_of(tmp_path)
    one.save(HERE, Draft("mine"))
    other.save(HERE, Draft("mine, too"))
    assert not other.take(HERE)
    kept = [json.loads(file.read_text())["draft"] for file in (tmp_path / "drafts").glob("*.json")]
    assert sorted(kept) == ["mine", "mine, too"]


def test_of_several_the_newest_comes_back_and_the_others_wait(tmp_path: Path) -> None:
    killed(tmp_path, HERE, "first")
    killed(tmp_path, HERE, "second")
    files = files_of(tmp_path)
    assert files.take(HERE).draft.text == "second"
    files.save(HERE, Draft())
    assert files.take(HERE).draft.text == "first"


def test_an_empty_draft_leaves_no_file(tmp_path: Path) -> None:
    files = files_of(tmp_path)
    files.save(HERE, Draft("something"))
    files.save(HERE, Draft(" \n"))
    assert not list((tmp_path / "drafts").iterdir())


def test_what_is_kept_is_for_its_owner_only(tmp_path: Path) -> None:
    files_of(tmp_path).save(HERE, Draft(token(1, LOG, 0), {1: LOG}))
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) == 2
    assert all(path.stat().st_mode & 0o077 == 0 for path in [*kept, *(path.parent for path in kept)])


TORN = {
    "empty": b"",
    "torn": b"{",
    "not utf-8": b"\xff\xfe",
    "a list": b"[]",
    "a text": b'{"draft": "x"}',
    "half": b'{"place": {"session": 1}}',
    "deep": b"[" * 100_000,
    "of another kind": json.dumps(
        {"place": asdict(HERE), "process": asdict(this_process()) | {"pid": 0}, "draft": 7, "saved_at": 1}
    ).encode(),
}


def test_a_torn_or_foreign_file_costs_nothing_else(tmp_path: Path) -> None:
    left = tmp_path / "left"
    killed(left, HERE, "whole")
    cases = Cases()
    for name, content in TORN.items():
        home = shutil.copytree(left, tmp_path / name)
        (home / "drafts" / "torn.json").write_bytes(content)
        with cases.case(name):
            assert files_of(home).take(HERE).draft.text == "whole"
    cases.finish()


def test_a_name_in_a_draft_is_no_path(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    pastes = PasteFiles(tmp_path / "pastes")
    text = token(1, LOG, 0)
    for name in ("../secret", str(secret.with_suffix("")), "", 7):
        draft = pastes.from_json({"text": text, "pastes": {"1": name}})
        assert draft is not None
        assert draft.whole == drawn(text)


def _lock(home: Path) -> None:
    if os.name == "nt" or os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    home.chmod(0o500)


def _put_a_file_there(home: Path) -> None:
    (home / "drafts").write_text("not a folder")


@pytest.mark.parametrize("spoil", [_lock, _put_a_file_there])
def test_a_folder_that_cannot_be_written_is_said_once_and_in_the_log_only(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Path], None],
) -> None:
    spoil(tmp_path)
    files = files_of(tmp_path)
    for _ in range(2):
        save_quietly(files, HERE, Draft("lost"))
    (said,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert said.startswith("the draft is not kept: ")
    assert "drafts" in said
    assert capsys.readouterr() == ("", "")


def test_where_the_folder_should_be_stands_a_file(tmp_path: Path) -> None:
    _put_a_file_there(tmp_path)
    with pytest.raises(SettingsError):
        files_of(tmp_path).save(HERE, Draft("lost"))
    assert not files_of(tmp_path).take(HERE)


def test_old_pastes_and_drafts_go_and_what_is_used_stays(tmp_path: Path) -> None:
    killed(tmp_path, HERE, "old", "old paste\n" * 20)
    for path in tmp_path.rglob("*"):
        os.utime(path, (1, 1))
    files = files_of(tmp_path)
    files.save(HERE, Draft(token(1, LOG, 0), {1: LOG}))
    files.prune()
    PasteFiles(tmp_path / "pastes").prune()
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2


def test_what_waited_to_be_sent_comes_back_but_for_what_was_said_meanwhile(tmp_path: Path) -> None:
    waiting = [Draft("use tabs"), Draft("go on"), Draft("then the docs")]
    left = LeftDraft(Draft("and"), tuple(waiting), saved_at=100.0)
    said = [Message("user", text, created_at=at) for text, at in (("go on", 50.0), ("use tabs", 100.2))]
    assert left.unsent(said) == "go on\nthen the docs\nand"
    assert LeftDraft(Draft("sent"), saved_at=1.0).unsent([Message("user", "sent")]) == Draft()
    assert LeftDraft(Draft("kept"), saved_at=1.0).unsent([]) == Draft("kept")


def test_waiting_messages_are_kept_without_a_draft_and_with_their_pastes(tmp_path: Path) -> None:
    files, gone = files_of(tmp_path), files_of(tmp_path)
    pasted = folded(f"look at {LOG}", [LOG], len)
    gone.save(HERE, Draft(), [Draft("use tabs"), pasted])
    (file,) = (tmp_path / "drafts").iterdir()
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({**kept, "process": {**kept["process"], "pid": 2**22 + 1}}))
    left = files.take(HERE)
    assert [one.whole for one in left.waiting] == ["use tabs", f"look at {LOG}"]
    assert left.pastes == [LOG]
