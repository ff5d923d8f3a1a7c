"""Fixtures for the tests of providers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, get_args

import pytest
import pytest_asyncio

from rolling_chat.context_keys import Direct
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.retries import RetryPolicy
from rolling_chat.settings.catalog import ModelCatalog, load_catalog

MakeProvider = Callable[..., ModelProvider]


@pytest.fixture(scope="session")
def catalog() -> ModelCatalog:
    return load_catalog()


@pytest.fixture(autouse=True)
def _no_waiting_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLING_CHAT_OFFLINE_DELAY", "0")


@pytest.fixture(params=get_args(Direct))
def direct(request: pytest.FixtureRequest) -> Direct:
    """Both ways: what holds for one holds for the other."""
    way: Direct = request.param
    return way


@pytest_asyncio.fixture
async def make_provider(catalog: ModelCatalog, direct: Direct) -> AsyncIterator[MakeProvider]:
    """Providers that do not wait long before they try again, and leave no connection behind."""
    made: list[ModelProvider] = []

    def make(environ: Mapping[str, str] | None = None, **options: Any) -> ModelProvider:
        options.setdefault("retries", RetryPolicy(base=0.001))
        options.setdefault("direct", direct)
        provider = ModelProvider(environ=environ or {}, catalog=catalog, **options)
        made.append(provider)
        return provider

    yield make
    for provider in made:
        await provider.close()


@pytest.fixture
def provider(make_provider: MakeProvider) -> ModelProvider:
    return make_provider()
