"""Messages without their pictures, and whole again: a store keeps each picture once, by its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from rolling_chat.messages import JsonObject, Message, has_pictures, is_picture, picture_address, picture_part
from rolling_chat.pictures import split_data_uri

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


def put_back(message: Message, pictures: Mapping[str, str]) -> Message:
    """Return a message with its pictures again: their addresses by hash."""
    assert not isinstance(message.content, str)
    return replace(message, content=tuple(_put_part_back(part, pictures) for part in message.content))


def _put_part_back(part: JsonObject, pictures: Mapping[str, str]) -> JsonObject:
    address = picture_address(part) if is_picture(part) else ""
    if not address.startswith(_KEPT):
        return part
    picture = pictures.get(address.removeprefix(_KEPT))
    return picture_part(picture) if picture is not None else {"type": "text", "text": _LOST}
