"""What leaves the program so that a terminal sets its clipboard, byte for byte."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rolling_chat.tui.terminal import clipboard as clipboard_module
from rolling_chat.tui.terminal.clipboard import MAX_BYTES, Clipboard, osc52
from tests.support.tui import (
    idle,
    make_app,
    make_chat,
    says,
    screen_of,
    transcript,
    type_line,
    wait_until,
)

NO_TMUX = {"PATH": "/nowhere"}


def _read(sequence: str) -> str:
    """What a terminal that knows OSC 52 takes from a sequence."""
    match = re.fullmatch(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", sequence)
    assert match, sequence
    return base64.b64decode(match[1], validate=True).decode()


@pytest.mark.parametrize("text", ["plain", "", "two\nlines\twith a tab", "é中😀", "\x1b]52;c;?\x07"])
def test_a_terminal_gets_the_text_in_base64(text: str) -> None:
    assert _read(osc52(text, {})) == text


def test_half_a_surrogate_pair_does_not_stop_a_copy() -> None:
    assert _read(osc52("a\ud83db", {})) == "a?b"


@pytest.mark.parametrize("environ", [{"TMUX": "/tmp/tmux-0/default,1,0"}, {"TERM": "tmux-256color"}])
def test_tmux_gets_it_for_itself_and_wrapped_for_the_terminal_behind_it(environ: Mapping[str, str]) -> None:
    plain = osc52("copied", {})
    own, wrapped = osc52("copied", environ).split("\x1bPtmux;")
    assert own == plain
    assert wrapped.endswith("\x1b\\")
    assert wrapped.removesuffix("\x1b\\").replace("\x1b\x1b", "\x1b") == plain


@pytest.mark.parametrize("length", [1, 500, 561, 562, 563, 5000])
def test_screen_gets_it_in_strings_that_it_takes(length: int) -> None:
    sequence = osc52("x" * length, {"STY": "1.pts-0", "TERM": "screen"})
    pieces = sequence.removesuffix("\x1b\\").split("\x1b\\")
    assert all(piece.startswith("\x1bP") and len(piece) + 2 <= 768 for piece in pieces)
    passed_on = "".join(piece.removeprefix("\x1bP") for piece in pieces)
    assert _read(passed_on) == "x" * length


def test_a_terminal_that_is_only_named_screen_gets_it_plain() -> None:
    assert osc52("copied", {"TERM": "screen-256color"}) == osc52("copied", {})


async def test_without_a_tmux_to_ask_the_sequences_go_out(tmp_path: Path) -> None:
    written: list[str] = []
    environ = {"TMUX": f"{tmp_path}/gone,1,0", **NO_TMUX}
    clipboard = Clipboard(written.append, environ, None)
    assert clipboard.put("copied") == ""
    await clipboard.settle()
    assert written == [osc52("copied", environ)]


@pytest.fixture
def slow_tmux(tmp_path: Path) -> Mapping[str, str]:
    """The environment of a program whose `tmux` keeps what it is given, and answers when it is let on."""
    os.mkfifo(tmp_path / "gate-first,")
    os.mkfifo(tmp_path / "gate-last")
    program = tmp_path / "tmux"
    program.write_text(
        f'#!/bin/sh\ntext=$(cat)\nprintf %s "$text" >> {tmp_path}/taken\n'
        f'read -r answer < "{tmp_path}/gate-$text"\nexit "$answer"\n'
    )
    program.chmod(0o700)
    return {"TMUX": "socket,1,0", "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def _let_on(tmp_path: Path, text: str, status: int) -> None:
    (tmp_path / f"gate-{text}").write_text(f"{status}\n")


async def test_while_tmux_thinks_keys_are_answered_and_of_what_waits_only_the_last_is_copied(
    tmp_path: Path, slow_tmux: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clipboard_module, "_TMUX_SECONDS", 60.0)
    written: list[str] = []
    clipboard = Clipboard(written.append, slow_tmux, None)
    for text in ("first,", "between,", "last"):
        assert clipboard.put(text) == ""
        await asyncio.sleep(0)
    await asyncio.to_thread(_let_on, tmp_path, "first,", 0)
    await asyncio.to_thread(_let_on, tmp_path, "last", 1)
    await clipboard.settle()
    assert (tmp_path / "taken").read_text() == "first,last"
    assert written == [osc52("last", slow_tmux)], "what tmux did not take goes out as sequences"


async def test_for_a_tmux_that_never_answers_nobody_waits_long(
    slow_tmux: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clipboard_module, "_TMUX_SECONDS", 0.2)
    written: list[str] = []
    clipboard = Clipboard(written.append, slow_tmux, None)
    clipboard.put("last")
    assert written == []
    await clipboard.settle()
    assert written == [osc52("last", slow_tmux)]


class TestTooLong:
    """What OSC 52 cannot carry."""

    def test_the_longest_text_is_copied_and_one_byte_more_is_not(self, tmp_path: Path) -> None:
        written: list[str] = []
        clipboard = Clipboard(written.append, {}, tmp_path / "clipboard.txt")
        assert clipboard.put("x" * MAX_BYTES) == ""
        assert len(written[0]) <= 100_000
        assert not (tmp_path / "clipboard.txt").exists()
        assert clipboard.put("x" * (MAX_BYTES + 1))
        assert len(written) == 1

    def test_it_is_kept_in_a_file_for_its_owner_alone(self, tmp_path: Path) -> None:
        file, text = tmp_path / "data" / "clipboard.txt", "é\t\n" * 30_000
        clipboard = Clipboard(lambda _: None, {}, file)
        line = clipboard.put(text)
        assert line == f"120,000 bytes are more than a terminal's clipboard takes: it is in {file}"
        assert file.read_bytes() == text.encode()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        file.chmod(0o644)
        clipboard.put("x" * 80_000)
        assert file.read_text() == "x" * 80_000
        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_a_file_that_cannot_be_written_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        line = Clipboard(lambda _: None, {}, tmp_path / "file" / "clipboard.txt").put("x" * 80_000)
        assert "cannot be written" in line

    def test_where_nothing_is_kept_nothing_is_copied(self) -> None:
        assert Clipboard(lambda _: None, {}, None).put("x" * 80_000).endswith("nothing was copied")


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """The environment of a program inside a tmux of its own, as it is set up by default."""
    program = shutil.which("tmux")
    if program is None:
        pytest.skip("tmux is not on the PATH")
    socket = tmp_path / "tmux"
    plain = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm-256color"}
    run = [program, "-S", str(socket), "-f", "/dev/null"]
    subprocess.run([*run, "new-session", "-d", "sleep 600"], env=plain, check=True)
    try:
        yield {**plain, "TMUX": f"{socket},1,0"}
    finally:
        subprocess.run([*run, "kill-server"], env=plain, check=False)


@pytest.mark.parametrize("text", ["copied", "two\n\tlines é中😀\n", "x" * 50_000])
async def test_tmux_takes_it_as_it_is_set_up_by_default(
    tmux: Mapping[str, str], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clipboard_module, "_TMUX_SECONDS", 60.0)
    written: list[str] = []
    clipboard = Clipboard(written.append, tmux, None)
    assert clipboard.put(text) == ""
    await clipboard.settle()
    shown = await asyncio.to_thread(
        subprocess.run, ["tmux", "show-buffer"], env=tmux, check=True, capture_output=True
    )
    assert shown.stdout.decode() == text
    assert written == [], "what tmux took it passes on itself"


async def test_a_selection_that_is_too_long_goes_to_the_file_and_a_line_says_so(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(300, 24)) as pilot:
        screen_of(pilot).prompt.put("x" * 80_000)
        screen_of(pilot).prompt.select_all()
        await pilot.press("ctrl+c")
        await wait_until(pilot, lambda: "clipboard.txt" in transcript(pilot).replace("\n  ", ""))
        assert (tmp_path / "clipboard.txt").read_text() == "x" * 80_000 == pilot.app.clipboard


async def test_copy_does_not_say_copied_of_what_went_to_the_file(tmp_path: Path) -> None:
    app = make_app(make_chat(tmp_path, says("x" * 80_000)), tmp_path)
    async with app.run_test(size=(300, 24)) as pilot:
        await type_line(pilot, "hi")
        await idle(pilot)
        await type_line(pilot, "/copy")
        await wait_until(pilot, lambda: "clipboard.txt" in transcript(pilot).replace("\n  ", ""))
        assert "Copied" not in transcript(pilot)
