"""Encodings are loaded from the published files only, and equal tiktoken's own."""

from __future__ import annotations

import random
import threading
from functools import cache
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context import encodings
from rolling_chat.context.encodings import ENCODINGS, find_encoding, has_encoding
from tests.support.mixed_text import mixed_text

_MIXED = st.integers(0, 1_000_000).map(lambda seed: mixed_text(random.Random(seed), 2_000))
_TEXTS = st.text() | _MIXED | st.text("aB3'lL \n\r\t.,/é中😀\u0301ǅ")


@pytest.mark.parametrize("name", ENCODINGS)
@given(text=_TEXTS)
def test_tokens_are_those_of_tiktokens_own_way_to_load(name: str, text: str) -> None:
    ours = find_encoding(name)
    assert ours is not None
    assert ours.encode_ordinary(text) == _tiktokens(name).encode_ordinary(text)


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_token_has_the_rank_that_tiktoken_gives_it(name: str) -> None:
    ours, theirs = find_encoding(name), _tiktokens(name)
    assert ours is not None
    tokens = theirs.token_byte_values()
    assert ours.token_byte_values() == tokens
    assert all(ours.encode_single_token(token) == theirs.encode_single_token(token) for token in tokens)


def test_a_damaged_file_is_passed_over_and_left_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    damaged = tmp_path / encodings._PUBLISHED["cl100k_base"].file_name
    damaged.write_bytes(b"IQ== 0\n")
    assert has_encoding("cl100k_base")
    monkeypatch.setattr(encodings.importlib.util, "find_spec", lambda _name: None)
    assert not has_encoding("cl100k_base")
    assert damaged.read_bytes() == b"IQ== 0\n"


def test_an_encoding_that_nobody_published_is_none() -> None:
    assert find_encoding("p50k_edit") is None
    assert not has_encoding("p50k_edit")


def test_those_who_ask_at_once_are_given_the_same_encoding() -> None:
    encodings._encoding.cache_clear()
    start, found = threading.Barrier(4), []

    def find() -> None:
        start.wait()
        found.append(find_encoding("cl100k_base"))

    threads = [threading.Thread(target=find) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(one) for one in found}) == 1


@cache
def _tiktokens(name: str) -> tiktoken.Encoding:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(_litellms_folder()))
        return tiktoken.get_encoding(name)


def _litellms_folder() -> Path:
    return list(encodings._folders())[-1]
