"""Small real pictures, made of bytes."""

from __future__ import annotations

import struct
import zlib


def png(width: int, height: int, seed: int = 0) -> bytes:
    """A PNG of one gray."""
    rows = (b"\0" + bytes([seed % 256]) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def bomb(side: int) -> bytes:
    """A PNG that says that it is `side` pixels wide and high, and is a few bytes."""
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def gif(width: int, height: int) -> bytes:
    """The frame of a GIF."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def jpeg(width: int, height: int, before: int = 0) -> bytes:
    """The segments of a JPEG, with `before` bytes of a comment above its size."""
    comment = b"".join(
        b"\xff\xfe" + struct.pack(">H", size + 2) + b"x" * size
        for size in [60_000] * (before // 60_000) + [before % 60_000]
    )
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
    return b"\xff\xd8" + comment + frame + b"\xff\xd9"


def webp(width: int, height: int, kind: bytes = b"VP8X") -> bytes:
    """The header of a WebP of one of its three kinds."""
    match kind:
        case b"VP8X":
            body = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        case b"VP8L":
            body = b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little") + bytes(8)
        case _:
            body = bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height)
    chunk = kind + len(body).to_bytes(4, "little") + body
    return b"RIFF" + (4 + len(chunk)).to_bytes(4, "little") + b"WEBP" + chunk


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
