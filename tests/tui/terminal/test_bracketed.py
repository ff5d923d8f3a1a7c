"""What is pasted is text, however it is read and whatever it holds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.message import Message

from rolling_chat.tui.terminal.bracketed import PasteParser, _lenient_decoder

START, END = "\x1b[200~", "\x1b[201~"
# what could be taken for keys, for marks, or for parts of them
PARTS = ["\x1b", "\r", "\n", "\x03", "[", "200~", "201", "~", "\x1b[31m", "\x1b[I", "\x1b[A", START, "é", "a"]
PASTED = (
    st.lists(st.sampled_from(PARTS), max_size=12).map("".join).filter(lambda text: END not in text + END[:5])
)


def read(*reads: str) -> list[str]:
    """The events of a terminal that was read so: keys by name, pastes as `<text>`."""
    parser = PasteParser()
    return [_name(event) for data in reads for event in parser.feed(data)]


def _name(event: Message) -> str:
    match event:
        case events.Key():
            return event.key
        case events.Paste():
            return f"<{event.text}>"
    return type(event).__name__


@pytest.mark.parametrize(
    "text",
    [
        "\x1b\r",
        "\x1b[31mred\x1b[0m\r\nrm -rf",
        "a\x1bb",
        "at the end\x1b",
        f"nested {START} mark",
        "\x1b[I and \x1b[48;24;80;480;800t",
        "\x1b[13u",
        "\x1b]0;" + "a title " * 9 + "\r",
        "",
    ],
)
def test_a_paste_is_one_text(text: str) -> None:
    assert read(f"b{START}{text}{END}a") == ["b", f"<{text}>", "a"]


def test_a_mark_that_comes_in_parts_is_a_mark() -> None:
    whole = f"{START}one\x1b\r{END}x{START}two{END}\r"
    assert read(*whole) == ["<one\x1b\r>", "x", "<two>", "enter"]


def test_keys_go_on_as_they_came() -> None:
    assert read("\x1b[A", "\x1b[", "B", "x", "\r", END, "y") == ["up", "down", "x", "enter", "y"]


@pytest.mark.parametrize("cut", range(1, 6))
def test_alt_with_a_letter_is_a_key_however_soon_the_next_comes(cut: int) -> None:
    held = "\x1bn\x1bn\x1bd"
    assert read(held[:cut], held[cut:]) == ["alt+n", "alt+n", "alt+d"]
    assert read(held[:cut], held[cut:], "\x1b[A", "x") == ["alt+n", "alt+n", "alt+d", "up", "x"]


def test_an_escape_by_itself_is_one_when_nothing_follows_in_time() -> None:
    parser = PasteParser()
    keys = [*parser.feed("\x1b")]
    parser._sequences._since = -math.inf  # the time is up
    keys += [*parser.tick(), *parser.feed("n")]
    assert [_name(key) for key in keys] == ["escape", "n"]


def test_a_paste_that_is_never_ended_presses_nothing() -> None:
    assert read(f"{START}rm -rf\x1b\r", "\r", "") == []


@given(PASTED, PASTED, st.data())
def test_however_it_is_read_it_is_the_same(one: str, two: str, data: st.DataObject) -> None:
    whole = f"a{START}{one}{END}b{START}{two}{END}\r"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=6)))
    reads = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert read(*reads) == ["a", f"<{one}>", "b", f"<{two}>", "enter"]


def test_alt_with_enter_is_a_key_of_its_own() -> None:
    assert read("\x1b\r", "\r", "\x1b\r\x1b\r") == ["alt+enter", "enter", "alt+enter", "alt+enter"]
    assert read("x\x1b", "\r") == ["x", "alt+enter"]


@pytest.mark.parametrize("character", ["\u200c", "\u200d", "\u3000", "\u00a0", "\u00ad"])
def test_a_letter_that_python_would_not_print_is_text(character: str) -> None:
    (key,) = PasteParser().feed(character)
    assert isinstance(key, events.Key)
    assert key.is_printable
    assert key.character == character


@pytest.mark.parametrize("character", ["\x07", "\t", "\u202e", "\u200f", "\u200b", "\U000e0041"])
def test_what_turns_or_hides_text_is_not(character: str) -> None:
    assert not any(isinstance(key, events.Key) and key.is_printable for key in PasteParser().feed(character))


def read_bytes(*reads: bytes) -> list[str]:
    """The events of what a terminal sent, decoded as it is by the driver."""
    decoder = _lenient_decoder("utf-8")()
    return read(*filter(None, map(decoder.decode, reads)))


STRINGS = [
    "\x1bP1$r/quit\r\x1b\\",
    "\x1bP>|name\r\x1b\\",
    "\x1b]11;rgb:0/0/0\r\x07",
    "\x1b]0;title\r\x1b\\",
    "\x1b_Gi=1;OK\r\x1b\\",
    "\x1b^private\r\x1b\\",
    "\x1bXstart\r\x1b\\",
    "\x1bP" + "long \r" * 2_000 + "\x1b\\",
    "\x1bPcut off\r\x18",
]
REPLIES = [
    "\x1b[?62;22c",
    "\x1b[>41;354;0c",
    "\x1b[0n",
    "\x1b[?997;1n",
    "\x1b[8;24;80t",
    "\x1b[?1u",
    "\x1b[" + "1;" * 40 + "u",
    "\x1b[" + "9" * 9_000 + "u",
    "\x1b[1114112;1u",
    "\x1b[99999999999999u",
    "\x1b[55296u",
    "\x1b[97;1;1114112u",
    "\x1b[97:65;1u",
    "\x1b[<0;" + "9" * 20 + ";1M",
    "\x1b[48;99999;99999;1;1t",
    "\x1b[48;24;0;1;1t",
    "\x1b[48;" + "9" * 5_000 + ";80;1;1t",
]


@pytest.mark.parametrize("sequence", [*STRINGS, *REPLIES], ids=repr)
def test_what_a_terminal_replies_or_gets_wrong_is_no_key(sequence: str) -> None:
    keys = [key for key in read(f"a{sequence}b") if not key.startswith("Mouse")]
    assert keys == ["a", "b"]


@given(st.sampled_from(STRINGS), st.data())
def test_a_reply_is_no_key_however_it_is_read(sequence: str, data: st.DataObject) -> None:
    whole = f"a{sequence}b"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=6)))
    reads = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert read(*reads) == ["a", "b"]


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (b"a\xe9b", ["a", "replacement_character", "b"]),
        (b"\x9bA\r", ["replacement_character", "A", "enter"]),
        (b"a\x1b[M \xc8\xe9b", ["a", "b"]),
        (b"\x1b[M \xc3\xa9b\r", ["b", "enter"]),
        (b"\x1b[M !!", []),
        (b"\x1b[200~caf\xe9 \x9b31m\x1b[201~x", ["<caf\ufffd \ufffd31m>", "x"]),
        ("é→😀".encode(), ["é", "rightwards_arrow", "grinning_face"]),
    ],
)
def test_a_byte_that_is_no_text_is_replaced_and_nothing_ends(sent: bytes, keys: list[str]) -> None:
    assert read_bytes(sent) == keys
    assert read_bytes(*(bytes([each]) for each in sent)) == keys


@pytest.mark.parametrize("key", "P]_^X[O")
def test_alt_with_what_may_begin_a_sequence_is_a_key_when_nothing_follows(key: str) -> None:
    parser = PasteParser()
    keys = [*parser.feed(f"\x1b{key}")]
    parser._sequences._since = -math.inf
    parser._timeout_time = parser._timeout_time and 0.0
    keys += [*parser.tick(), *parser.feed("n")]
    assert [_name(each) for each in keys][1:] == ["n"]


def test_what_is_there_to_be_read_belongs_to_the_key_however_late_it_is_read() -> None:
    waits = True
    parser = PasteParser(has_input=lambda: waits)
    keys = [*parser.feed("\x1b")]
    parser._sequences._since = -math.inf
    keys += [*parser.tick(), *parser.feed("[A")]
    waits = False
    keys += [*parser.feed("\x1b")]
    parser._sequences._since = -math.inf
    keys += [*parser.tick(), *parser.feed("[A")]
    assert [_name(each) for each in keys] == ["up", "escape", "left_square_bracket", "A"]


@given(st.lists(st.sampled_from([*PARTS, *STRINGS, *REPLIES, "\x1b[", "\x1bP", "\x1b]", "\udce9", ";", "1"])))
def test_nothing_that_is_sent_ends_the_reading(parts: list[str]) -> None:
    read(*parts)
    read(*filter(None, ["".join(parts)]), "")
