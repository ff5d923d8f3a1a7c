"""Pictures that a message mentions: sent where the model takes them, else a line; each kept once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.agent import AttachmentRefusedError, Chat, Runtime, as_typed
from rolling_chat.agent.importing import import_transcript
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.events import Noticed
from rolling_chat.mentions import marked
from rolling_chat.messages import Message, has_pictures, picture_address
from rolling_chat.pictures import split_data_uri
from rolling_chat.replay import read_transcripts
from rolling_chat.sessions.export.as_html import to_html
from rolling_chat.sessions.export.as_json import to_json
from rolling_chat.sessions.export.as_markdown import to_markdown
from rolling_chat.settings.schema import ModelSettings, Settings
from tests.support.agent import MODEL, ScriptedProvider, collect, make_runtime, says
from tests.support.pictures import bomb, png

SHOT = png(800, 600)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "shot.txt").write_bytes(SHOT)  # by content, not by name
    return folder


def open_chat(tmp_path: Path, *scripts: Any, pictures: str = "send", **more: Any) -> tuple[Chat, Runtime]:
    models = {MODEL: ModelSettings(pictures=pictures)}  # type: ignore[arg-type]
    provider = ScriptedProvider(*scripts)
    runtime = make_runtime(tmp_path, provider, settings=Settings(models=models), **more)
    return Chat.open(runtime), runtime


def pictures_of(messages: Iterable[Message]) -> list[bytes]:
    parts = (part for one in messages if not isinstance(one.content, str) for part in one.content)
    found = (split_data_uri(picture_address(part)) for part in parts if part["type"] == "image_url")
    return [picture[1] for picture in found if picture is not None]


async def test_a_picture_is_sent_below_the_line_that_names_it(tmp_path: Path, work: Path) -> None:
    chat, runtime = open_chat(tmp_path, says("ok"))
    await collect(chat.send(marked("What is in @shot.txt?")))
    message = runtime.provider.requests[0].messages[-1]
    what = f"PNG, 800 × 600, {len(SHOT)} B"
    assert message.text == f"What is in @shot.txt?\n\nAttached picture shot.txt ({what})"
    assert pictures_of([message]) == [SHOT]
    (attached,) = chat.session.messages[0].attachments
    assert attached.note == what
    assert attached.tokens > 640  # 800 × 600 / 750


async def test_a_model_that_takes_none_is_sent_a_line_and_the_user_is_told(
    tmp_path: Path, work: Path
) -> None:
    chat, runtime = open_chat(tmp_path, says("ok"), pictures="auto")
    events = await collect(chat.send(marked("@shot.txt")))
    (line,) = [event.text for event in events if isinstance(event, Noticed)]
    assert line.startswith(f"@shot.txt is sent as a line: {MODEL} is not known to take pictures.")
    sent = runtime.provider.requests[0].messages[-1]
    assert isinstance(sent.content, str)
    assert sent.text.endswith("[picture not sent: this model takes no pictures]")
    assert has_pictures(chat.session.messages[0])
    (record,) = runtime.store.requests(chat.session.info.id)
    assert rebuild_request(runtime.store, record).is_same


async def test_a_picture_is_stored_once_and_comes_back_and_goes_with_its_last_session(
    tmp_path: Path, work: Path
) -> None:
    chat, runtime = open_chat(tmp_path, says("ok"))
    (work / "same.png").write_bytes(SHOT)
    await collect(chat.send(marked("@shot.txt and @same.png")))
    await collect(chat.send(marked("again @shot.txt")))
    first = chat.session.info.id
    count = "SELECT COUNT(*) FROM picture"
    database = runtime.store._database
    with database.read() as connection:
        assert connection.execute(count).fetchone()[0] == 1
    assert pictures_of(runtime.store.branch(first)) == [SHOT] * 3
    chat.fork()
    chat.start_new()
    runtime.store.delete(first)
    assert pictures_of(runtime.store.branch(runtime.store.sessions()[-1].id)) == [SHOT] * 3
    for info in runtime.store.sessions():
        if info.id != chat.session.info.id:
            runtime.store.delete(info.id)
    with database.read() as connection:
        assert connection.execute(count).fetchone()[0] == 0


async def test_a_picture_that_the_store_has_lost_is_a_line(tmp_path: Path, work: Path) -> None:
    chat, runtime = open_chat(tmp_path, says("ok"))
    await collect(chat.send(marked("@shot.txt")))
    with runtime.store._database.write() as connection:
        connection.execute("DELETE FROM picture")
    message = runtime.store.branch(chat.session.info.id)[0]
    assert message.text.endswith("[this picture is lost]")
    assert message.words == "@shot.txt"


async def test_every_request_is_built_again_from_the_store(tmp_path: Path, work: Path) -> None:
    chat, runtime = open_chat(tmp_path, says("ok"))
    await collect(chat.send(marked("@shot.txt")))
    await collect(chat.send("and?"))
    records = runtime.store.requests(chat.session.info.id)
    assert len(records) == 2
    assert all(rebuild_request(runtime.store, record).is_same for record in records)


async def test_pictures_of_older_turns_become_lines_before_what_was_said_is_dropped(
    tmp_path: Path, work: Path
) -> None:
    chat, runtime = open_chat(tmp_path, says("ok"), window=32_000)
    chat.session.overrides.set_rolling(True)
    for number in range(7):
        (work / f"{number}.png").write_bytes(png(800, 600, seed=number))
        await collect(chat.send(marked(f"look at @{number}.png")))
    sent = [message for message in runtime.provider.requests[-1].messages if message.role == "user"]
    assert pictures_of(sent)[-1] == png(800, 600, seed=6)
    assert len(pictures_of(sent)) < 5
    assert any("[picture omitted — ~" in message.text for message in sent)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (bomb(60_000), "60,000 × 60,000 pixels"),
        (SHOT[:200], "its end is missing"),
        (SHOT[:18], "its header is damaged"),
        (SHOT + b"x" * 4_000_000, "the limit is 3.8 MB"),
    ],
)
async def test_a_picture_that_cannot_be_sent_is_told_and_goes_as_its_name(
    tmp_path: Path, work: Path, data: bytes, why: str
) -> None:
    (work / "bad.png").write_bytes(data)
    chat, _ = open_chat(tmp_path, says("ok"))
    (line,) = [
        event.text for event in await collect(chat.send(marked("@bad.png"))) if isinstance(event, Noticed)
    ]
    assert why in line
    assert chat.session.messages[0].content == "@bad.png"


async def test_a_message_with_a_picture_that_is_taken_back_attaches_it_again(
    tmp_path: Path, work: Path
) -> None:
    chat, _ = open_chat(tmp_path, says("ok"))
    name = await chat.session.mentions.keep_picture(SHOT)
    await collect(chat.send(marked(f"look at @{name}")))
    taken = chat.session.history.undo()
    await collect(chat.send(as_typed(taken)))
    assert pictures_of(chat.session.messages) == [SHOT]


async def test_more_pictures_than_a_request_takes_are_refused(tmp_path: Path, work: Path) -> None:
    for number in range(5):
        (work / f"{number}.png").write_bytes(png(8, 8, number) + bytes(3_500_000))
    chat, _ = open_chat(tmp_path, says("ok"))
    with pytest.raises(AttachmentRefusedError, match="more than 15 MB together"):
        await collect(chat.send(marked("@0.png @1.png @2.png @3.png @4.png")))
    assert not chat.session.messages


async def test_exports_carry_embed_and_name_a_picture(tmp_path: Path, work: Path) -> None:
    chat, runtime = open_chat(tmp_path, says("ok"))
    await collect(chat.send(marked("@shot.txt")))
    info, messages = chat.session.info, runtime.store.branch(chat.session.info.id)
    address = picture_address(messages[0].content[1])  # type: ignore[arg-type]
    assert f'<img alt="" src="{address}">' in to_html(info, messages)
    assert "[picture: PNG, 800 × 600]" in to_markdown(info, messages)
    assert address not in to_markdown(info, messages)
    assert address in to_json(info, messages)
    (tmp_path / "chat.json").write_text(to_json(info, messages))
    (transcript,) = read_transcripts(tmp_path / "chat.json")
    first = replace(transcript, messages=transcript.messages[:1])
    again = import_transcript(runtime.store, first, "/else", rolling=False)
    assert again.info is not None
    assert pictures_of(runtime.store.branch(again.info.id)) == [SHOT]
    assert runtime.store.branch(again.info.id)[0].attachments == messages[0].attachments
