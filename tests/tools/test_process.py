from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.tools.decoding import decode, show_name
from rolling_chat.tools.process import Output, run_process
from tests.support.patience import PATIENCE_SECONDS


@given(st.lists(st.binary(max_size=40)), st.integers(2, 60))
def test_output_keeps_the_beginning_and_the_end(pieces: list[bytes], limit: int) -> None:
    output = Output(limit)
    for piece in pieces:
        output.add(piece)
    whole = b"".join(pieces)
    head, tail = output.parts
    assert output.total == len(whole)
    assert output.left_out == len(whole) - len(head) - len(tail)
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) == min(len(whole), limit // 2)
    if len(whole) <= limit:
        assert head + tail == whole
    else:
        assert limit // 2 <= len(tail) < limit // 2 + 40


@given(st.binary())
def test_any_bytes_become_text_that_can_be_stored(data: bytes) -> None:
    text = decode(data)
    text.encode("utf-8")
    assert "\x00" not in text


@given(st.binary().filter(lambda name: b"\x00" not in name and b"/" not in name))
def test_any_file_name_becomes_one_printable_line(name: bytes) -> None:
    shown = show_name(name.decode("utf-8", "surrogateescape"))
    assert shown.isprintable()


async def test_a_program_reads_what_it_is_given_or_leaves_it(tmp_path: Path) -> None:
    given = b"line\n" * 100_000  # more than a pipe holds
    for script, said in (("import sys; print(len(sys.stdin.buffer.read()))", b"500000\n"), ("", b"")):
        ended = await run_process(
            [sys.executable, "-c", script],
            folder=tmp_path, environ=dict(os.environ), timeout=PATIENCE_SECONDS, standard_input=given,
        )  # fmt: skip
        assert (ended.code, ended.output.parts[0].replace(b"\r", b"")) == (0, said)


async def test_errors_are_kept_apart_if_wanted_and_each_is_bounded(tmp_path: Path) -> None:
    errors = Output(1_000)
    script = "cat; head -c 200000 /dev/zero | tr '\\0' e >&2"
    ended = await run_process(
        ["/bin/sh", "-c", script],
        folder=tmp_path,
        environ={"PATH": os.environ["PATH"]},
        timeout=PATIENCE_SECONDS,
        standard_input=b"x" * 300_000,
        limit=2_000,
        errors=errors,
    )
    assert (ended.output.total, errors.total) == (300_000, 200_000)
    assert {*b"".join(ended.output.parts)} == {ord("x")}
    assert {*b"".join(errors.parts)} == {ord("e")}
    assert len(b"".join(errors.parts)) < 100_000
