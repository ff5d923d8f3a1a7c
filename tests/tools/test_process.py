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
