"""A model that nobody here knows, on a server that counts: what fits by its count is sent."""

from __future__ import annotations

import pytest

from tests.benchmarks.cold_start_counted import ELSEWHERE, NEARBY, start_cold
from tests.support.tokenizers import Tokenizer, six_tokenizers


@pytest.mark.parametrize("tokenizer", six_tokenizers(), ids=lambda tokenizer: tokenizer.model)
@pytest.mark.parametrize("address", [NEARBY, ELSEWHERE], ids=["nearby", "elsewhere"])
async def test_what_fits_by_the_servers_count_is_sent(tokenizer: Tokenizer, address: str) -> None:
    figures = await start_cold(tokenizer, 8_192, address)
    assert figures.requests == 4
    assert figures.turned_away == figures.passed == figures.refused == 0
    if address == NEARBY:
        assert figures.worst < 0.01
