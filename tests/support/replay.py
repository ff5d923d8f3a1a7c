"""Transcripts for the replay: written to files, and replayed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rolling_chat.context import ContextConfig
from rolling_chat.messages import Message
from rolling_chat.replay import Replayed, Transcript, replay
from tests.support.conversations import assistant, tool, user

SYSTEM = {"role": "system", "content": "You are a careful assistant."}


def long_conversation(turns: int = 12, words: int = 300) -> list[dict[str, Any]]:
    """Turns with a call, a result of `words` words and an answer each."""
    messages: list[dict[str, Any]] = [SYSTEM]
    for turn in range(turns):
        messages += [
            user(f"Question {turn}?"),
            assistant("", (f"call{turn}", "read_file")),
            tool(f"call{turn}", f"line of file {turn} " * words),
            assistant(f"Answer {turn}."),
        ]
    return messages


def transcript(messages: Sequence[dict[str, Any]], id: str = "talk") -> Transcript:
    """`messages` as if they had been read from a file."""
    return Transcript(id, tuple(map(Message.from_dict, messages)), tuple(messages))


def replayed(messages: Sequence[dict[str, Any]], **settings: Any) -> list[Replayed]:
    """Every request of `messages`, under these settings."""
    return list(replay(transcript(messages), ContextConfig(**settings)))


def write_lines(path: Path, *values: object) -> Path:
    """`values` as JSONL, packed where the name ends in .gz."""
    text = "".join(f"{json.dumps(value)}\n" for value in values).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path
