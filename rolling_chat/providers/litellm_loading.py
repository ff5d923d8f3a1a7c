"""Load litellm late, once, and without output on the terminal.

Its import takes seconds, downloads tables that it also ships, loads a `.env` file, and logs to the terminal.
Environment variables that are set before the import prevent all of this.
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

from rolling_chat.gc_tuning import without_collection
from rolling_chat.private_files import PrivateFileHandler
from rolling_chat.redaction import RedactingFilter

_BEFORE_IMPORT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it downloads its model table
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",  # else it loads a .env
    "LITELLM_LOG": "ERROR",
}
_LITELLM_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "LiteLLM Proxy Stdout")
# Libraries that litellm uses. Without a handler, their warnings would be printed to stderr.
_OTHER_LOGGERS = ("httpx", "httpcore", "openai", "aiohttp", "asyncio", "botocore", "urllib3")

# Modules that litellm would import at its first request, for more than half a second, on the event loop.
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
    """Import litellm and silence it; about 2.5 seconds the first time, no time after that.

    Its log is written to `log_file`, without `secrets`; it is discarded if the file is None or cannot be
    written. Thread-safe.
    """
    global _loaded  # noqa: PLW0603  # one import per process, as with any module
    with _lock:
        if _loaded is None:
            os.environ.update(_BEFORE_IMPORT)
            _route_logs(log_file, secrets)
            with without_collection():
                # before the import, because litellm creates clients during it
                importlib.import_module("rolling_chat.providers.redirects").refuse_redirects()
                module = importlib.import_module("litellm")
                _route_logs(log_file, secrets)  # the import added litellm's own handlers
                _make_quiet(module)
                _limit_answers()
                _build_models(module)
                _load_late_parts()
            _loaded = module
    return _loaded


async def warm_up(litellm: Any) -> None:
    """Make a request that never leaves the process: a process's first request takes 0.6 seconds longer."""
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
    await asyncio.sleep(0)  # let litellm's log task finish, so that none is left when the loop closes


async def close_connections(litellm: Any) -> None:
    """Close every connection that litellm keeps open, and drop its clients."""
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()
    # the client for Anthropic and Gemini is in no cache; litellm creates another when needed
    shared = vars(litellm).pop("module_level_aclient", None)
    if shared is not None:
        await shared.close()


def _make_quiet(litellm: Any) -> None:
    litellm.suppress_debug_info = True  # otherwise it prints to the terminal
    litellm.disable_hf_tokenizer_download = True  # otherwise "llama-3" in a name causes a download
    litellm.disable_token_counter = True  # otherwise it invents usage if a provider reports none
    litellm.telemetry = False
    # with httpx's own connections, a cancelled request closes its socket at once, and no unclosed session is
    # left for the garbage collector to warn about
    litellm.disable_aiohttp_transport = True


def _limit_answers() -> None:
    """Limit what litellm's future HTTP clients accept from a server."""
    limits = importlib.import_module("rolling_chat.providers.answer_limits")  # imports httpx
    handler = importlib.import_module("litellm.llms.custom_httpx.http_handler").AsyncHTTPHandler
    handler.create_client = limits.limit_answers(handler.create_client)
    openai = importlib.import_module("litellm.llms.openai.common_utils").BaseOpenAILLM
    maker = "_get_async_http_client"
    setattr(openai, maker, staticmethod(limits.limit_answers(getattr(openai, maker))))


def _build_models(litellm: Any) -> None:
    """Build the types of streams now; on first use, they would take time and print warnings."""
    types = importlib.import_module("litellm.types.utils")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("Delta", "StreamingChoices", "ModelResponseStream", "ModelResponse", "Usage"):
            getattr(types, name).model_rebuild()
        litellm.Message()


def _load_late_parts() -> None:
    for name in _LATE_PARTS:
        with contextlib.suppress(ImportError):  # another version may not have this module
            importlib.import_module(name)


def _route_logs(log_file: Path | None, secrets: Iterable[str]) -> None:
    handler = _open_log(log_file)
    handler.addFilter(RedactingFilter(secrets))
    for name in _LITELLM_LOGGERS:
        logger = logging.getLogger(name)
        for old in tuple(logger.handlers):
            logger.removeHandler(old)
        logger.addHandler(handler)
        logger.propagate = False
        logger.setLevel(logging.WARNING)
    for name in _OTHER_LOGGERS:
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
