"""The pictures of messages: each is stored once, by its hash, however many messages have it."""

from __future__ import annotations

import sqlite3

from rolling_chat.messages import Message
from rolling_chat.pictures import data_uri
from rolling_chat.sessions.pictures_apart import put_back


def add(connection: sqlite3.Connection, message: int, pictures: dict[str, tuple[str, bytes]]) -> None:
    """Store the pictures of the message in row `message`."""
    for sha256, (media_type, data) in pictures.items():
        connection.execute("INSERT OR IGNORE INTO picture VALUES (?, ?, ?)", (sha256, media_type, data))
        connection.execute("INSERT OR IGNORE INTO picture_of VALUES (?, ?)", (message, sha256))


def take_out(connection: sqlite3.Connection, number: int, message: Message) -> Message:
    """Return the message in row `number` with its pictures."""
    # those of this message alone: an imported one may name any hash
    rows = connection.execute(
        "SELECT sha256, media_type, data FROM picture JOIN picture_of USING (sha256) WHERE message = ?",
        (number,),
    )
    pictures = {row["sha256"]: data_uri(row["media_type"], row["data"]) for row in rows}
    return put_back(message, pictures)


def drop_unused(connection: sqlite3.Connection) -> None:
    """Delete pictures that no message has any more."""
    connection.execute("DELETE FROM picture WHERE sha256 NOT IN (SELECT sha256 FROM picture_of)")
