"""Build requests in the format of OpenAI's chat completions, for OpenAI and compatible servers.

The request is the same that litellm would send; a test compares the two. A request that litellm would change
in an unknown way is sent by litellm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rolling_chat.messages import Json, JsonObject
from rolling_chat.providers.model_ref import ModelRef


@dataclass(frozen=True, slots=True)
class _Server:
    """A provider that accepts OpenAI's format as it is.

    `base` is its default address, empty if the user must give one. `key` is a variable for its key that
    litellm reads besides those in `KNOWN_PROVIDERS`. `text_only` means that litellm rewrites messages with
    parts. `needs_key` means that litellm reports a missing key. `is_openai` marks OpenAI and proxies in front
    of it, which alone receive the account's organization and project.
    """

    base: str = ""
    key: str = ""
    text_only: bool = False
    needs_key: bool = True
    is_openai: bool = False
    extra: tuple[tuple[str, Json], ...] = ()


# the addresses are litellm's
_SERVERS: Mapping[str, _Server] = {
    "openai": _Server("https://api.openai.com/v1", is_openai=True),
    "custom_openai": _Server(is_openai=True),
    "litellm_proxy": _Server(is_openai=True),
    "hosted_vllm": _Server(key="HOSTED_VLLM_API_KEY", needs_key=False),
    "lm_studio": _Server(key="LM_STUDIO_API_KEY", needs_key=False),
    "llamafile": _Server("http://127.0.0.1:8080/v1", key="LLAMAFILE_API_KEY", needs_key=False),
    "groq": _Server("https://api.groq.com/openai/v1"),
    "openrouter": _Server("https://openrouter.ai/api/v1", extra=(("usage", {"include": True}),)),
    "deepseek": _Server("https://api.deepseek.com/beta", text_only=True),
    "dashscope": _Server("https://dashscope.aliyuncs.com/compatible-mode/v1"),
    "zai": _Server("https://api.z.ai/api/paas/v4"),
    "together_ai": _Server("https://api.together.ai/v1"),
    "novita": _Server("https://api.novita.ai/v3/openai"),
}
# names of OpenAI's reasoning models, which have their own rules; the newest use another API
_REASONING_NAME = re.compile(
    r"(?:^|/)(?:gpt-?(?:[5-9]|\d\d)|o\d|responses/|codex|computer-use)", re.IGNORECASE
)
_KNOWN_FIELDS = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content"})
# the arguments that are copied into the body; `api_base` and `api_key` determine where it is sent
_SENT = ("tools", "tool_choice", "max_tokens", "prompt_cache_key")
_ARGUMENTS = frozenset({"model", "messages", "api_base", "api_key", *_SENT})
# schema keywords that litellm rewrites for some servers
_REWRITTEN = frozenset({"oneOf", "anyOf", "allOf", "enum", "const", "not"})


def openai_url(arguments: Mapping[str, Any]) -> str:
    """Return the URL of a request in OpenAI's format; empty if it is not known."""
    server = _SERVERS.get(ModelRef.parse(arguments["model"]).provider)
    base = str(arguments.get("api_base") or (server.base if server else ""))
    if server is None or not base:
        return ""
    return base if base.endswith("/chat/completions") else f"{base.rstrip('/')}/chat/completions"


def openai_headers(arguments: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, str] | None:
    """Return the authentication headers; None if a key is missing."""
    server = _SERVERS[ModelRef.parse(arguments["model"]).provider]
    key = arguments.get("api_key") or environ.get(server.key, "").strip()
    if server.needs_key and not key:
        return None
    headers = {"authorization": f"Bearer {key}" if key else ""}
    if server.is_openai:
        headers |= {
            "openai-organization": environ.get("OPENAI_ORGANIZATION") or environ.get("OPENAI_ORG_ID") or "",
            "openai-project": environ.get("OPENAI_PROJECT_ID", ""),
        }
    return {name: value for name, value in headers.items() if value}


def openai_body(arguments: Mapping[str, Any]) -> JsonObject | None:
    """Return the body of a request; None if litellm would send a different one."""
    ref = ModelRef.parse(arguments["model"])
    server = _SERVERS[ref.provider]
    if _REASONING_NAME.search(ref.name) or not _ARGUMENTS.issuperset(arguments):
        return None
    if not all(_is_plain(message, text_only=server.text_only) for message in arguments["messages"]):
        return None
    if not all(map(_is_plain_tool, arguments.get("tools") or ())):
        return None
    sent = {name: arguments[name] for name in _SENT if name in arguments}
    return {
        "model": ref.name,
        # a message with calls may have no content: litellm then leaves the field out
        "messages": [
            {name: value for name, value in message.items() if value is not None}
            for message in arguments["messages"]
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        **sent,
        **dict(server.extra),
    }


def _is_plain(message: JsonObject, *, text_only: bool) -> bool:
    """Return whether a message is sent unchanged: no cache marks, no parts but a user's text and pictures."""
    if not _KNOWN_FIELDS.issuperset(message):
        return False
    content = message.get("content")
    if isinstance(content, str) or content is None:
        return all(set(call) == {"id", "type", "function"} for call in message.get("tool_calls") or ())
    return not text_only and message.get("role") == "user" and all(map(_is_plain_part, content))


def _is_plain_part(part: JsonObject) -> bool:
    if part.get("type") == "text":
        return set(part) == {"type", "text"}
    picture = part.get("image_url")
    return (
        set(part) == {"type", "image_url"} and isinstance(picture, dict) and {"url", "detail"} >= set(picture)
    )


def _is_plain_tool(tool: JsonObject) -> bool:
    """Return whether a tool is sent unchanged: no cache marks, and no schema that litellm rewrites."""
    if set(tool) != {"type", "function"}:
        return False
    parameters = tool["function"].get("parameters") or {}
    return not _REWRITTEN & set(parameters) and not _has_pattern(parameters)


def _has_pattern(schema: Json) -> bool:
    """Return whether a schema contains a regular expression; a property may also be named `pattern`."""
    match schema:
        case {"pattern": str()}:
            return True
        case dict():
            return any(map(_has_pattern, schema.values()))
        case list():
            return any(map(_has_pattern, schema))
        case _:
            return False
