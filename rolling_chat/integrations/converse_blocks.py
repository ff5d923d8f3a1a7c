"""Convert messages from and to Bedrock's Converse format, which Strands uses for every model."""

from __future__ import annotations

import json
from typing import Any

from rolling_chat.integrations.window import SIGNED, Planned, answer, content_of, picture, result


def parts_of(content: Any) -> list[list[Any]]:
    """Group the blocks of a message into those that become separate messages: each result, and all others."""
    parts: list[list[Any]] = []
    for block in content:
        belongs_to_group = "cachePoint" in block or (
            "toolResult" not in block and parts and "toolResult" not in parts[-1][0]
        )
        if parts and belongs_to_group:
            parts[-1].append(block)
        else:
            parts.append([block])
    return parts


def message_of(role: str, blocks: list[Any]) -> dict[str, Any]:
    """Convert the blocks of one group to a message in OpenAI's format."""
    found = blocks[0].get("toolResult")
    if found:
        return result(found["toolUseId"], content_of_blocks(found["content"]))
    if role != "assistant":
        return {"role": role, "content": content_of_blocks(blocks)}
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    calls = [(use["toolUseId"], use["name"], json.dumps(use["input"])) for use in uses]
    signed = [str(part) for part in _texts(blocks) if not isinstance(part, str) and "toolUse" not in part]
    said = answer("\n\n".join(part for part in _texts(blocks) if isinstance(part, str)), calls)
    return {**said, SIGNED: signed} if signed else said


def content_of_blocks(blocks: list[Any]) -> Any:
    """Convert blocks to content in OpenAI's format."""
    return content_of([_pictured(part) for part in _texts(blocks)])


def _texts(blocks: list[Any]) -> list[Any]:
    """Return text blocks as strings, and other blocks unchanged, without cache marks."""
    values = [json.dumps(block["json"]) if "json" in block else block.get("text", block) for block in blocks]
    return [value for value in values if isinstance(value, str) or "cachePoint" not in value]


def _pictured(block: Any) -> Any:
    match block:
        case {"image": {"format": kind, "source": {"bytes": bytes(data)}}}:
            return picture(f"image/{kind}", data)
    return block


def blocks_of(planned: Planned, blocks: list[Any]) -> list[Any]:
    """Return the blocks of a message, with shortened text or arguments if necessary."""
    if planned.index < 0:
        return [{"text": planned.cut(())[0]}]
    if planned.is_same:
        return blocks
    if planned.message["role"] == "assistant":
        return [_shortened(block, planned) for block in blocks]
    found = blocks[0].get("toolResult")
    text, others = planned.cut(_texts(found["content"] if found else blocks))
    shortened = [{"text": text}, *others]
    return [{"toolResult": {**found, "content": shortened}}, *blocks[1:]] if found else shortened


def _shortened(block: Any, planned: Planned) -> Any:
    use = block.get("toolUse")
    if use is None:
        return block
    return {"toolUse": {**use, "input": json.loads(planned.arguments(use["toolUseId"], "{}"))}}
