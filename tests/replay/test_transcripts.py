"""Reading transcripts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rolling_chat.replay import Transcript, TranscriptError, read_transcripts
from rolling_chat.replay import transcripts as module
from tests.support.conversations import assistant, user
from tests.support.replay import write_lines

TALK = [user("a question"), assistant("an answer")]


def read(path: Path) -> list[Transcript]:
    return list(read_transcripts(path))


def ids(path: Path) -> list[str]:
    return [transcript.id for transcript in read(path)]


def complaint(path: Path) -> str:
    with pytest.raises(TranscriptError) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_messages_is_one_conversation_called_by_its_file(
    tmp_path: Path, indent: int | None
) -> None:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(TALK, indent=indent))
    [transcript] = read(path)
    assert transcript.id == "talk"
    assert [message.text for message in transcript.messages] == ["a question", "an answer"]
    assert transcript.sources == TALK


def test_an_array_with_a_message_a_line_is_one_conversation(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text("[\n" + ",\n".join(map(json.dumps, TALK)) + "\n]\n")
    assert len(read(path)[0].messages) == 2
    path.write_text('{"id": "x", "messages": [\n{"role": "user", "content": "alone"}\n]}')
    assert ids(path) == ["x"]


@pytest.mark.parametrize("name", ["talks.jsonl", "talks.jsonl.gz"])
def test_a_conversation_a_line_blank_lines_aside(tmp_path: Path, name: str) -> None:
    path = write_lines(
        tmp_path / name, {"id": "a", "messages": TALK}, {"id": 2, "messages": []}, {"messages": TALK}, TALK
    )
    assert ids(path) == ["a", "2", "talks:3", "talks:4"]


def test_gzip_is_known_by_its_bytes_and_not_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "talks"
    path.write_bytes(gzip.compress(json.dumps({"id": "a", "messages": TALK}).encode()))
    assert ids(path) == ["a"]


def test_an_array_of_conversations_will_do(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "all.json", [{"id": "a", "messages": TALK}, {"messages": TALK}])
    assert ids(path) == ["a", "all:2"]


def test_a_message_a_line_is_one_conversation(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "talk.jsonl", *TALK)
    (talk,) = read(path)
    assert (talk.id, list(talk.sources)) == ("talk", TALK)
    path.write_text(path.read_text() + '{"messages": []}\n')
    assert "line 3 of" in complaint(path)
    assert "not a message with a role" in complaint(path)


def test_a_title_comes_along(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.json", {"messages": TALK, "title": "the talk"})
    assert read(path)[0].title == "the talk"
    assert read(write_lines(tmp_path / "y.json", {"messages": TALK, "title": 5}))[0].title == ""


def test_tools_come_along(tmp_path: Path) -> None:
    schema = {"type": "function", "function": {"name": "f"}}
    path = write_lines(tmp_path / "x.jsonl", {"messages": TALK, "tools": [schema, "nonsense"]})
    assert read(path)[0].tools == [schema]


def test_fields_of_the_wrong_type_are_counted(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.json", [{"role": "user", "content": 5}, user("fine")])
    assert read(path)[0].repaired == 1


def test_conversations_are_read_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"id": "a", "messages": TALK}) + "\n{broken\n")
    reading = read_transcripts(path)
    assert next(reading).id == "a"
    with pytest.raises(TranscriptError, match="line 2"):
        next(reading)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ('{"messages": []}\n\n{oops\n', "line 3 of"),
        ('{"messages": [\n{"messages": []}\n', "line 1 of"),
        ('[\n{"role": "user"},\n{"role" "user"}\n]', "line 3 of"),
        ("3", "line 1 of"),
        ('{"messages": []}\n{"massages": []}', "line 2 of"),
        ('{"messages": null}', "is not a conversation: expected an array of messages or"),
        (
            '{"messages": []}\n{"role": "user", "content": "x"}\n',
            "is a message, not a conversation: put all messages into one",
        ),
        ('[{"role": "user"}, "hello"]', "message 1 is not an object"),
        ("[" * 100_000, "nested too deep"),
        ("just some text", "is not JSON: Expecting value (column 1)"),
    ],
)
def test_what_is_no_transcript_is_one_line_that_names_the_line(
    tmp_path: Path, text: str, wanted: str
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    assert wanted in complaint(path)


def test_wrong_bytes_are_one_line_too(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}\n')
    assert complaint(path).endswith("x.jsonl is not UTF-8: byte 44 is 0xff")
    path.write_bytes(gzip.compress(json.dumps(TALK).encode() * 50)[:-20])
    assert "cannot read" in complaint(path)
    assert "cannot read" in complaint(tmp_path / "nowhere")


@pytest.mark.parametrize("before", ["", '{"messages": []}\n', "[\n"])
def test_a_line_without_end_is_refused_and_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1024**2)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(before.encode() + b"{" + b" " * 3 * 1024**2))
    assert "1 MB" in complaint(path)


def test_an_array_without_end_is_refused_and_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1024**2)
    path = tmp_path / "x.json"
    path.write_text("[\n" + '{"role": "user", "content": "again"},\n' * 40_000)
    assert "one value of more than 1 MB" in complaint(path)
    path.write_text("{broken\n" + '{"messages": []}\n' * 100_000)
    assert "line 1 of" in complaint(path)


def test_messages_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1024**2)
    path = tmp_path / "x.jsonl"
    path.write_text('{"role": "user", "content": "again"}\n' * 40_000)
    assert "one conversation of more than 1 MB" in complaint(path)


def test_how_much_was_read_grows_to_the_whole(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", *({"messages": TALK} for _ in range(4)))
    shares = [transcript.read for transcript in read(path)]
    assert shares == sorted(shares)
    assert 0 < shares[0] < 1
    assert shares[-1] == 1
