"""The pictures of messages: each is stored once, by its hash, however many messages have it."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from dataclasses import replace

from rolling_chat.messages import JsonObject, Message, has_pictures, is_picture, picture_address, picture_part
from rolling_chat.pictures import data_uri, split_data_uri
from rolling_chat.sessions.rows import message_number

_KEPT = "picture:"  # in place of the address that contains a picture; its hash follows
_LOST = "[this picture is lost]"


def put_away(message: Message) -> tuple[Message, dict[str, tuple[str, bytes]]]:
    """Return a message with hashes in place of its pictures, and those: media type and data by hash."""
    if not has_pictures(message) or isinstance(message.content, str):
        return message, {}
    kept: dict[str, tuple[str, bytes]] = {}
    parts = tuple(_put_part_away(part, kept) if is_picture(part) else part for part in message.content)
    return (replace(message, content=parts), kept) if kept else (message, {})


def _put_part_away(part: JsonObject, kept: dict[str, tuple[str, bytes]]) -> JsonObject:
    address = picture_address(part)
    found = split_data_uri(address)
    # what else the part says is the sender's, and stays with it
    if found is None or dict(part) != picture_part(address):
        return part
    before, data = found
    sha256 = hashlib.sha256(data).hexdigest()
    kept[sha256] = (before.removeprefix("data:").removesuffix(";base64,"), data)
    return picture_part(_KEPT + sha256)


def add(connection: sqlite3.Connection, message: int, pictures: dict[str, tuple[str, bytes]]) -> None:
    """Store the pictures of the message in row `message`."""
    for sha256, (media_type, data) in pictures.items():
        connection.execute("INSERT OR IGNORE INTO picture VALUES (?, ?, ?)", (sha256, media_type, data))
        connection.execute("INSERT OR IGNORE INTO picture_of VALUES (?, ?)", (message, sha256))


def take_out(connection: sqlite3.Connection, messages: Iterable[Message]) -> list[Message]:
    """Return stored messages with their pictures."""
    return [_with_pictures(connection, one) if has_pictures(one) else one for one in messages]


def _with_pictures(connection: sqlite3.Connection, message: Message) -> Message:
    # those of this message alone: an imported one may name any hash
    rows = connection.execute(
        "SELECT sha256, media_type, data FROM picture JOIN picture_of USING (sha256) WHERE message = ?",
        (message_number(message.id),),
    )
    pictures = {row["sha256"]: data_uri(row["media_type"], row["data"]) for row in rows}
    assert not isinstance(message.content, str)
    parts = tuple(_taken_out(part, pictures) for part in message.content)
    return replace(message, content=parts)


def _taken_out(part: JsonObject, pictures: dict[str, str]) -> JsonObject:
    address = picture_address(part) if is_picture(part) else ""
    if not address.startswith(_KEPT):
        return part
    picture = pictures.get(address.removeprefix(_KEPT))
    return picture_part(picture) if picture is not None else {"type": "text", "text": _LOST}


def drop_unused(connection: sqlite3.Connection) -> None:
    """Delete pictures that no message has any more."""
    connection.execute("DELETE FROM picture WHERE sha256 NOT IN (SELECT sha256 FROM picture_of)")
