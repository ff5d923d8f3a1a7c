"""`rolling-chat models`: what can be reached, and a newer catalog."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rolling_chat.cli import models as command
from rolling_chat.providers.local_servers import FoundServer
from rolling_chat.providers.served import ServedModel
from tests.support.json_server import json_server
from tests.support.program import Program

HERE = "http://127.0.0.1:8080/v1"


@pytest.fixture(autouse=True)
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens to run on this machine stays out of it."""
    found = FoundServer("llama.cpp", HERE, [ServedModel("openai/mine", 4_096, source="it")])
    monkeypatch.setattr(command, "find_servers", lambda _environ: [found])


def test_what_can_be_reached_comes_first_and_each_figure_says_where_it_is_from(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "x")
    listed = {row["name"]: row for row in program("models", "--json").json}
    names = list(listed)
    assert listed["openai/mine"] | {"reached_by": ""} == {
        "name": "openai/mine", "reached_by": "", "needs": None, "window": 4_096, "window_from": "it",
        "max_output": None, "input_price": None, "output_price": None, "cache_read_price": None,
        "cache_write_price": None, "prices_from": None, "tools": None, "vision": None, "reasoning": None,
    }  # fmt: skip
    assert listed["mistral/mistral-large-latest"]["reached_by"] == "MISTRAL_API_KEY"
    assert listed["mistral/mistral-large-latest"]["prices_from"] == "catalog"
    assert listed["demo/offline"]["window"] == 8_192
    assert listed["openai/gpt-5.4"]["needs"] == "OPENAI_API_KEY"
    assert names.index("demo/offline") < names.index("openai/gpt-5.4")


def test_the_table_says_unknown_and_never_0(program: Program) -> None:
    ran = program("models", "mine")
    row = next(line for line in ran.out.splitlines() if "openai/mine" in line)
    assert row.split() == ["openai/mine", "4.1k", *["unknown"] * 4, *f"llama.cpp at {HERE} · it".split()]
    assert "models from litellm 1." in ran.out


def _table(models: int) -> dict[str, Any]:
    entry = {"mode": "chat", "litellm_provider": "new", "max_input_tokens": 5_000}
    return {f"new/model-{number}": entry for number in range(models)}


def test_a_newer_catalog_is_fetched_kept_and_used(program: Program) -> None:
    with json_server({"/table.json": _table(150)}) as server:
        ran = program("models", "--refresh", "-c", f'catalog_address="{server.address}/table.json"')
    assert ran.out.startswith("Fetched the catalog: 150 models from 127.0.0.1, 20")
    assert program("models", "--json", "-c", 'model="new/model-7"').code == 0
    doctor = program("doctor", "--model", "openai/model-7").out
    assert "5,000 tokens" in doctor
    assert "150 models from 127.0.0.1" in doctor


@pytest.mark.parametrize("answer", [404, b"", b"{}", b"\x00" * 10, json.dumps(_table(3)).encode()])
def test_what_is_no_catalog_is_refused_and_the_one_before_stays(program: Program, answer: Any) -> None:
    with json_server({"/table.json": answer}) as server:
        ran = program("models", "--refresh", "-c", f'catalog_address="{server.address}/table.json"')
    assert ran.code == 1
    assert ran.err.startswith("rolling-chat: no catalog was taken from http://127.0.0.1:")
    assert "still used: 3," in ran.err
    assert not (program.home / "rolling-chat" / "models.json").exists()


def test_without_a_network_a_line_says_so(program: Program) -> None:
    ran = program("models", "--refresh", "-c", 'catalog_address="http://127.0.0.1:9/x"')
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "refused" in ran.err
