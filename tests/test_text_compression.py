"""A packed text is the text, whoever asks for it and however often."""

from __future__ import annotations

import copy
import pickle
import random
import threading
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat import text_compression
from rolling_chat.messages import _CONTENT, Content, MadeBy, Message, ToolCall, pack_contents
from rolling_chat.text_compression import Packed

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300) | st.sampled_from(
    ["", "\x00" * 200, "\ud83d" * 150, "x\udc00y" * 60, "🙂" * 100, "a" * 99, "a" * 100, "a\r\n\u2028" * 70]
)


def is_packed(message: Message) -> bool:
    return isinstance(_CONTENT.held(message), Packed)


@given(st.lists(ANY_TEXT, max_size=80))
def test_packed_messages_equal_the_plain_ones_in_every_way(texts: list[str]) -> None:
    made = MadeBy("demo", "demo/offline")
    plain = [Message("assistant", text, id=f"m{at}", made_by=made) for at, text in enumerate(texts)]
    packed = [replace(message) for message in plain]
    pack_contents(packed)
    assert [is_packed(message) for message in packed] == [len(text) >= 100 for text in texts]
    for one, other in zip(plain, packed, strict=True):
        assert type(other.content) is str
        assert (other.content, other.text) == (one.content, one.text)
        assert other == one
        assert hash(other) == hash(one)
        assert repr(other) == repr(one)
        assert other.to_dict() == one.to_dict()
        assert asdict(other) == asdict(one)
        assert replace(other, id="x") == replace(one, id="x")
        assert pickle.loads(pickle.dumps(other)) == copy.deepcopy(other) == copy.copy(other) == one


@pytest.mark.parametrize(
    "content",
    [(), ({"type": "text", "text": "x" * 500},), "x" * 4_000_001, "short"],
    ids=["nothing", "parts", "giant", "short"],
)
def test_what_is_no_text_or_short_or_giant_stays_as_it_is(content: Content) -> None:
    message = Message("user", content)
    pack_contents([message])
    assert _CONTENT.held(message) is content


def test_a_long_text_has_a_page_of_its_own_that_is_not_kept_open() -> None:
    messages = [
        Message("tool", f"{at} {word}") for at in range(3) for word in ("a word " * 100, "漢字 " * 100_000)
    ]
    pack_contents(messages)
    assert all(is_packed(message) for message in messages)
    text_compression._opened.cache_clear()
    assert [len(message.text) for message in messages] == [702, 300_002] * 3
    assert text_compression._opened.cache_info().currsize == 3


def test_packing_again_changes_nothing() -> None:
    message = Message("assistant", "word " * 50, tool_calls=(ToolCall("c", "f", "{}"),))
    pack_contents([message])
    held = _CONTENT.held(message)
    pack_contents([message, Message("user", "other " * 50)])
    assert _CONTENT.held(message) is held


def test_packed_texts_take_a_fraction_of_their_characters() -> None:
    messages = [Message("user", f"{at}: " + "what is said again and again 🙂 " * 20) for at in range(64)]
    pack_contents(messages)
    pages = {id(page): page for page in (_CONTENT.held(message)._page for message in messages)}
    characters = sum(len(message.text) for message in messages)
    assert sum(len(page.compressed) for page in pages.values()) * 4 < characters


def test_few_pages_are_open_however_many_are_read() -> None:
    messages = [Message("user", f"{at} " * 100) for at in range(10_000)]
    pack_contents(messages)
    assert [message.text for message in messages] == [f"{at} " * 100 for at in range(10_000)]
    opened = text_compression._opened.cache_info()
    assert opened.currsize <= (opened.maxsize or 0) <= 64


def test_threads_read_while_another_packs() -> None:
    texts = [f"{at} 🙂 " * 60 for at in range(2_000)]
    messages = [Message("user", text) for text in texts]
    wrong: list[str] = []

    def read(seed: int) -> None:
        rng = random.Random(seed)
        places = rng.choices(range(len(texts)), k=4_000)
        wrong.extend(texts[at] for at in places if messages[at].text != texts[at])

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    threads.append(threading.Thread(target=pack_contents, args=(messages,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert all(map(is_packed, messages))
