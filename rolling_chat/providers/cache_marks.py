"""Set Anthropic's cache marks: at most four `cache_control` marks a request.

They are set on the last tool, the end of the stable system text, the last message, and the last message of
the previous request if that is far back. The provider looks for a cached prefix only about 20 blocks before a
mark, so a turn with many tool calls would otherwise lose the prefix that it cached.
"""

from __future__ import annotations

from rolling_chat.context_keys import CacheTtl
from rolling_chat.messages import Json

# Anthropic looks back 20 blocks from a mark; https://docs.claude.com/en/docs/build-with-claude/prompt-caching
_FAR_BACK = 15


def mark_tools(tools: list[dict[str, Json]], ttl: CacheTtl = "5m") -> list[dict[str, Json]]:
    """Mark the last tool for Anthropic's prompt cache."""
    if not tools:
        return tools
    return [*tools[:-1], {**tools[-1], "cache_control": _mark_for(ttl)}]


def mark_messages(
    wire: list[dict[str, Json]], *, stable_system_chars: int, previous: int | None, ttl: CacheTtl = "5m"
) -> None:
    """Add Anthropic's prompt-cache marks to `wire`, in place.

    `previous` is the current index of the previous request's last message. All marks of a request use the
    same time to live, because a longer one may not follow a shorter one.
    """
    if not wire:
        return
    if wire[0]["role"] == "system":
        _mark_system(wire[0], stable_system_chars, ttl)
    last = _markable_at_or_before(wire, len(wire) - 1)
    if last is None:
        return
    if previous is not None and previous < last:
        earlier = _markable_at_or_before(wire, previous)
        if earlier is not None and sum(map(_blocks, wire[earlier + 1 :])) > _FAR_BACK:
            _mark(wire[earlier], ttl)
    _mark(wire[last], ttl)


def _mark_for(ttl: CacheTtl) -> dict[str, Json]:
    """Return a mark; the default of five minutes is not named."""
    return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}


def _mark_system(message: dict[str, Json], stable_chars: int, ttl: CacheTtl) -> None:
    text = message["content"]
    if not isinstance(text, str) or not text:
        return
    stable = text[:stable_chars] if 0 < stable_chars < len(text) else text
    rest = text[len(stable) :]
    message["content"] = [{"type": "text", "text": stable, "cache_control": _mark_for(ttl)}]
    if rest:
        message["content"].append({"type": "text", "text": rest})


def _markable_at_or_before(wire: list[dict[str, Json]], last: int) -> int | None:
    return next((index for index in range(last, -1, -1) if _is_markable(wire[index])), None)


def _is_markable(message: dict[str, Json]) -> bool:
    """Return whether a message can carry a mark: text can, tool calls alone cannot on every endpoint."""
    return message["role"] != "system" and bool(message.get("content"))


def _mark(message: dict[str, Json], ttl: CacheTtl) -> None:
    if message["role"] == "tool":
        message["cache_control"] = _mark_for(ttl)  # becomes the mark of the whole result block
        return
    content = message["content"]
    parts: list[dict[str, Json]] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else [dict(part) for part in content]
    )
    parts[-1]["cache_control"] = _mark_for(ttl)
    message["content"] = parts


def _blocks(message: dict[str, Json]) -> int:
    content = message.get("content")
    texts = len(content) if isinstance(content, list) else bool(content)
    return texts + len(message.get("tool_calls") or ()) + len(message.get("thinking_blocks") or ())
