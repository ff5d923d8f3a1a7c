"""Loading litellm late, once, and without a word on the terminal.

Its import takes seconds, asks the network for tables that it carries, loads a `.env` that it finds,
and logs to the terminal, all of which environment variables set before the import prevent.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import threading
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from rolling_chat.gc_tuning import kept_to_the_end
from rolling_chat.private_files import PrivateFileHandler
from rolling_chat.redaction import RedactingFilter

_BEFORE_IMPORT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it downloads its model table
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",  # else it loads a .env
    "LITELLM_LOG": "ERROR",
}
_ITS_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "LiteLLM Proxy Stdout")
# What it works with. Without a handler, their warnings would be printed to stderr.
_NEIGHBORS = ("httpx", "httpcore", "openai", "aiohttp", "asyncio", "botocore", "urllib3")

# What litellm would import at its first request, for more than half a second, on the event loop.
_LATE_PARTS = (
    "openai.resources",
    "litellm._service_logger",
    "litellm.integrations.prometheus_services",
    "litellm.llms.litellm_proxy.chat.transformation",
    "litellm.llms.openai_like.dynamic_config",
)

_lock = threading.Lock()
_loaded: ModuleType | None = None


def load_litellm(log_file: Path | None, secrets: Iterable[str] = ()) -> ModuleType:
    """Import litellm and silence it; some 2.5 seconds the first time, nothing after.

    Its log goes to `log_file`, or nowhere where that is None or cannot be written; none of `secrets`
    gets into it. Safe to call from any thread.
    """
    global _loaded  # noqa: PLW0603  # one import in a process, as with every module
    with _lock:
        if _loaded is None:
            os.environ.update(_BEFORE_IMPORT)
            _route_logs(log_file, secrets)
            with kept_to_the_end():
                # first: litellm makes clients while it is imported
                importlib.import_module("rolling_chat.providers.redirects").refuse_redirects()
                module = importlib.import_module("litellm")
                _route_logs(log_file, secrets)  # its own handlers write to the terminal, and came with it
                _make_quiet(module)
                _limit_answers()
                _build_models(module)
                _load_late_parts()
            _loaded = module
    return _loaded


async def warm_up(litellm: Any) -> None:
    """Make a request that never leaves the process: the first one of a process costs 0.6 seconds more."""
    stream = await litellm.acompletion(
        model="openai/warm-up",
        messages=[{"role": "user", "content": "."}],
        mock_response=".",
        stream=True,
        api_key="none",
        num_retries=0,
    )
    async for _chunk in stream:
        pass
    await asyncio.sleep(0)  # its own log task, so that none is left when the loop closes


async def close_connections(litellm: Any) -> None:
    """Close every connection that litellm keeps for later, and forget its clients."""
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()
    # the one for Anthropic and Gemini is in no cache; litellm makes another when it is asked for
    shared = vars(litellm).pop("module_level_aclient", None)
    if shared is not None:
        await shared.close()


def _make_quiet(litellm: Any) -> None:
    litellm.suppress_debug_info = True  # else it prints into the terminal
    litellm.disable_hf_tokenizer_download = True  # else "llama-3" in a name asks the network
    litellm.disable_token_counter = True  # else it makes usage up where a provider reports none
    litellm.telemetry = False
    # httpx's own connections: a cancelled request closes its socket at once, and no session is left
    # for the garbage collector to complain of
    litellm.disable_aiohttp_transport = True


def _limit_answers() -> None:
    """Limit what the HTTP clients that litellm will make take from a server."""
    limits = importlib.import_module("rolling_chat.providers.answer_limits")  # it needs httpx
    handler = importlib.import_module("litellm.llms.custom_httpx.http_handler").AsyncHTTPHandler
    handler.create_client = limits.limit_answers(handler.create_client)
    openai = importlib.import_module("litellm.llms.openai.common_utils").BaseOpenAILLM
    maker = "_get_async_http_client"
    setattr(openai, maker, staticmethod(limits.limit_answers(getattr(openai, maker))))


def _build_models(litellm: Any) -> None:
    """Build the types of every stream now: at their first use they would take time, and print warnings."""
    types = importlib.import_module("litellm.types.utils")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("Delta", "StreamingChoices", "ModelResponseStream", "ModelResponse", "Usage"):
            getattr(types, name).model_rebuild()
        litellm.Message()


def _load_late_parts() -> None:
    for name in _LATE_PARTS:
        with contextlib.suppress(ImportError):  # another version may have it elsewhere
            importlib.import_module(name)


def _route_logs(log_file: Path | None, secrets: Iterable[str]) -> None:
    handler = _open_log(log_file)
    handler.addFilter(RedactingFilter(secrets))
    for name in _ITS_LOGGERS:
        logger = logging.getLogger(name)
        for old in tuple(logger.handlers):
            logger.removeHandler(old)
        logger.addHandler(handler)
        logger.propagate = False
        logger.setLevel(logging.WARNING)
    for name in _NEIGHBORS:
        logger = logging.getLogger(name)
        if not any(isinstance(known, logging.NullHandler) for known in logger.handlers):
            logger.addHandler(logging.NullHandler())


def _open_log(log_file: Path | None) -> logging.Handler:
    if log_file is None:
        return logging.NullHandler()
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = PrivateFileHandler(log_file, encoding="utf-8", delay=True, errors="replace")
    except OSError:
        return logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    return handler
