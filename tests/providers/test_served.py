"""What a server lists of its models."""

from __future__ import annotations

import pytest

from rolling_chat.providers.served import served_models


@pytest.mark.parametrize("key", ["kv-secret\nvalue", "kv-secrét€-value"])
def test_a_key_that_no_header_can_carry_is_not_quoted(key: str) -> None:
    with pytest.raises(OSError, match="the key or the address cannot be sent") as caught:
        served_models("http://127.0.0.1:9", {"OPENAI_API_KEY": key})
    assert "cret" not in str(caught.value)
