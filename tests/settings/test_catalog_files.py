"""The files of the model catalog: what is kept of a table, and what is no table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.settings.catalog import ModelCatalog, load_catalog
from rolling_chat.settings.catalog_files import (
    CatalogError,
    CatalogFile,
    newest_catalog,
    read_catalog,
    reduce_table,
    write_catalog,
)


def table(**more: Any) -> dict[str, Any]:
    entry = {"mode": "chat", "litellm_provider": "x", "max_input_tokens": 1000}
    return {f"model-{number}": entry for number in range(100)} | more


def test_the_packaged_catalog_says_what_it_was_made_from_and_when() -> None:
    packaged = newest_catalog()
    assert packaged.source.startswith("litellm 1.")
    assert packaged.date >= "2026-11-23"
    assert len(packaged.models) > 3_000
    assert reduce_table(packaged.models) == packaged.models


def test_a_model_of_this_autumn_has_its_window_and_its_price() -> None:
    info = load_catalog().lookup("openai/gpt-6.1-terra")
    assert info is not None
    assert (info.max_input_tokens, info.prices.input, info.supports_vision) == (922_000, 1e-06, True)


def test_a_long_prompt_costs_more_where_the_table_says_so() -> None:
    info = load_catalog().lookup("openai/gpt-6.1-terra")
    assert info is not None
    assert [info.prices_of(tokens).input for tokens in (1_000, 272_000, 272_001)] == [1e-06, 1e-06, 2e-06]
    assert info.prices_of(300_000).output == 7.5e-06


@pytest.mark.parametrize(
    "data",
    [
        b"", b"not json", b"[]", b"{}", b'{"models": 3}', b'{"a": {"mode": "chat"}}', b"[" * 100_000,
        b'{"models": {"x": {"mode": "embedding"}}}',
    ],
)  # fmt: skip
def test_what_is_no_table_of_models_is_refused(data: bytes) -> None:
    with pytest.raises(CatalogError):
        read_catalog(data, source="", date="")


def test_figures_that_cannot_be_right_are_left_out() -> None:
    odd = {
        "mode": "chat",
        "max_input_tokens": -5,
        "max_output_tokens": 1e30,
        "input_cost_per_token": 12.0,
        "output_cost_per_token": True,
        "cache_read_input_token_cost": "cheap",
        "supports_vision": "yes",
        "run": "rm -rf /",
    }
    kept = reduce_table(table(odd=odd))
    assert kept["odd"] == {"mode": "chat", "litellm_provider": ""}


def test_what_was_written_is_read_again_and_the_newer_one_counts(tmp_path: Path) -> None:
    fetched = tmp_path / "models.json"
    models = reduce_table(table(mine={"mode": "chat", "max_input_tokens": 77}))
    write_catalog(fetched, CatalogFile("a mirror", "9999-01-01", models))
    assert newest_catalog(fetched) == CatalogFile("a mirror", "9999-01-01", models)
    assert fetched.stat().st_mode & 0o777 == 0o600
    older = tmp_path / "older.json"
    write_catalog(older, CatalogFile("a mirror", "2020-01-01", models))
    assert newest_catalog(older) == newest_catalog()


@pytest.mark.parametrize("text", ["", "{}", "[1]", json.dumps({"source": 1, "date": 2, "models": 3})])
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    damaged = tmp_path / "models.json"
    damaged.write_text(text)
    assert newest_catalog(damaged) == newest_catalog()
    assert ModelCatalog(newest_catalog(damaged).models).lookup("gpt-4o") is not None
