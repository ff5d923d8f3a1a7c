"""Build the questions that ask Anthropic and Gemini for the token count of a request, in their own formats.

A count is only right for exactly the body that will be sent, so the body is made by the code that makes the
request.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rolling_chat.messages import JsonObject
from rolling_chat.providers.addresses import token_counter
from rolling_chat.providers.direct.anthropic_request import anthropic_body, anthropic_headers, anthropic_url
from rolling_chat.providers.model_ref import ModelRef

_OPTIONS = ("tools", "tool_choice", "reasoning_effort", "max_tokens")
# the parts of a request that count_tokens accepts, according to its documentation
_COUNTED_BY_ANTHROPIC = ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config")


@dataclass(frozen=True, slots=True)
class NativeQuestion:
    """A question for the token count of a request: its URL, headers and body."""

    url: str
    headers: Mapping[str, str]
    body: JsonObject


def needs_litellm(arguments: Mapping[str, Any]) -> bool:
    """Return whether only litellm can build the question for a request with `arguments`."""
    match token_counter(arguments["model"], arguments.get("api_base")):
        case "anthropic":
            return _direct_body(arguments) is None
        case "gemini":
            return True
        case _:
            return False


def anthropic_question(arguments: Mapping[str, Any]) -> NativeQuestion:
    """Return the question for Anthropic's `count_tokens` from the arguments of a litellm request.

    Imports litellm if needed. Raises whatever litellm raises for a request that it cannot convert.
    """
    body = _direct_body(arguments)
    headers: Mapping[str, str]
    if body is None:
        headers, body = _litellm_request(arguments)
    else:
        headers = anthropic_headers(arguments)
    return NativeQuestion(
        f"{anthropic_url(arguments)}/count_tokens",
        headers,
        {key: body[key] for key in _COUNTED_BY_ANTHROPIC if key in body},
    )


def gemini_question(arguments: Mapping[str, Any]) -> NativeQuestion:
    """Return the question for Gemini's `countTokens` from the arguments of a litellm request.

    Imports litellm. Raises whatever litellm raises for a request that it cannot convert.
    """
    name, base = _name(arguments), arguments.get("api_base")
    gemini = importlib.import_module("litellm.llms.vertex_ai.gemini.transformation")
    body = gemini._transform_request_body(  # noqa: SLF001  # the only function that builds it
        messages=copy.deepcopy(arguments["messages"]), model=name,
        optional_params=_options(arguments, "gemini"), custom_llm_provider="gemini", litellm_params={},
        cached_content=None,
    )  # fmt: skip
    if base:
        url = f"{base}/models/{name}:countTokens"
    else:
        addresses = importlib.import_module("litellm.llms.vertex_ai.common_utils")
        chat, _ = addresses._get_gemini_url(mode="chat", model=name, stream=False)  # noqa: SLF001
        url = f"{chat.rpartition(':')[0]}:countTokens"
    headers = {"content-type": "application/json", "x-goog-api-key": str(arguments.get("api_key") or "")}
    return NativeQuestion(url, headers, {"generateContentRequest": {"model": f"models/{name}", **body}})


def _direct_body(arguments: Mapping[str, Any]) -> JsonObject | None:
    return anthropic_body(arguments, output_limit=1)  # the value does not matter: the limit is not counted


def _litellm_request(arguments: Mapping[str, Any]) -> tuple[Mapping[str, str], JsonObject]:
    name, messages = _name(arguments), copy.deepcopy(arguments["messages"])
    options = _options(arguments, "anthropic")
    config = importlib.import_module("litellm.llms.anthropic.chat.transformation").AnthropicConfig()
    headers = config.validate_environment(
        headers={}, model=name, messages=messages, optional_params=options, litellm_params={},
        api_key=arguments.get("api_key"), api_base=anthropic_url(arguments),
    )  # fmt: skip
    body = config.transform_request(
        model=name, messages=messages, optional_params=options, litellm_params={}, headers=headers
    )
    return headers, body


def _name(arguments: Mapping[str, Any]) -> str:
    return ModelRef.parse(arguments["model"]).name


def _options(arguments: Mapping[str, Any], provider: str) -> dict[str, Any]:
    """Return the options in the provider's own format, without those that it does not support."""
    utils = importlib.import_module("litellm.utils")
    arguments_given = {key: copy.deepcopy(arguments[key]) for key in _OPTIONS if key in arguments}
    options: dict[str, Any] = utils.get_optional_params(
        model=_name(arguments), custom_llm_provider=provider, messages=arguments["messages"],
        drop_params=True, **arguments_given,
    )  # fmt: skip
    return options
