"""The offline model's names."""

from __future__ import annotations

import pytest

from rolling_chat.providers.offline import offline_window


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("demo/offline", 8192),
        ("offline", 8192),
        ("demo/offline-32k", 32_768),
        ("demo/offline-3000", 3000),
        ("demo/offline-100", None),
        ("demo/offline-0k", None),
        ("demo/offline-", None),
        ("demo/online", None),
        ("openai/offline", None),
    ],
)
def test_a_name_says_its_window(model: str, window: int | None) -> None:
    assert offline_window(model) == window
