"""Files go back with the conversation: each is what it was at that turn, or is named and left."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolling_chat.agent import ChatError
from rolling_chat.agent.file_undo import keep_edit
from rolling_chat.sessions.sqlite import kept_files
from rolling_chat.tools import ToolContext
from rolling_chat.tools.edit_file import EditFile
from tests.support.edits import NAMES, EditingDesk, call_of


@pytest.fixture
def desk(tmp_path: Path) -> EditingDesk:
    return EditingDesk(tmp_path)


async def test_a_new_file_goes_with_the_folders_made_for_it_and_comes_back(desk: EditingDesk) -> None:
    await desk.turn(call_of("write_file", path="sub/deep/d.txt", content="new\n"))
    made = desk.files()
    assert made["sub/deep/d.txt"] == b"new\n"
    assert desk.go_before(0) == []
    assert desk.files() == {}
    assert desk.redo() == []
    assert desk.files() == made


async def test_an_edit_a_move_a_deletion_and_a_mode_come_back(desk: EditingDesk) -> None:
    (desk.folder / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (desk.folder / "b.txt").write_bytes(b"b\n")
    (desk.folder / "a.txt").chmod(0o755)
    (desk.folder / "link").symlink_to("b.txt")
    before = desk.files()
    await desk.turn(
        call_of("edit_file", 1, path="a.txt", old="two", new="three"),
        call_of("move_file", 2, path="a.txt", to="sub/c.txt"),
        call_of("delete_file", 3, path="b.txt"),
        call_of("delete_file", 4, path="link"),
    )
    assert desk.files() == {"sub": b"/", "sub/c.txt": b"one\r\nthree\r\n"}
    assert desk.go_before(0) == []
    assert desk.files() == before
    assert (desk.folder / "a.txt").stat().st_mode & 0o777 == 0o755
    assert (desk.folder / "link").readlink() == Path("b.txt")


async def test_a_file_that_somebody_else_changed_is_named_and_left(desk: EditingDesk) -> None:
    await desk.turn(
        call_of("write_file", 1, path="a.txt", content="a\n"),
        call_of("write_file", 2, path="b.txt", content="b\n"),
    )
    (desk.folder / "a.txt").write_text("mine\n")
    (line,) = desk.go_before(0)
    assert line == "a.txt is left as it is: somebody else changed it since."
    assert desk.files() == {"a.txt": b"mine\n"}


async def test_what_somebody_else_wrote_between_two_edits_is_not_lost(desk: EditingDesk) -> None:
    (desk.folder / "a.txt").write_text("one\n")
    await desk.turn(call_of("edit_file", path="a.txt", old="one", new="two"))
    (desk.folder / "a.txt").write_text("two\nand mine\n")
    await desk.turn(call_of("edit_file", path="a.txt", old="two", new="three"))
    assert desk.go_before(0) == ["a.txt is left as it is: somebody else changed it since."]
    assert desk.files() == {"a.txt": b"three\nand mine\n"}


async def test_a_moved_file_comes_back_whole_or_not_at_all(desk: EditingDesk) -> None:
    (desk.folder / "a.txt").write_text("a\n")
    await desk.turn(call_of("move_file", path="a.txt", to="b.txt"))
    (desk.folder / "b.txt").write_text("mine\n")
    assert desk.go_before(0) == [
        "b.txt is left as it is: somebody else changed it since.",
        "a.txt is left as it is: it was moved with b.txt, which is left.",
    ]
    assert desk.files() == {"b.txt": b"mine\n"}


async def test_a_folder_that_became_a_link_is_not_removed_where_it_leads(
    desk: EditingDesk, tmp_path: Path
) -> None:
    await desk.turn(
        call_of("write_file", 1, path="sub/deep/d.txt", content="d\n"),
        call_of("write_file", 2, path="a.txt", content="a\n"),
    )
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    shutil.rmtree(desk.folder / "sub")
    (desk.folder / "sub").symlink_to(outside)
    assert desk.go_before(0) == ["sub/deep/d.txt is left as it is: it is not in this folder."]
    assert (outside / "deep").is_dir()
    assert "a.txt" not in desk.files()


async def test_a_new_file_comes_back_with_the_mode_that_it_was_given_since(desk: EditingDesk) -> None:
    await desk.turn(call_of("write_file", path="a.txt", content="a\n"))
    (desk.folder / "a.txt").chmod(0o755)
    assert desk.go_before(0) == []
    assert desk.redo() == []
    assert (desk.folder / "a.txt").stat().st_mode & 0o777 == 0o755


async def test_what_is_no_longer_kept_is_named_and_left(
    desk: EditingDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.folder / "a.txt").write_text("old\n")
    await desk.turn(call_of("edit_file", path="a.txt", old="old", new="new"))
    monkeypatch.setattr(kept_files, "MAX_KEPT_BYTES", 1)
    await desk.turn(call_of("write_file", path="b.txt", content="b\n"))
    (line,) = desk.go_before(0)
    assert line == "a.txt is left as it is: what it held is no longer kept."
    assert desk.files() == {"a.txt": b"new\n"}


async def test_the_diff_of_a_session_is_what_it_changed_in_all(desk: EditingDesk) -> None:
    (desk.folder / "a.txt").write_text("one\ntwo\n")
    await desk.turn(call_of("edit_file", path="a.txt", old="two", new="three"))
    await desk.turn(call_of("edit_file", path="a.txt", old="three", new="four"))
    assert desk.chat.session.files.diff(desk.chat.session.head).split("\n")[3:] == [" one", "-two", "+four"]


async def test_a_refused_edit_leaves_nothing_to_undo(desk: EditingDesk) -> None:
    await desk.turn(call_of("edit_file", path="a.txt", old="x", new="y"))
    assert desk.chat.session.files.move(desk.chat.session.head, "").is_nothing


TURN = st.tuples(st.just("turn"), st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 5)), max_size=3))
OTHER = st.one_of(
    st.tuples(st.just("rewind"), st.integers(0, 9)),
    st.tuples(st.just("redo"), st.just(0)),
    st.tuples(st.just("outside"), st.sampled_from(NAMES)),
)


@given(st.lists(st.one_of(TURN, TURN, OTHER), max_size=14))
@settings(max_examples=20)
def test_files_are_what_they_were_at_that_turn_or_the_conflict_is_named(
    acts: list[tuple[str, object]],
) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_walk(EditingDesk(Path(folder)), acts))


async def _walk(desk: EditingDesk, acts: list[tuple[str, object]]) -> None:
    """`at` is what the files held at each head; after an outside change only unnamed files are compared."""
    at: dict[str, dict[str, bytes]] = {"": {}}
    touched: set[str] = set()
    for act, what in acts:
        session = desk.chat.session
        left: list[str] = []
        match act, what:
            case "turn", list(edits):
                await desk.turn(*(desk.edit(number, *one) for number, one in enumerate(edits)))
            case "rewind", int(number) if session.history.turns():
                left = desk.go_before(number % len(session.history.turns()))
            case "redo", _ if session.history.redo_target() is not None:
                left = desk.redo()
            case "outside", str(name) if (desk.folder / name).is_file():
                (desk.folder / name).write_text("somebody else's\n")
                touched.add(name)
                continue
            case _:
                continue
        head = desk.head
        now = desk.contents()
        if act == "turn" or head not in at:
            at[head] = now
            continue
        expected = at[head]
        names = {*NAMES, *now, *expected}
        named = {name for name in names if any(line.startswith(f"{name} ") for line in left)}
        assert not named or named & touched
        touched |= named  # what was moved with a file that is left is left, too
        for name in names:
            assert now.get(name) == expected.get(name) or name in touched, (name, left)


async def test_a_crash_between_keeping_and_making_a_change_loses_nothing(desk: EditingDesk) -> None:
    (desk.folder / "a.txt").write_text("old\n")
    await desk.turn(call_of("edit_file", path="a.txt", old="old", new="new"))
    session = desk.chat.session
    context = ToolContext(desk.folder, {})
    edit = EditFile().prepare({"path": "a.txt", "old": "new", "new": "newer"}, context)
    keep_edit(session.state.conversation.store.kept_files, session.messages[1].id, edit)  # and no more
    assert desk.go_before(0) == []
    assert desk.files() == {"a.txt": b"old\n"}
    (desk.folder / "a.txt").write_text("new\n")
    assert desk.redo() == ["a.txt is left as it is: somebody else changed it since."]
    edit.make(context)  # and no result of it
    assert desk.go_before(0) == []
    assert desk.files() == {"a.txt": b"old\n"}


async def test_a_change_that_a_crash_kept_from_being_made_is_no_change_of_somebody_else(
    desk: EditingDesk,
) -> None:
    (desk.folder / "a.txt").write_text("old\n")
    await desk.turn(call_of("edit_file", path="a.txt", old="old", new="new"))
    session = desk.chat.session
    edit = EditFile().prepare({"path": "a.txt", "old": "new", "new": "newer"}, ToolContext(desk.folder, {}))
    keep_edit(session.state.conversation.store.kept_files, session.messages[1].id, edit)  # and no more
    await desk.turn(call_of("edit_file", path="a.txt", old="new", new="last"))
    assert desk.go_before(0) == []
    assert desk.files() == {"a.txt": b"old\n"}


async def test_an_undo_that_cannot_be_made_changes_nothing(desk: EditingDesk) -> None:
    (desk.folder / "a.txt").write_text("old\n")
    await desk.turn(call_of("edit_file", path="a.txt", old="old", new="new"))
    session = desk.chat.session
    move = session.files.move(session.head, "")
    (desk.folder / "a.txt").write_text("mine\n")
    with pytest.raises(ChatError, match="was changed by somebody else: nothing was changed"):
        session.files.make(move)
    assert desk.files() == {"a.txt": b"mine\n"}
