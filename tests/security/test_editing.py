"""No tool that changes files reaches outside, hangs, loses a file, or shows other than it writes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.messages import JsonObject
from rolling_chat.text import exact
from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.diffs import diff_of
from rolling_chat.tools.edit_file import EditFile, MultiEdit
from rolling_chat.tools.editing import EditingTool
from rolling_chat.tools.file_changes import FileChange, FileVersion
from rolling_chat.tools.move_file import DeleteFile, MoveFile
from rolling_chat.tools.write_file import WriteFile
from tests.support.patching import patched

SECRET = "secret of the neighbour\n"
TOOLS: dict[str, tuple[EditingTool, JsonObject]] = {
    "edit_file": (EditFile(), {"old": "secret", "new": "x"}),
    "multi_edit": (MultiEdit(), {"edits": [{"old": "secret", "new": "x"}]}),
    "write_file": (WriteFile(), {"content": "x"}),
    "delete_file": (DeleteFile(), {}),
    "move_file": (MoveFile(), {"to": "moved"}),
}
TO = "moved onto"
EVERY = pytest.mark.parametrize("name", [*TOOLS, TO])
posix = pytest.mark.skipif(os.name == "nt", reason="files of these kinds are of Unix")


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A file outside the folder that is as it was when the test is over."""
    file = tmp_path / "outside.txt"
    file.write_text(SECRET)
    yield file
    assert file.read_text() == SECRET
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside.txt", "work"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "mine").write_text("secret\n")
    return folder


@pytest.fixture
def context(folder: Path, tmp_path: Path) -> ToolContext:
    def knows(path: str) -> str:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()

    return ToolContext(folder, {"HOME": str(tmp_path)}, last_seen=knows)


def _prepare(name: str, path: str, context: ToolContext) -> Callable[[], object]:
    """Prepare a call of a tool on `path`; return what makes the change."""
    if name == TO:
        edit = MoveFile().prepare({"path": "mine", "to": path}, context)
    else:
        tool, arguments = TOOLS[name]
        edit = tool.prepare({"path": path, **arguments}, context)
    return lambda: edit.make(context)


def _prepare_later(name: str, path: str, context: ToolContext) -> Callable[[], object]:
    """Return what prepares a call and makes its change at once."""

    def both() -> object:
        return _prepare(name, path, context)()

    return both


def _refused(act: Callable[[], object]) -> str:
    with pytest.raises(ToolError) as caught:
        act()
    said = str(caught.value)
    assert said.isprintable(), said
    assert len(said) < 400
    return said


@EVERY
@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt", "..", "../new", "sub/../../outside.txt", "/etc/passwd", "/", "~", "~/outside.txt",
        "~/new", ".", "", "./", "a\x00b", "\ud800", "x" * 5_000, "sub/" * 3_000 + "x",
        "/dev/zero", "/proc/self/mem",
        "new\nline", "esc\x1b[2J", "bidi\u202etxt", "zero\u200bwidth", "new\nfolder/x", "mine/x",
    ],
    ids=lambda path: ascii(path[:20]),
)  # fmt: skip
@pytest.mark.usefixtures("outside")
def test_a_hostile_path_is_refused_in_one_line_and_nothing_is_made(
    name: str, path: str, folder: Path, context: ToolContext
) -> None:
    _refused(_prepare_later(name, path, context))
    assert [each.name for each in folder.iterdir()] == ["mine"]
    assert (folder / "mine").read_text() == "secret\n"


@EVERY
@pytest.mark.usefixtures("outside")
def test_a_link_in_the_middle_that_leads_outside_is_not_followed(
    name: str, folder: Path, context: ToolContext
) -> None:
    (folder / "door").symlink_to("..")
    for path in ("door/outside.txt", "door/new", "door/work/../outside.txt"):
        assert "outside the working folder" in _refused(_prepare_later(name, path, context))


@pytest.mark.parametrize("name", ["edit_file", "multi_edit", "write_file", TO])
@pytest.mark.usefixtures("outside")
def test_a_link_at_the_end_that_leads_outside_is_not_written_through(
    name: str, folder: Path, context: ToolContext
) -> None:
    (folder / "link").symlink_to("../outside.txt")
    _refused(_prepare_later(name, "link", context))
    (folder / "dangling").symlink_to("../new")
    _refused(_prepare_later(name, "dangling", context))


@pytest.mark.parametrize("name", ["delete_file", "move_file"])
@pytest.mark.usefixtures("outside")
def test_of_a_link_that_leads_outside_only_the_link_goes(
    name: str, folder: Path, context: ToolContext
) -> None:
    (folder / "link").symlink_to("../outside.txt")
    _prepare(name, "link", context)()
    assert not (folder / "link").is_symlink()


@EVERY
@pytest.mark.parametrize("swapped", ["sub", "sub/deep", "sub/deep/a"])
@pytest.mark.usefixtures("outside")
def test_a_link_put_in_the_way_after_the_question_leads_nowhere(
    name: str, swapped: str, folder: Path, context: ToolContext, tmp_path_factory: pytest.TempPathFactory
) -> None:
    theirs = tmp_path_factory.mktemp("theirs")
    for place in (folder / "sub", theirs / "sub"):
        (place / "deep").mkdir(parents=True)
        if name != TO:
            (place / "deep" / "a").write_text("secret\n")
    if name == TO and swapped == "sub/deep/a":
        (theirs / swapped).write_text("secret\n")
    was = {path: path.read_text() for path in theirs.rglob("*") if path.is_file()}
    make = _prepare(name, "sub/deep/a", context)
    if (folder / swapped).exists():
        (folder / swapped).rename(folder / "was")
    (folder / swapped).symlink_to(theirs / swapped)
    _refused(make)
    assert {path: path.read_text() for path in theirs.rglob("*") if path.is_file()} == was


@EVERY
def test_a_hard_link_outside_keeps_its_content(
    name: str, folder: Path, context: ToolContext, outside: Path
) -> None:
    if name == TO:
        (folder / "mine").unlink()
        (folder / "mine").hardlink_to(outside)
        _prepare(name, "moved", context)()
        return
    (folder / "hard").hardlink_to(outside)
    _prepare(name, "hard", context)()
    assert outside.stat().st_nlink == 1


@posix
@EVERY
def test_pipes_devices_and_folders_are_refused_and_not_waited_for(
    name: str, folder: Path, context: ToolContext
) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "sub").mkdir()
    assert "not a regular file" in _refused(_prepare_later(name, "pipe", context))
    assert "is a folder" in _refused(_prepare_later(name, "sub", context))
    if os.geteuid() == 0:
        try:
            os.mknod(folder / "device", 0o20666, os.makedev(1, 3))
        except OSError:
            return
        assert "not a regular file" in _refused(_prepare_later(name, "device", context))


@posix
@EVERY
def test_a_pipe_put_in_the_place_after_the_question_is_not_written_to(
    name: str, folder: Path, context: ToolContext
) -> None:
    if name != TO:
        (folder / "a").write_text("secret\n")
    make = _prepare(name, "a", context)
    (folder / "a").unlink(missing_ok=True)
    os.mkfifo(folder / "a")
    _refused(make)
    assert (folder / "a").is_fifo()


def test_a_name_in_another_case_is_another_file_or_the_same_but_never_both(
    folder: Path, context: ToolContext
) -> None:
    (folder / "Twin").write_text("secret\n")
    is_same = (folder / "twin").exists()
    if is_same:
        assert "exists already" in _refused(_prepare_later(TO, "twin", context))
        return
    (folder / "twin").write_text("secret too\n")
    _prepare("edit_file", "twin", context)()
    assert (folder / "Twin").read_text() == "secret\n"
    assert "exists already" in _refused(_prepare_later(TO, "Twin", context))


@EVERY
def test_a_vanished_folder_is_an_error_and_is_not_made_again(
    name: str, folder: Path, context: ToolContext
) -> None:
    (folder / "a").write_text("secret\n")
    make = _prepare(name, "a" if name != TO else "b", context)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    _refused(make)
    _refused(_prepare_later(name, "a", context))
    assert not folder.exists()


_NOBODY = 65_534

# What runs in a process of its own: its limits and its user hold for all of it.
_PROGRAM = """
import os, resource, signal, sys
from pathlib import Path
from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.edit_file import EditFile
from rolling_chat.tools.move_file import DeleteFile, MoveFile
from rolling_chat.tools.write_file import WriteFile
folder, how = Path(sys.argv[1]), sys.argv[2]
context = ToolContext(folder, {})
if how in ("read-only", "protected"):
    os.seteuid(65534)
else:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
for tool, arguments in [
    (EditFile(), {"old": "end", "new": "END"}),
    *[(WriteFile(), {"content": "x"})] * (how == "protected"),
    (MoveFile(), {"to": "other/b"}),
    *[(DeleteFile(), {})] * (how == "read-only"),
]:
    try:
        tool.prepare({"path": "a", **arguments}, context).make(context)
    except ToolError as error:
        print(error)
    else:
        print("made")
"""


def _in_a_process(folder: Path, how: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(folder), how],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ran.stdout.splitlines()


@posix
def test_a_disk_that_is_full_in_the_middle_leaves_the_old_file_whole_and_nothing_else(folder: Path) -> None:
    content = "line\n" * 20_000 + "end\n"
    (folder / "a").write_text(content)
    said = _in_a_process(folder, "full")
    assert said == ["“a” cannot be written: file too large. Nothing was changed.",
                    "“b” cannot be written: file too large. Nothing was changed."]  # fmt: skip
    assert (folder / "a").read_text() == content
    assert sorted(path.name for path in folder.rglob("*")) == ["a", "mine"]


@posix
def test_a_folder_that_is_read_only_stays_as_it_is(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody whom the folder refuses")
    (folder / "a").write_text("end\n")
    (folder / "a").chmod(0o666)
    _open_the_way(folder)
    said = _in_a_process(folder, "read-only")
    assert [line.partition(": ")[2] for line in said] == ["permission denied. Nothing was changed."] * 3
    assert sorted(path.name for path in folder.rglob("*")) == ["a", "mine"]
    assert (folder / "a").read_text() == "end\n"


@posix
def test_a_file_that_is_write_protected_is_not_replaced(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody whom the file refuses")
    (folder / "a").write_text("end\n")
    (folder / "a").chmod(0o444)
    os.chown(folder / "a", _NOBODY, _NOBODY)
    folder.chmod(0o777)
    _open_the_way(folder)
    said = _in_a_process(folder, "protected")
    assert said == ["“a” is write-protected; it cannot be edited."] * 2 + ["made"]
    assert (folder / "other" / "b").read_text() == "end\n"


def _open_the_way(folder: Path) -> None:
    for above in folder.parents:
        if above.is_relative_to(tempfile.gettempdir()) and above.name.startswith(
            ("pytest-", "popen-", "test_")
        ):
            above.chmod(0o755)


@given(st.text(st.sampled_from("ab \n\r\t\u202e\u200b\u2028\x1b\x00\u3164@+-\\"), max_size=30))
def test_the_question_draws_every_character_that_is_written(text: str) -> None:
    """The diff as it is drawn, with its codes, has a line for each line that is written."""
    diff = diff_of([FileChange(Path("/w/a"), None, FileVersion(("start\n" + text).encode()))], Path("/w"))
    if "\x00" not in text and "\r\n" not in text:
        assert patched("", diff) == "start\n" + text
    drawn = exact(diff)
    assert drawn.count("\n") == diff.count("\n")
    assert drawn.replace("\n", "").isprintable()
